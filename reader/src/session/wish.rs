//! What was asked for and is not to be had, in words that say what to do.

use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::status::{Reason, State, Status, is_lack_note};

/// Follows a wish within a turn of the shim's timer; until then a kind that is not recorded says nothing.
pub(super) const SETTLED_NS: u64 = 1_000_000_000;

/// What the tap of process `pid` cannot give of `wish`, or, `is_settled`, does not.
pub(super) fn remarks(wish: u64, status: &Status, pid: u32, is_settled: bool) -> Vec<String> {
    let mut remarks: Vec<String> =
        EventKind::in_mask(wish & status.unavailable).map(|kind| unavailable(kind, status)).collect();
    if is_settled && should_record(status) {
        remarks.extend(not_recorded(wish & !status.unavailable, status, pid));
    }
    remarks
}

/// The tap's own words where it has any.
fn unavailable(kind: EventKind, status: &Status) -> String {
    let told = status.notes.iter().find(|note| is_lack_note(note, kind));
    told.cloned().unwrap_or_else(|| format!("{} events cannot be had in this process", kind.name()))
}

/// Whether the tap's note says that a kind is missing: of interest to those alone who asked for it.
pub(crate) fn is_of_a_kind(note: &str) -> bool {
    EventKind::ALL.iter().any(|kind| is_lack_note(note, *kind))
}

fn should_record(status: &Status) -> bool {
    match status.state {
        Some(State::Recording | State::BlackBox) => true,
        // Where CUPTI refused every kind, none is recorded.
        Some(State::Idle) => status.reason == Reason::CuptiError,
        Some(State::Exited) => status.kinds != 0,
        _ => false,
    }
}

fn not_recorded(wish: u64, status: &Status, pid: u32) -> Vec<String> {
    let (kernel, graph, launch) = (EventKind::Kernel.bit(), EventKind::Graph.bit(), EventKind::Launch.bit());
    let (wants, has) = (|kind: u64| wish & kind != 0, |kind: u64| status.kinds & kind != 0);
    let mut remarks = Vec::new();
    let mut missing = wish & !status.kinds;
    if missing & graph != 0 && has(kernel) && status.reason != Reason::CuptiError {
        missing &= !graph;
        remarks.push(
            "graphs are not recorded as a whole: another reader wants every kernel, and CUPTI gives one or the other"
                .to_owned(),
        );
    }
    if wants(kernel) && !wants(graph) && has(graph) {
        remarks.push(format!(
            "kernels of CUDA graphs are missing: a reader asked for graphs as a whole, which hides their kernels until \
             `gputap ctl {pid} yield` and `gputap ctl {pid} resume`"
        ));
    }
    if missing != 0 {
        let names: Vec<&str> = EventKind::in_mask(missing).map(EventKind::name).collect();
        let why = super::reason(status);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        remarks.push(format!("not recorded, though asked for: {}{why}", names.join(", ")));
    }
    if wants(launch) && has(launch) && !has(kernel | graph) {
        remarks.push(
            "launches are recorded, and neither kernels nor graphs: which launches have finished is not known"
                .to_owned(),
        );
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputap_ringbuf::event::{ALL_KINDS, BASIC_KINDS};
    use gputap_ringbuf::header::status::ClockSource;

    const KERNEL: u64 = EventKind::Kernel.bit();
    const GRAPH: u64 = EventKind::Graph.bit();
    const MARKER: u64 = EventKind::Marker.bit();
    const LAUNCH: u64 = EventKind::Launch.bit();

    fn recording(kinds: u64) -> Status {
        Status {
            state: Some(State::Recording),
            reason: Reason::None,
            detail: String::new(),
            cupti_version: 130_000,
            cupti_path: String::new(),
            heartbeat_ns: 1,
            kinds,
            unavailable: 0,
            clock_source: ClockSource::Realtime,
            driver_version: 0,
            notes: Vec::new(),
        }
    }

    fn said(wish: u64, status: &Status) -> String {
        remarks(wish, status, 77, true).join("\n")
    }

    #[test]
    fn nothing_is_said_where_all_is_had() {
        assert_eq!(said(BASIC_KINDS, &recording(ALL_KINDS & !GRAPH)), "");
        assert_eq!(said(ALL_KINDS, &recording(ALL_KINDS)), "");
    }

    #[test]
    fn a_kind_that_cannot_be_had_is_told_in_the_tap_s_words_to_those_who_want_it() {
        let words = "nvtx events cannot be had in this process: set something";
        let notes = vec!["something else".to_owned(), words.to_owned()];
        let status = Status { unavailable: MARKER | LAUNCH, notes, ..recording(BASIC_KINDS) };
        assert_eq!(said(BASIC_KINDS, &status), "");
        assert_eq!(said(BASIC_KINDS | MARKER, &status), words);
        assert_eq!(remarks(LAUNCH, &status, 77, false), ["launch events cannot be had in this process"]);
        assert!(is_of_a_kind(words) && !is_of_a_kind("nvtx ranges are fine") && !is_of_a_kind("something else"));
    }

    #[test]
    fn graphs_and_every_kernel_exclude_each_other_aloud() {
        let another = said(KERNEL | GRAPH, &recording(KERNEL));
        assert!(another.contains("another reader wants every kernel"), "{another}");
        let earlier = said(KERNEL, &recording(KERNEL | GRAPH));
        assert!(earlier.contains("gputap ctl 77 yield") && earlier.contains("resume"), "{earlier}");
    }

    #[test]
    fn a_kind_that_cupti_refused_is_named_with_the_reason() {
        let refused = |state| Status {
            state: Some(state),
            reason: Reason::CuptiError,
            detail: "cuptiActivityEnable gave error 7".to_owned(),
            ..recording(if state == State::Idle { 0 } else { KERNEL })
        };
        for state in [State::Recording, State::Idle] {
            let words = said(KERNEL | GRAPH, &refused(state));
            assert!(words.contains("graph") && words.contains("error 7"), "{words}");
            assert!(!words.contains("another reader"), "{words}");
        }
    }

    #[test]
    fn before_the_wish_is_followed_and_while_nothing_is_recorded_nothing_is_said_of_it() {
        assert!(remarks(KERNEL | GRAPH, &recording(0), 77, false).is_empty());
        let idle = Status { state: Some(State::Yielded), ..recording(0) };
        assert_eq!(said(KERNEL, &idle), "");
    }

    #[test]
    fn launches_alone_do_not_tell_what_has_finished() {
        assert!(said(LAUNCH, &recording(LAUNCH)).contains("which launches have finished"));
        assert_eq!(said(LAUNCH | GRAPH, &recording(LAUNCH | GRAPH)), "");
    }
}
