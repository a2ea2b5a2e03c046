//! Events that wait for their block, a batch a kind.

use crate::format::{encode_columns, width};
use gputap_ringbuf::event::{Event, EventKind};

/// Events of one kind in one block.
const BATCH: usize = 4096;

#[derive(Default)]
struct Batch {
    columns: Vec<Vec<u64>>,
    times: [u64; 2],
}

/// One batch for each kind, and the names that they are the first to refer to.
#[derive(Default)]
pub struct Batches {
    by_kind: [Batch; EventKind::ALL.len() + 1],
    pub names: Vec<u32>,
    /// Since when something waits, as far as ticks tell.
    since_ns: Option<u64>,
    waiting: bool,
}

impl Batches {
    /// Adds an event; true where its batch is full.
    pub fn add(&mut self, event: &Event) -> bool {
        self.waiting = true;
        let kind = event.kind();
        let batch = &mut self.by_kind[kind as usize];
        if batch.columns.is_empty() {
            batch.columns = vec![Vec::with_capacity(BATCH); width(kind)];
        }
        event.numbers(|numbers| {
            batch.columns.iter_mut().zip(numbers).for_each(|(column, &number)| column.push(number));
            let last = if crate::format::has_end(kind) { numbers[0].max(numbers[1]) } else { numbers[0] };
            batch.times = match batch.columns[0].len() {
                1 => [numbers[0], last],
                _ => [batch.times[0].min(numbers[0]), batch.times[1].max(last)],
            };
        });
        batch.columns[0].len() >= BATCH
    }

    /// Empties the batch of `kind` into `payload`; how many events, and their least and greatest time.
    pub fn take(&mut self, kind: EventKind, payload: &mut Vec<u8>) -> Option<(u32, [u64; 2])> {
        let batch = &mut self.by_kind[kind as usize];
        let count = batch.columns.first().map_or(0, Vec::len);
        if count == 0 {
            return None;
        }
        encode_columns(kind, &batch.columns, payload);
        batch.columns.iter_mut().for_each(Vec::clear);
        Some((count as u32, batch.times))
    }

    /// All have been taken.
    pub fn begin_again(&mut self) {
        (self.since_ns, self.waiting) = (None, false);
    }

    /// Whether something has waited for `longest_ns` at `now_ns`.
    pub fn waits_since(&mut self, now_ns: u64, longest_ns: u64) -> bool {
        if !self.waiting {
            return false;
        }
        let since = *self.since_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(since) >= longest_ns
    }
}
