//! Copies of memory by direction.

use super::snapshot::CopyRow;
use super::timing::Timing;
use gputap_ringbuf::event::MemcpyEvent;

/// What `CUpti_ActivityMemcpyKind` means. Source: cupti_activity.h, 11.8 to 13.5.
pub fn direction(copy_kind: u8) -> &'static str {
    match copy_kind {
        1 => "HtoD",
        2 => "DtoH",
        3 => "HtoA",
        4 => "AtoH",
        5 => "AtoA",
        6 => "AtoD",
        7 => "DtoA",
        8 => "DtoD",
        9 => "HtoH",
        10 => "PtoP",
        _ => "unknown",
    }
}

/// Directions are few; every kind that CUPTI does not define shares the last place.
const KINDS: usize = 12;

#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    copies: u64,
    bytes: u64,
    total_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Copies {
    by_kind: [Copied; KINDS],
}

impl Copies {
    pub(super) fn count(&mut self, copy: &MemcpyEvent, timing: Timing) {
        let kind = usize::from(copy.copy_kind).min(KINDS - 1);
        let copied = &mut self.by_kind[kind];
        copied.copies = copied.copies.saturating_add(1);
        copied.bytes = copied.bytes.saturating_add(copy.bytes);
        copied.total_ns = copied.total_ns.saturating_add(timing.duration_ns().unwrap_or(0));
    }

    /// One row a direction seen. Kind 0 and the undefined kinds are one row, "unknown".
    pub(super) fn rows(&self) -> Vec<CopyRow> {
        let mut rows: Vec<CopyRow> = Vec::new();
        for (kind, copied) in (0u8..).zip(&self.by_kind).filter(|(_, copied)| copied.copies > 0) {
            let direction = direction(kind);
            match rows.iter_mut().find(|row| row.direction == direction) {
                Some(row) => {
                    row.copies = row.copies.saturating_add(copied.copies);
                    row.bytes = row.bytes.saturating_add(copied.bytes);
                    row.total_ns = row.total_ns.saturating_add(copied.total_ns);
                }
                None => rows.push(CopyRow {
                    direction: direction.to_owned(),
                    copies: copied.copies,
                    bytes: copied.bytes,
                    total_ns: copied.total_ns,
                }),
            }
        }
        rows
    }
}
