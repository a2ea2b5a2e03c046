//! A session's figures put together: the model's rows, the books, the target, the notes.

use super::Session;
use crate::clock::Now;
use crate::model::ledger::Ledger;
use crate::model::snapshot::{Cost, Counts, Lost, ModuleCounts, Snapshot, Target};
use gputap_ringbuf::attach::{Attached, Counters};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{State, Status};

pub(super) fn snapshot(session: &Session, now: Now) -> Snapshot {
    // After the lanes were drained: what was counted since is pending.
    let fresh = if session.cut { None } else { super::figures(&session.attached) };
    let (status, counters) = fresh.unwrap_or_else(|| session.figures.clone());
    let model = session.model.snapshot(now);
    Snapshot {
        target: target(session, &status, now),
        elapsed_ns: now.since_ns(session.began),
        counts: Counts { flagged_times: model.counts.flagged_times, ..ledger(session, &counters).balance() },
        module_counts: ModuleCounts {
            bytes: model.module_counts.bytes,
            not_shown: model.module_counts.not_shown,
            ..module_counts(&counters)
        },
        cost: cost(&counters),
        cupti_crc_by: session
            .cubins
            .library()
            .map_or_else(String::new, |library| format!("{} (version {})", library.path.display(), library.version)),
        notes: notes(session, &status, &counters),
        ..model
    }
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
        cupti_path: crate::symbols::escape::for_screen(&status.cupti_path, 1024),
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
    let detail = crate::symbols::escape::for_screen(&status.detail, 1024);
    match (status.reason.explanation(), detail.as_str()) {
        (explanation, "") => explanation.to_owned(),
        ("", detail) => detail.to_owned(),
        (explanation, detail) => format!("{explanation}: {detail}"),
    }
}

fn notes(session: &Session, status: &Status, counters: &Counters) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String| {
        if applies {
            notes.push(text);
        }
    };
    note(
        session.cut,
        format!(
            "the segment of process {} was cut while it was read: somebody truncated {}. What had not been read by then \
             is lost, and the process itself may die when it writes there",
            session.found.pid,
            crate::symbols::escape::for_screen(&session.found.segment.to_string_lossy(), 1024)
        ),
    );
    note(!session.lease.trouble.is_empty(), session.lease.trouble.clone());
    note(
        status.state.is_none(),
        "the tap is in a state that this version does not know: use a newer gputap".to_owned(),
    );
    let names_lost = counters.get(Counter::NamesLost);
    note(names_lost > 0, format!("{names_lost} kernel names found no room; their kernels show as (unnamed)"));
    let broken = session.names.broken() + session.cubins.broken();
    note(
        broken > 0,
        format!("{broken} cubins or names in the shared memory are not what was stored, and are left out"),
    );
    let panics = counters.get(Counter::Panics);
    note(panics > 0, format!("the tap caught {panics} defects of its own; please report this"));
    let yields = counters.get(Counter::YieldGaps);
    note(yields > 0, format!("the tap gave way {yields} times; modules loaded meanwhile are unknown"));
    let holds_cupti = matches!(status.state, Some(State::Idle | State::Recording | State::BlackBox)) && !session.gone;
    note(
        session.has_torch && holds_cupti,
        format!(
            "while the tap is in, torch.profiler gets no GPU events in this process; `gputap ctl {} yield` lets it",
            session.found.pid
        ),
    );
    notes
}

/// What a tap has counted in all, without a session.
pub(crate) struct Totals {
    pub modules: u64,
    pub cubin_bytes: u64,
    pub attempted: u64,
}

pub(crate) fn totals(attached: &Attached) -> Totals {
    let counters = attached.counters();
    Totals {
        modules: counters.get(Counter::ModuleLoads),
        cubin_bytes: counters.get(Counter::CubinBytes),
        attempted: counters.attempted,
    }
}
