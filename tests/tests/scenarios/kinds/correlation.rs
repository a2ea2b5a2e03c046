//! CUPTI's correlation ids have 32 bits and wrap; those of events do not.

use std::collections::BTreeSet;

use gputap_ringbuf::event::{ALL_KINDS, Event, EventKind};

use super::run::Run;

/// Six calls before the wrap.
const FIRST: u64 = 4_294_967_290;

#[test]
fn ids_are_unique_and_ascend_across_the_wrap() {
    let mut run = Run::start(&[("FAKE_CUDA_FIRST_CORRELATION", "4294967290"), ("GPUTAP_LAUNCHES", "1")]);
    let _wish = run.wish(ALL_KINDS & !EventKind::Graph.bit());
    run.actor.act("load 1");
    run.actor.act("launch 20");
    for _ in 0..3 {
        run.turn();
        run.actor.act("threads 1");
    }
    run.catch_up();
    run.actor.act("shown");
    let shown: Vec<_> = std::mem::take(&mut run.actor.shown).iter().map(|told| told.correlation_id()).collect();
    let records: Vec<_> = run.got.told.iter().filter(|told| told.event.kind() != EventKind::Launch).collect();
    let ids: Vec<_> = records.iter().map(|told| told.correlation_id()).collect();
    assert!(ids.iter().map(|id| id & u64::from(u32::MAX)).eq(shown.iter().copied()), "the low half is CUPTI's");
    // 0 is CUPTI's for none, and by the wrap one call's: it stays 0.
    assert!(ids.iter().all(|&id| id == 0 || (FIRST..FIRST + 1000).contains(&id)), "{ids:?}");
    assert!(
        ids.iter().any(|&id| id > u64::from(u32::MAX)) && ids.iter().any(|&id| id <= u64::from(u32::MAX)),
        "{ids:?}"
    );

    let kernels: Vec<_> = run.got.of(EventKind::Kernel).iter().map(|told| told.correlation_id()).collect();
    assert_eq!(kernels.len(), 1 + 20 + 36);
    assert!(kernels.is_sorted_by(|a, b| a < b || *b == 0 || *a == 0), "over the wrap and over threads: {kernels:?}");
    assert_eq!(kernels.iter().collect::<BTreeSet<_>>().len(), kernels.len(), "each its own");
    let launches: BTreeSet<_> = run.got.of(EventKind::Launch).iter().map(|told| told.correlation_id()).collect();
    assert!(launches.into_iter().eq(kernels.iter().copied().collect::<BTreeSet<_>>()));
    let calls: BTreeSet<_> = records
        .iter()
        .filter_map(|told| match told.event {
            Event::Driver(call) if call.callback_id == 307 => Some(call.correlation_id),
            _ => None,
        })
        .collect();
    assert!(calls.into_iter().eq(kernels.into_iter().collect::<BTreeSet<_>>()));
}
