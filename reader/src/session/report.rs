//! A session's figures put together: the model's rows, the books, the target, the notes.

use super::Session;
use crate::clock::Now;
use crate::model::ledger::Ledger;
use crate::model::snapshot::{Clock, ClockPoint, Cost, Counts, Freshness, Lost, ModuleCounts, Snapshot, Target};
use crate::symbols::escape::for_screen;
use gputap_ringbuf::attach::Counters;
use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{ClockPoint as RawPoint, ClockSource, State, Status};

/// How a session stands: what its snapshot says, without the rows.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// As in [`Target`], as is the reason.
    pub state: String,
    pub reason: String,
    pub counts: Counts,
    pub module_counts: ModuleCounts,
    pub freshness: Option<Freshness>,
    pub cost: Cost,
    pub clock: Clock,
    pub notes: Vec<String>,
    /// The segment was cut while it was read.
    pub is_cut: bool,
}

pub(super) fn standing(session: &Session, now: Now) -> Standing {
    let (status, counters) = latest(session);
    let target = target(session, &status, now);
    let (flags, modules, freshness) = session.model.standing();
    Standing {
        state: target.state,
        reason: target.reason,
        counts: Counts { flagged_times: flags.sum(), flags, ..ledger(session, &counters).balance() },
        module_counts: ModuleCounts { bytes: modules.bytes, not_shown: modules.not_shown, ..module_counts(&counters) },
        freshness,
        cost: cost(&counters),
        clock: clock(&status, &counters, session.clock_point()),
        notes: super::notes::notes(session, &status, &counters, now),
        is_cut: session.cut,
    }
}

pub(super) fn snapshot(session: &Session, now: Now) -> Snapshot {
    let (status, _) = latest(session);
    let Standing { counts, module_counts, freshness, cost, clock, notes, .. } = standing(session, now);
    Snapshot {
        target: target(session, &status, now),
        elapsed_ns: now.since_ns(session.began),
        counts,
        module_counts,
        freshness,
        cost,
        cupti_crc_by: session
            .cubins
            .library()
            .map_or_else(String::new, |library| format!("{} (version {})", library.path.display(), library.version)),
        clock,
        notes,
        ..session.model.snapshot(now)
    }
}

/// After the lanes were drained: what was counted since is pending.
fn latest(session: &Session) -> (Status, Counters) {
    let fresh = if session.cut { None } else { super::figures(&session.attached) };
    fresh.unwrap_or_else(|| session.figures.clone())
}

fn ledger(session: &Session, counters: &Counters) -> Ledger {
    let tally = &session.lanes.tally;
    let cupti_may_hold = match session.last_state {
        Some(State::Recording | State::BlackBox) => true,
        // What was still running at the end of the last lease stays with CUPTI until the next, or the exit.
        Some(State::Idle) => counters.get(Counter::Flushes) > 0,
        _ => false,
    };
    Ledger {
        attempted: counters.attempted,
        delivered: tally.delivered,
        overwritten: tally.drained.overwritten,
        before_attach: tally.drained.before_attach,
        undecodable: tally.undecodable,
        unreadable: tally.drained.unreadable,
        abandoned: tally.drained.abandoned,
        lost_by_shim: counters.lost().map(|(counter, count)| (counter.name(), count)).collect(),
        ended: session.ended,
        cut: session.cut,
        held_by_cupti_unknown: session.ended && cupti_may_hold,
        thrown_away_unknown: counters.get(Counter::PoolEmpty) > 0,
    }
}

fn module_counts(counters: &Counters) -> ModuleCounts {
    let attempted = counters.get(Counter::ModuleLoads);
    let duplicates = counters.get(Counter::ModuleDuplicates);
    let refusals = [Counter::ModulesFull, Counter::ModulesNotReserved, Counter::ModulesContended];
    let refused: Vec<Lost> = refusals
        .into_iter()
        .map(|counter| Lost { reason: counter.name().to_owned(), count: counters.get(counter), unknown: false })
        .filter(|lost| lost.count > 0)
        .collect();
    let not_stored = refused.iter().fold(duplicates, |sum, lost| sum.saturating_add(lost.count));
    ModuleCounts {
        attempted,
        stored: attempted.saturating_sub(not_stored),
        duplicates,
        refused,
        unknown: counters.get(Counter::YieldGaps) > 0,
        ..Default::default()
    }
}

fn cost(counters: &Counters) -> Cost {
    Cost {
        module_callback_ns: counters.get(Counter::ModuleCallbackNs),
        module_callback_max_ns: counters.get(Counter::ModuleCallbackMaxNs),
        completed_ns: counters.get(Counter::CompletedNs),
        buffers_completed: counters.get(Counter::BuffersCompleted),
        flush_ns: counters.get(Counter::FlushNs),
        flush_max_ns: counters.get(Counter::FlushMaxNs),
        flushes: counters.get(Counter::Flushes),
    }
}

fn target(session: &Session, status: &Status, now: Now) -> Target {
    let identity = session.attached.identity();
    Target {
        pid: session.found.pid,
        command: session.command.clone(),
        alive: !session.gone,
        state: match (session.cut, session.gone) {
            (true, _) => "cut".to_owned(),
            (false, true) => State::Exited.name().to_owned(),
            (false, false) => state_name(status).to_owned(),
        },
        reason: if session.cut { "truncated while it was read".to_owned() } else { reason(status) },
        cupti_version: status.cupti_version,
        cupti_path: for_screen(&status.cupti_path, 1024),
        driver_version: cuda_version(status.driver_version),
        kinds: kind_names(status.kinds),
        unavailable: kind_names(status.unavailable),
        notes: status.notes.iter().map(|note| for_screen(note, 1024)).collect(),
        backing: identity.backing.name().to_owned(),
        uptime_ns: now.monotonic_ns.saturating_sub(identity.started_ns),
        heartbeat_age_ns: now.monotonic_ns.saturating_sub(status.heartbeat_ns),
    }
}

/// The state's name; a state of a newer version has none here.
pub(crate) fn state_name(status: &Status) -> &'static str {
    status.state.map_or("unknown", State::name)
}

/// The reason's meaning with the shim's facts, fit for a screen.
pub(crate) fn reason(status: &Status) -> String {
    let detail = for_screen(&status.detail, 1024);
    match (status.reason.explanation(), detail.as_str()) {
        (explanation, "") => explanation.to_owned(),
        ("", detail) => detail.to_owned(),
        (explanation, detail) => format!("{explanation}: {detail}"),
    }
}

pub(crate) fn kind_names(kinds: u64) -> Vec<&'static str> {
    EventKind::in_mask(kinds).map(EventKind::name).collect()
}

/// `13.0` for 13000; empty while unknown.
pub(crate) fn cuda_version(driver_version: u32) -> String {
    match driver_version {
        0 => String::new(),
        version => format!("{}.{}", version / 1000, version % 1000 / 10),
    }
}

pub(crate) fn clock_point(RawPoint { monotonic_ns, realtime_ns, error_ns }: RawPoint) -> ClockPoint {
    ClockPoint { monotonic_ns, realtime_ns, error_ns }
}

pub(crate) fn clock(status: &Status, counters: &Counters, point: Option<ClockPoint>) -> Clock {
    Clock {
        source: clock_source(status),
        point,
        steps: counters.get(Counter::ClockSteps),
        doubtful_times: counters.get(Counter::ClockDoubtful),
    }
}

/// Which clock CUPTI reads.
pub(crate) fn clock_source(status: &Status) -> &'static str {
    match status.clock_source {
        ClockSource::Realtime => "wall",
        ClockSource::Monotonic => "monotonic",
    }
}

/// What a tap has counted in all, without a session.
pub(crate) struct Totals {
    pub modules: u64,
    pub cubin_bytes: u64,
    pub attempted: u64,
}

pub(crate) fn totals(counters: &Counters) -> Totals {
    Totals {
        modules: counters.get(Counter::ModuleLoads),
        cubin_bytes: counters.get(Counter::CubinBytes),
        attempted: counters.attempted,
    }
}
