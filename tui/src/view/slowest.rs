//! Which process holds up the others.
//!
//! Processes of a job meet in collectives, and there the ones that come first wait: the kernel runs until the last one has
//! come. So the process that spends the least time in collectives is the one that the others wait for. This is told
//! only where at least two processes ran collectives, and one of them clearly less than the middle one. It is no proof:
//! stages of a pipeline do different work by design, collectives that are done by copies alone are not seen, and a time
//! is of ten seconds.

use crate::tap::Peer;

/// The rule, as the screen says it.
pub const RULE: &str = "▲ slowest: clearly least time in collectives over 10 s, where the others wait for it";
/// What is seen where the rule cannot be applied.
pub const NO_RULE: &str = "slowest: not told, for fewer than two processes ran collectives in the last 10 s";
pub const NONE: &str = "slowest: none; all spend about as long in collectives";

/// A process in collectives for a smaller share of the time has none to speak of.
const COLLECTIVE_MIN: f64 = 0.005;
/// Clearly less: by this share of the time, and this share of what the middle one spends.
const CLEARLY: f64 = 0.02;
const CLEARLY_OF_IT: f64 = 0.2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slowest {
    /// The place among the processes.
    This(usize),
    /// None stands out.
    None,
    /// There is nothing to tell it by.
    Unknown,
}

pub fn of(peers: &[Peer]) -> Slowest {
    let alive = || peers.iter().enumerate().filter(|(_, peer)| peer.alive);
    let mut shares: Vec<f64> = alive().map(|(_, peer)| peer.work.collective).collect();
    if shares.iter().filter(|&&share| share >= COLLECTIVE_MIN).count() < 2 {
        return Slowest::Unknown;
    }
    shares.sort_by(f64::total_cmp);
    let middle = shares[shares.len() / 2];
    let least = alive().min_by(|(_, a), (_, b)| a.work.collective.total_cmp(&b.work.collective));
    match least {
        Some((place, peer)) if middle - peer.work.collective >= CLEARLY.max(middle * CLEARLY_OF_IT) => {
            Slowest::This(place)
        }
        _ => Slowest::None,
    }
}

impl Slowest {
    pub fn words(self) -> &'static str {
        match self {
            Slowest::This(_) => RULE,
            Slowest::None => NONE,
            Slowest::Unknown => NO_RULE,
        }
    }
}

#[cfg(test)]
mod tests {
    use gputap_reader::model::timeline::WorkShares;

    use super::*;

    fn peers(collective: &[f64]) -> Vec<Peer> {
        let peer = |&collective: &f64| Peer {
            alive: true,
            work: WorkShares { compute: 0.9 - collective, collective, ..WorkShares::default() },
            ..Peer::default()
        };
        collective.iter().map(peer).collect()
    }

    #[test]
    fn the_one_that_never_waits_is_the_slowest() {
        assert_eq!(of(&peers(&[0.30, 0.29, 0.05, 0.31])), Slowest::This(2));
        assert_eq!(of(&peers(&[0.05, 0.30])), Slowest::This(0), "of two");
    }

    #[test]
    fn where_none_stands_out_none_is_marked() {
        assert_eq!(of(&peers(&[0.30, 0.29, 0.28, 0.31])), Slowest::None);
        assert_eq!(of(&peers(&[0.011, 0.006, 0.012])), Slowest::None, "a small share is noise");
    }

    #[test]
    fn without_collectives_nothing_is_told() {
        assert_eq!(of(&[]), Slowest::Unknown);
        assert_eq!(of(&peers(&[0.0, 0.0])), Slowest::Unknown);
        assert_eq!(of(&peers(&[0.3])), Slowest::Unknown);
        let mut ended = peers(&[0.3, 0.05]);
        ended[1].alive = false;
        assert_eq!(of(&ended), Slowest::Unknown, "one that has ended holds up nobody");
    }
}
