//! Whether CUPTI delivers anything here. With a libcupti that is older than the GPU, say, it gives no error and no
//! records: kernels are launched, and none is ever seen.
//!
//! Until the first record has come, launches are counted by a callback at each; then never again.

use super::guard::{Failed, Guard};
use gputap_callbacks::tapped::Tapped;
use gputap_ringbuf::header::counters::Counter;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Kernels are not being recorded.
    Waiting,
    /// Launches beyond `before` have left no record; when the first of them was seen.
    Counting { before: u64, since_ns: Option<u64> },
    /// Records have come.
    Passed,
}

/// Watches for launches that leave no record.
pub struct SelfTest {
    phase: Phase,
    patience: Duration,
    /// Launches call us in any case.
    always_called: bool,
}

impl SelfTest {
    pub fn new(patience: Duration, always_called: bool) -> SelfTest {
        SelfTest { phase: Phase::Waiting, patience, always_called }
    }

    /// Looks, once a turn; `recording`: kernels are switched on. Gives what is wrong, as long as it is.
    pub fn look(
        &mut self,
        tapped: &Tapped,
        guard: &mut Guard,
        recording: bool,
        now_ns: u64,
    ) -> Result<Option<String>, Failed> {
        let launches = tapped.tap.counted(Counter::LaunchesSeen);
        let next = match self.phase {
            Phase::Passed => Phase::Passed,
            _ if tapped.has_seen_work() => Phase::Passed,
            _ if !recording => Phase::Waiting,
            Phase::Waiting => Phase::Counting { before: launches, since_ns: None },
            Phase::Counting { before, since_ns: None } if launches > before => {
                Phase::Counting { before, since_ns: Some(now_ns) }
            }
            counting => counting,
        };
        let before = std::mem::replace(&mut self.phase, next);
        let counts = |phase| matches!(phase, Phase::Counting { .. });
        if counts(before) != counts(next) && !self.always_called {
            guard.enable_launches(counts(next))?;
        }
        Ok(match next {
            Phase::Counting { before, since_ns: Some(since_ns) }
                if now_ns.saturating_sub(since_ns) >= self.patience.as_nanos() as u64 =>
            {
                let (launches, seconds) = (launches - before, now_ns.saturating_sub(since_ns) / 1_000_000_000);
                Some(format!("{launches} launches in {seconds} s; the libcupti may be older than the GPU"))
            }
            _ => None,
        })
    }

    /// The subscription is a new one: nothing is switched on in it.
    pub fn begin_again(&mut self) {
        if self.phase != Phase::Passed {
            self.phase = Phase::Waiting;
        }
    }
}
