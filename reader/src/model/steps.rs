//! How long a step takes, where the work of a process repeats itself: from how busy it was over time.
//!
//! The busy time of all streams is compared with itself some time ago. Where it looks alike after a certain time, and no
//! earlier, that time is a step's; a job without a rhythm has none. What is told is a step *of the device*: two halves of
//! a step that look alike count as two.

/// Looking alike at least so much, 1 being the same.
const ALIKE: f32 = 0.5;
/// The earliest peak counts that comes so near the highest: twice a step is alike too.
const NEAR_HIGHEST: f32 = 0.85;
/// A step is at least so many samples long.
const SHORTEST: usize = 4;
/// A step must have been seen so many times.
const SEEN: usize = 4;

/// In samples, fractions of one included.
pub(super) fn period(busy: &[f32]) -> Option<f32> {
    let mean = busy.iter().sum::<f32>() / busy.len().max(1) as f32;
    let centred: Vec<f32> = busy.iter().map(|sample| sample - mean).collect();
    let power: f32 = centred.iter().map(|sample| sample * sample).sum();
    let longest = busy.len() / SEEN;
    // Busy all the time, or never: no rhythm to see.
    if power <= busy.len() as f32 * 1e-4 || longest <= SHORTEST + 1 {
        return None;
    }
    let alike = |lag: usize| {
        let products = centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b);
        // Fewer samples are compared at a longer lag.
        products.sum::<f32>() / power * (busy.len() as f32 / (busy.len() - lag) as f32)
    };
    let curve: Vec<f32> = (0..=longest).map(alike).collect();
    let is_peak = |lag: &usize| curve[*lag] >= curve[*lag - 1] && curve[*lag] > curve[*lag + 1];
    let peaks: Vec<usize> = (SHORTEST..longest).filter(is_peak).collect();
    let highest = peaks.iter().map(|&lag| curve[lag]).fold(0.0, f32::max);
    if highest < ALIKE {
        return None;
    }
    let first = peaks.into_iter().find(|&lag| curve[lag] >= highest * NEAR_HIGHEST)?;
    Some(first as f32 + summit(curve[first - 1], curve[first], curve[first + 1]))
}

/// Where between its neighbours the top of a parabola through three points lies, from -0.5 to 0.5.
fn summit(before: f32, at: f32, after: f32) -> f32 {
    let bend = before - 2.0 * at + after;
    if bend.abs() < f32::EPSILON { 0.0 } else { (0.5 * (before - after) / bend).clamp(-0.5, 0.5) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Busy for the given share of each period, in samples.
    fn rhythm(samples: usize, period: f32, share: f32) -> Vec<f32> {
        (0..samples).map(|at| f32::from((at as f32 / period).fract() < share)).collect()
    }

    #[test]
    fn a_rhythm_is_found() {
        for length in [8.0, 50.0, 123.5, 700.0] {
            let found = period(&rhythm(4000, length, 0.7)).unwrap();
            assert!((found - length).abs() / length < 0.02, "{length}: {found}");
        }
    }

    #[test]
    fn where_there_is_none_none_is_told() {
        assert_eq!(period(&[]), None);
        assert_eq!(period(&[1.0; 4000]), None);
        let mut state = 1u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as f32 / 65_536.0
        };
        let noise: Vec<f32> = (0..4000).map(|_| noise()).collect();
        assert_eq!(period(&noise), None);
        assert_eq!(period(&rhythm(4000, 1_500.0, 0.7)), None, "seen twice only");
    }
}
