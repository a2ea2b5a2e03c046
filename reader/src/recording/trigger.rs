//! What a recording waits for: until it happens only the last seconds are kept.

mod idle;

use crate::clock::Now;
use crate::model::timing::Timing;
use gputap_ringbuf::event::{Event, KernelEvent};
use idle::Idle;
use serde::Serialize;
use std::collections::HashMap;

/// Firings that are told in the index; of later ones only the number.
const TOLD_MAX: usize = 1000;
/// Devices of all processes that are followed for idleness.
const DEVICES_MAX: usize = 1024;

/// One thing to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A kernel takes longer than this.
    Kernel { longer_ns: u64 },
    /// No work of a process runs on a GPU that it has used, for longer than this.
    Idle { longer_ns: u64 },
    /// A process ends otherwise than in order.
    Exit,
}

impl std::str::FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Trigger, String> {
        match text.split_once('>').map(|(what, longer)| (what.trim(), longer)) {
            Some(("kernel", longer)) => Ok(Trigger::Kernel { longer_ns: parse_duration_ns(longer)? }),
            Some(("idle", longer)) => Ok(Trigger::Idle { longer_ns: parse_duration_ns(longer)? }),
            None if text.trim() == "exit" => Ok(Trigger::Exit),
            _ => Err(format!("{text:?} is none of kernel>TIME, idle>TIME (as in kernel>10ms), exit")),
        }
    }
}

/// `10ms`, `2s`, `1.5m`; without a unit, seconds.
///
/// # Errors
/// It is no time, or none that is more than 0 and at most 1e9 seconds.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(format!("{unit:?} is no unit of time: ns, us, ms, s, m, h")),
    };
    let number: f64 = number.trim().parse().map_err(|_| format!("{text:?} is no time, as in 10ms or 2s"))?;
    let ns = number * unit_ns;
    if (1.0..=1e18).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err(format!("{text:?} must be more than 0 and at most 1e9 s"))
    }
}

/// What to wait for, and how much to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triggers {
    pub triggers: Vec<Trigger>,
    /// Kept of what was before,
    pub last_ns: u64,
    /// and after.
    pub after_ns: u64,
    /// The first is the last.
    pub once: bool,
}

/// A trigger that has fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Firing {
    /// In words.
    pub why: String,
    /// As the process sees itself.
    pub pid: u32,
    /// CLOCK_MONOTONIC when it was seen, and wall time.
    pub time_ns: u64,
    pub realtime_ns: u64,
}

/// Watches for triggers, over all processes of a recording.
#[derive(Debug)]
pub(super) struct Alarm {
    settings: Triggers,
    kernel_longer_ns: u64,
    idle_longer_ns: Option<u64>,
    /// By process and device.
    idle: HashMap<(usize, u32), Idle>,
    pub firings: Vec<Firing>,
    pub count: u64,
    /// Everything is kept until then.
    open_until_ns: Option<u64>,
    /// What has fired since the last look.
    fired: Option<(usize, String)>,
    pub is_over: bool,
}

/// What is to be done about the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Nothing,
    /// Keep all that there is and that comes.
    Open,
    /// What is kept stays; keep the last seconds of what comes.
    Close,
}

impl Alarm {
    pub fn new(settings: Triggers) -> Alarm {
        let kernels = settings.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Kernel { longer_ns } => Some(*longer_ns),
            _ => None,
        });
        let idles = settings.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Idle { longer_ns } => Some(*longer_ns),
            _ => None,
        });
        Alarm {
            kernel_longer_ns: kernels.min().unwrap_or(u64::MAX),
            idle_longer_ns: idles.min(),
            settings,
            idle: HashMap::new(),
            firings: Vec::new(),
            count: 0,
            open_until_ns: None,
            fired: None,
            is_over: false,
        }
    }

    pub fn settings(&self) -> &Triggers {
        &self.settings
    }

    /// For how long segments are kept now; 0 for ever.
    pub fn keep_ns(&self) -> u64 {
        if self.open_until_ns.is_some() { 0 } else { self.settings.last_ns }
    }

    /// Looks at an event of process `row`; `name` gives a kernel's name for the words.
    pub fn event(&mut self, row: usize, event: &Event, now: Now, name: impl FnOnce(&KernelEvent) -> String) {
        let Timing::Good { start_ns, end_ns } = Timing::of(event) else { return };
        let device = match event {
            Event::Kernel(kernel) => {
                if end_ns - start_ns > self.kernel_longer_ns {
                    let took = milliseconds(end_ns - start_ns);
                    self.fire(row, || format!("kernel {} took {took}", name(kernel)));
                }
                kernel.device_id
            }
            Event::Memcpy(copy) => copy.device_id,
            Event::Memset(memset) => memset.device_id,
            Event::Graph(graph) => graph.device_id,
            _ => return,
        };
        let Some(longer_ns) = self.idle_longer_ns else { return };
        if self.idle.len() < DEVICES_MAX || self.idle.contains_key(&(row, device)) {
            self.idle.entry((row, device)).or_default().work(start_ns, end_ns, longer_ns, now.monotonic_ns);
        }
    }

    /// A process has ended; `in_order`: it said so itself.
    pub fn ended(&mut self, row: usize, in_order: bool) {
        self.idle.retain(|(of, _), _| *of != row);
        if !in_order && self.settings.triggers.contains(&Trigger::Exit) {
            self.fire(row, || "the process ended without saying so: killed, crashed, or by _exit".to_owned());
        }
    }

    /// To be called often. `pid_of` gives the pid of a process.
    pub fn look(&mut self, now: Now, pid_of: impl FnOnce(usize) -> u32) -> Turn {
        if let Some(longer_ns) = self.idle_longer_ns {
            let seen = self.idle.iter_mut().find_map(|(&(row, device), idle)| {
                idle.look(longer_ns, now.monotonic_ns).map(|idle_ns| (row, device, idle_ns))
            });
            if let Some((row, device, idle_ns)) = seen {
                self.fire(row, || format!("nothing ran on GPU {device} for {}", milliseconds(idle_ns)));
            }
        }
        match (self.open_until_ns, self.fired.take()) {
            (None, Some((row, why))) if !self.is_over => {
                self.count += 1;
                if self.firings.len() < TOLD_MAX {
                    let (time_ns, realtime_ns) = (now.monotonic_ns, now.realtime_ns);
                    self.firings.push(Firing { why, pid: pid_of(row), time_ns, realtime_ns });
                }
                self.open_until_ns = Some(now.monotonic_ns.saturating_add(self.settings.after_ns));
                Turn::Open
            }
            (Some(until_ns), _) if now.monotonic_ns >= until_ns => {
                self.open_until_ns = None;
                self.is_over = self.settings.once;
                Turn::Close
            }
            _ => Turn::Nothing,
        }
    }

    /// While all is kept anyway nothing more needs to happen.
    fn fire(&mut self, row: usize, why: impl FnOnce() -> String) {
        if self.open_until_ns.is_none() && self.fired.is_none() {
            self.fired = Some((row, why()));
        }
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(monotonic_ns: u64) -> Now {
        Now { monotonic_ns, realtime_ns: monotonic_ns + 1 }
    }

    fn alarm(words: &[&str], once: bool) -> Alarm {
        let triggers = words.iter().map(|word| word.parse().expect("a trigger")).collect();
        Alarm::new(Triggers { triggers, last_ns: 30_000_000_000, after_ns: 5_000_000_000, once })
    }

    fn kernel(start_ns: u64, end_ns: u64) -> Event {
        Event::Kernel(KernelEvent { start_ns, end_ns, ..Default::default() })
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn triggers_and_times_are_read_from_words() {
        assert_eq!("kernel>10ms".parse(), Ok(Trigger::Kernel { longer_ns: 10_000_000 }));
        assert_eq!("idle > 2s".parse(), Ok(Trigger::Idle { longer_ns: 2 * S }));
        assert_eq!("exit".parse(), Ok(Trigger::Exit));
        for wrong in ["kernel", "kernel>", "kernel>fast", "idle>2 days", "exit>1s", "", "kernel>-1s", "kernel>nan"] {
            assert!(wrong.parse::<Trigger>().is_err(), "{wrong}");
        }
        assert_eq!(parse_duration_ns("1.5"), Ok(1_500_000_000));
        assert_eq!(parse_duration_ns("20 µs"), Ok(20_000));
        assert_eq!(parse_duration_ns("2m"), Ok(120 * S));
    }

    #[test]
    fn a_long_kernel_opens_and_time_closes_and_it_arms_again() {
        let mut alarm = alarm(&["kernel>10ms"], false);
        let name = |_: &KernelEvent| "k".to_owned();
        // At the limit is not beyond it; a time that cannot be right is none.
        for event in [kernel(S, S + 10_000_000), kernel(S, 0), kernel(0, 99 * S)] {
            alarm.event(0, &event, now(2 * S), name);
        }
        assert_eq!((alarm.look(now(2 * S), |_| 7), alarm.keep_ns()), (Turn::Nothing, 30 * S));
        alarm.event(0, &kernel(S, S + 10_000_001), now(2 * S), name);
        assert_eq!((alarm.look(now(2 * S), |_| 7), alarm.keep_ns()), (Turn::Open, 0));
        let firing = Firing { why: "kernel k took 10.0 ms".into(), pid: 7, time_ns: 2 * S, realtime_ns: 2 * S + 1 };
        assert_eq!(alarm.firings, [firing]);
        alarm.event(0, &kernel(S, 9 * S), now(3 * S), name);
        assert_eq!(alarm.look(now(7 * S - 1), |_| 7), Turn::Nothing);
        assert_eq!((alarm.look(now(7 * S), |_| 7), alarm.keep_ns()), (Turn::Close, 30 * S));
        alarm.event(0, &kernel(S, 9 * S), now(8 * S), name);
        assert_eq!((alarm.look(now(8 * S), |_| 7), alarm.count, alarm.is_over), (Turn::Open, 2, false));
    }

    #[test]
    fn once_is_once_and_an_exit_counts_only_out_of_order() {
        let mut alarm = alarm(&["exit", "kernel>1h"], true);
        alarm.ended(0, true);
        assert_eq!(alarm.look(now(S), |_| 7), Turn::Nothing);
        alarm.ended(1, false);
        assert_eq!(alarm.look(now(S), |row| row as u32), Turn::Open);
        assert_eq!(alarm.firings[0].pid, 1);
        assert_eq!((alarm.look(now(6 * S), |_| 7), alarm.is_over), (Turn::Close, true));
        alarm.ended(2, false);
        assert_eq!(alarm.look(now(7 * S), |_| 7), Turn::Nothing);
    }

    #[test]
    fn idleness_is_of_each_device() {
        let mut alarm = alarm(&["idle>2s"], false);
        let copy = |device_id, start_ns, end_ns| {
            Event::Memcpy(gputap_ringbuf::event::MemcpyEvent { device_id, start_ns, end_ns, ..Default::default() })
        };
        for second in 1..10 {
            alarm.event(0, &copy(0, second * S, second * S + 5), now(second * S), |_| String::new());
            if second < 4 {
                alarm.event(0, &copy(1, second * S, second * S + 5), now(second * S), |_| String::new());
            }
            let turn = alarm.look(now(second * S), |_| 7);
            assert_eq!(turn, if second == 7 { Turn::Open } else { Turn::Nothing }, "{second}");
        }
        assert!(alarm.firings[0].why.contains("GPU 1"), "{:?}", alarm.firings);
    }
}
