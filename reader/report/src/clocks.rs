//! The clocks of a recording's processes, brought together: each host has a CLOCK_MONOTONIC of its own.

use gputap_recording::{Clock, Process, Recorded};

/// Which instant is which, for each process.
#[derive(Debug)]
pub struct Clocks {
    /// Nanoseconds since 1970 when the first process' recording began; None where no process says.
    pub began_wall_ns: Option<u64>,
    by_process: Vec<Option<Clock>>,
}

impl Clocks {
    pub fn of(processes: &[Recorded]) -> Clocks {
        let by_process: Vec<_> = processes.iter().map(|one| clock_of(&one.process, processes)).collect();
        let began = processes.iter().filter_map(|one| one.process.clock).map(|clock| clock.realtime_ns).min();
        Clocks { began_wall_ns: began, by_process }
    }

    /// CLOCK_MONOTONIC of process `number`'s host at a wall time; None where its clock is not known.
    pub fn monotonic_ns(&self, number: usize, wall_ns: u64) -> Option<u64> {
        let clock = self.by_process.get(number).copied().flatten()?;
        let monotonic = i128::from(wall_ns) - i128::from(clock.realtime_ns) + i128::from(clock.monotonic_ns);
        Some(u64::try_from(monotonic.max(0)).unwrap_or(u64::MAX))
    }

    /// When the recording began, by process `number`'s own clock.
    pub fn began_ns(&self, number: usize) -> Option<u64> {
        self.monotonic_ns(number, self.began_wall_ns?)
    }
}

/// Its own, or that of another process of the same boot.
fn clock_of(process: &Process, all: &[Recorded]) -> Option<Clock> {
    let neighbours = all.iter().map(|one| &one.process).filter(|other| other.boot_id == process.boot_id);
    process.clock.or_else(|| neighbours.filter_map(|other| other.clock).next())
}
