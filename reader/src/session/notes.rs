//! What went less well than asked for, in words.

use super::{Session, wish};
use crate::clock::Now;
use crate::symbols::escape::for_screen;
use gputap_cupti::version;
use gputap_ringbuf::attach::Counters;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{Reason, State, Status};

/// Something to tell a person once, when it first applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it is about; the words may change with the figures in them.
    pub about: String,
    pub words: String,
}

impl Remark {
    fn new(words: String) -> Remark {
        Remark { about: words.clone(), words }
    }
}

pub(super) fn notes(session: &Session, status: &Status, counters: &Counters, now: Now) -> Vec<String> {
    let mut notes = of_the_session(session, status);
    notes.extend(lacking(session, status, now));
    notes.extend(of_counters(counters));
    let holds_cupti = matches!(status.state, Some(State::Idle | State::Recording | State::BlackBox)) && !session.gone;
    if session.has_torch && holds_cupti {
        notes.push(format!(
            "while the tap is in, torch.profiler gets no GPU events in this process; `gputap ctl {} yield` lets it",
            session.found.pid
        ));
    }
    notes
}

/// What a person wants to hear at once, and not at the end: trouble, and what is not recorded as it was asked for.
pub(super) fn remarks(session: &Session, status: &Status, now: Now) -> Vec<Remark> {
    let trouble = is_trouble(status).then(|| {
        let words = format!("the tap is {}: {}", super::state_name(status), super::reason(status));
        Remark { about: status.reason.explanation().to_owned(), words }
    });
    trouble.into_iter().chain(lacking(session, status, now).into_iter().map(Remark::new)).collect()
}

/// The reason of the state is not what somebody wanted: something is to be done.
pub(crate) fn is_trouble(status: &Status) -> bool {
    !matches!(status.reason, Reason::None | Reason::ByCommand)
}

fn lacking(session: &Session, status: &Status, now: Now) -> Vec<String> {
    let is_settled = session.gone || session.lease.held_ns(now).is_some_and(|held_ns| held_ns >= wish::SETTLED_NS);
    let mut lacking = wish::remarks(session.wish, status, session.found.pid, is_settled);
    lacking.extend(of_the_tap(status));
    lacking.extend(older_than_the_gpu(status.cupti_version, session.model.modules.architectures()));
    lacking
}

/// The tap's own notes, without those that only matter to who asks for a kind that cannot be had.
pub(crate) fn of_the_tap(status: &Status) -> Vec<String> {
    let notes = status.notes.iter().filter(|note| !note.is_empty() && !wish::is_of_a_kind(note));
    notes.map(|note| for_screen(note, 1024)).collect()
}

fn of_the_session(session: &Session, status: &Status) -> Vec<String> {
    let mut notes = Vec::new();
    if session.cut {
        notes.push(format!(
            "the segment of process {} was cut while it was read: somebody truncated {}. What had not been read by then \
             is lost, and the process itself may die when it writes there",
            session.found.pid,
            for_screen(&session.found.segment.to_string_lossy(), 1024)
        ));
    }
    if !session.lease.trouble.is_empty() {
        notes.push(session.lease.trouble.clone());
    }
    if status.state.is_none() {
        notes.push("the tap is in a state that this version does not know: use a newer gputap".to_owned());
    }
    let broken = session.names.broken() + session.cubins.broken();
    if broken > 0 {
        notes.push(format!("{broken} cubins or names in the shared memory are not what was stored, and are left out"));
    }
    notes
}

fn of_counters(counters: &Counters) -> Vec<String> {
    let told = |counter: Counter, words: fn(u64) -> String| {
        let count = counters.get(counter);
        (count > 0).then(|| words(count))
    };
    [
        told(Counter::NamesLost, |n| format!("{n} kernel names found no room; their kernels show as (unnamed)")),
        told(Counter::Panics, |n| format!("the tap caught {n} defects of its own; please report this")),
        told(Counter::YieldGaps, |n| format!("the tap gave way {n} times; modules loaded meanwhile are unknown")),
        told(Counter::ClockSteps, |n| {
            format!("the wall clock was set {n} times; times of records near that are counted, not averaged")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A cubin that was loaded is one that the GPU runs.
fn older_than_the_gpu<'a>(cupti_version: u32, architectures: impl Iterator<Item = &'a str>) -> Option<String> {
    let number = |name: &str| -> Option<u32> {
        name.strip_prefix("sm_")?.trim_end_matches(|letter: char| letter.is_ascii_lowercase()).parse().ok()
    };
    let is_unknown =
        |name: &&str| number(name).and_then(|sm| version::knows_architecture(cupti_version, sm)) == Some(false);
    let unknown: Vec<&str> = architectures.filter(is_unknown).collect();
    let (major, minor) = version::cuda_version_of(cupti_version)?;
    (!unknown.is_empty()).then(|| {
        format!(
            "this libcupti is of CUDA {major}.{minor}, older than the GPU ({}): kernels may leave no records; name a newer \
             one in GPUTAP_CUPTI",
            unknown.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_libcupti_that_does_not_know_what_the_cubins_are_for_is_named() {
        let said = |version, architectures: &[&str]| older_than_the_gpu(version, architectures.iter().copied());
        let words = said(22, &["sm_90a", "sm_100a", "sm_120"]).expect("12.4 knows no Blackwell");
        assert!(words.contains("12.4") && words.contains("(sm_100a, sm_120)"), "{words}");
        assert_eq!(said(22, &["sm_90a", "sm_75"]), None);
        assert_eq!(said(130_000, &["sm_100"]), None);
        // Of what is not known nothing is said.
        assert_eq!(said(0, &["sm_100"]), None);
        assert_eq!(said(22, &["", "sm_", "gfx90a", "sm_99999999999"]), None);
    }
}
