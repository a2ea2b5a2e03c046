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

/// Copies of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub copies: u64,
    pub bytes: u64,
    pub total_ns: u64,
    /// Copies whose times are flawed, and the bytes of the others: those that `total_ns` was needed for.
    pub flagged: u64,
    pub timed_bytes: u64,
}

impl Copied {
    fn add(&mut self, other: &Copied) {
        let Copied { copies, bytes, total_ns, flagged, timed_bytes } = *other;
        self.copies = self.copies.saturating_add(copies);
        self.bytes = self.bytes.saturating_add(bytes);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.flagged = self.flagged.saturating_add(flagged);
        self.timed_bytes = self.timed_bytes.saturating_add(timed_bytes);
    }
}

/// Copies by direction.
#[derive(Debug, Default)]
pub struct Copies {
    by_kind: [Copied; KINDS],
}

impl Copies {
    pub fn count(&mut self, copy: &MemcpyEvent, timing: Timing) {
        let kind = usize::from(copy.copy_kind).min(KINDS - 1);
        let duration_ns = timing.duration_ns();
        self.by_kind[kind].add(&Copied {
            copies: 1,
            bytes: copy.bytes,
            total_ns: duration_ns.unwrap_or(0),
            flagged: u64::from(duration_ns.is_none()),
            timed_bytes: duration_ns.map_or(0, |_| copy.bytes),
        });
    }

    /// Adds the copies of `other`, of another process, say.
    pub fn merge(&mut self, other: &Copies) {
        self.by_kind.iter_mut().zip(&other.by_kind).for_each(|(sum, one)| sum.add(one));
    }

    /// One a direction seen. Kind 0 and the undefined kinds are one, "unknown".
    pub fn by_direction(&self) -> Vec<(&'static str, Copied)> {
        let mut all: Vec<(&'static str, Copied)> = Vec::new();
        for (kind, copied) in (0u8..).zip(&self.by_kind).filter(|(_, copied)| copied.copies > 0) {
            let direction = direction(kind);
            match all.iter_mut().find(|(other, _)| *other == direction) {
                Some((_, sum)) => sum.add(copied),
                None => all.push((direction, *copied)),
            }
        }
        all
    }

    /// The same, as rows of a snapshot.
    pub(super) fn rows(&self) -> Vec<CopyRow> {
        let row = |(direction, copied): (&str, Copied)| CopyRow {
            direction: direction.to_owned(),
            copies: copied.copies,
            bytes: copied.bytes,
            total_ns: copied.total_ns,
        };
        self.by_direction().into_iter().map(row).collect()
    }
}
