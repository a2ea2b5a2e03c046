//! Loss in words, the same on the screen, in tables and in summaries.

use gputap_reader::model::snapshot::{Counts, Flags, Lost};

use super::{clip, grouped};

/// Of a list by reason, saturating: a hostile segment may claim anything.
pub fn total(lost: &[Lost]) -> u64 {
    lost.iter().fold(0, |sum, lost| sum.saturating_add(lost.count))
}

/// Whether there is anything to be red about.
pub fn any(lost: &[Lost]) -> bool {
    lost.iter().any(|lost| lost.count > 0 || lost.unknown)
}

/// `overwritten 12, no_lane 3 or more`; empty where nothing was lost.
pub fn reasons(lost: &[Lost]) -> String {
    let told = lost.iter().filter(|lost| lost.count > 0 || lost.unknown);
    let words = told.map(|lost| {
        let reason = clip(&lost.reason, 40);
        match (lost.count, lost.unknown) {
            (0, _) => format!("{reason} unknown"),
            (count, true) => format!("{reason} {} or more", grouped(count)),
            (count, false) => format!("{reason} {}", grouped(count)),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// One line: `lost 0   attempted 10   delivered 10   pending 0`.
pub fn line(counts: &Counts) -> String {
    let mut words = format!("lost {}", grouped(total(&counts.lost)));
    if any(&counts.lost) {
        words += &format!(" ({})", reasons(&counts.lost));
    }
    for (name, number) in
        [("attempted", counts.attempted), ("delivered", counts.delivered), ("pending", counts.pending)]
    {
        words += &format!("   {name} {}", grouped(number));
    }
    if counts.flagged_times > 0 {
        words += &format!("   odd times {} ({})", grouped(counts.flagged_times), flags(&counts.flags));
    }
    words
}

/// `unfinished 3, zero 1`; empty where there is none.
pub fn flags(flags: &Flags) -> String {
    let Flags { unfinished, zero, negative, doubtful } = *flags;
    let all = [("unfinished", unfinished), ("zero", zero), ("negative", negative), ("near a clock step", doubtful)];
    let told = all.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {}", grouped(*count)));
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_not_zero() {
        let lost = |reason: &str, count, unknown| Lost { reason: reason.into(), count, unknown };
        let counts = Counts {
            lost: vec![lost("overwritten", 1200, false), lost("no_lane", 0, false), lost("cupti_dropped", 0, true)],
            attempted: 5000,
            ..Counts::default()
        };
        let words = line(&counts);
        assert!(
            words.starts_with("lost 1,200 (overwritten 1,200, cupti_dropped unknown)   attempted 5,000"),
            "{words}"
        );
        assert!(!any(&Counts::default().lost));
    }

    #[test]
    fn odd_times_say_what_is_wrong_with_them() {
        let flags = Flags { unfinished: 1000, zero: 0, negative: 2, doubtful: 3 };
        let words = line(&Counts { flagged_times: flags.sum(), flags, ..Counts::default() });
        let expected = "odd times 1,005 (unfinished 1,000, negative 2, near a clock step 3)";
        assert!(words.ends_with(expected), "{words}");
    }
}
