//! The compact events that lanes carry: fixed layouts of 64-bit words, the same on both sides.
//!
//! The shim encodes, the reader decodes; nothing here does I/O or allocates. A kind that a reader does not know is
//! skipped by its length. Every change of a layout bumps [`crate::layout::ABI_MINOR`] (a new kind) or
//! [`crate::layout::ABI_MAJOR`] (a changed one).

mod packed;
mod payload;

pub use payload::{
    ApiEvent, GraphEvent, KernelEvent, LaunchEvent, MarkerEvent, MemcpyEvent, MemoryEvent, MemsetEvent, OverheadEvent,
    PoolEvent, SyncEvent,
};

/// `name_id` of what has no name, or one that found no room.
pub const NO_NAME: u32 = u32::MAX;

/// Declares the kinds of events, their numbers, names and payloads, from one list.
macro_rules! kinds {
    ($($(#[$doc:meta])* $Kind:ident = $number:literal, $name:literal, $Event:ident;)*) => {
        /// What a lane's record is. The number is part of the ABI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum EventKind { $($(#[$doc])* $Kind = $number,)* }

        impl EventKind {
            pub const ALL: &[EventKind] = &[$(EventKind::$Kind,)*];

            /// A stable name for screens, files and settings.
            pub const fn name(self) -> &'static str {
                match self { $(EventKind::$Kind => $name,)* }
            }

            /// The names of an event's fields and how many numbers each is, in order.
            pub const fn fields(self) -> &'static [(&'static str, usize)] {
                match self { $(EventKind::$Kind => $Event::FIELDS,)* }
            }
        }

        /// Every kind that can be recorded, as a mask of [`EventKind::bit`]s.
        pub const ALL_KINDS: u64 = 0 $(| EventKind::$Kind.bit())*;

        /// An event decoded from a lane's record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[$doc])* $Kind($Event),)* }

        impl Event {
            /// Decodes the payload `words` of a record of `kind`. A longer record of a newer minor version is read by
            /// its prefix. The words are untrusted: any values decode to something, none panics.
            pub fn decode(kind: u16, words: &[u64]) -> Result<Event, DecodeError> {
                match kind {
                    $($number => Ok(Event::$Kind($Event::decode(prefix(kind, words)?))),)*
                    _ => Err(DecodeError::UnknownKind { kind }),
                }
            }

            /// Gives `write` the words of the payload.
            pub fn encode<T>(&self, write: impl FnOnce(&[u64]) -> T) -> T {
                match self { $(Event::$Kind(event) => write(&event.encode()),)* }
            }

            pub fn kind(&self) -> EventKind {
                match self { $(Event::$Kind(_) => EventKind::$Kind,)* }
            }

            /// Gives `write` the fields as numbers, in the order of [`EventKind::fields`].
            #[inline]
            pub fn numbers<T>(&self, write: impl FnOnce(&[u64]) -> T) -> T {
                match self { $(Event::$Kind(event) => write(&event.numbers()),)* }
            }

            /// Events of `kind` from columns, one a number of [`EventKind::fields`], all equally long, into `events`.
            pub fn of_columns(kind: EventKind, columns: &[Vec<u64>], events: &mut Vec<Event>) {
                match kind {
                    $(EventKind::$Kind => {
                        let Some(columns) = columns.first_chunk::<{ $Event::NUMBERS }>() else { return };
                        let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
                        events.extend((0..rows).map(|row| {
                            Event::$Kind($Event::of_numbers(&std::array::from_fn(|column| columns[column][row])))
                        }));
                    })*
                }
            }
        }
    };
}

kinds! {
    Kernel = 1, "kernel", KernelEvent;
    Memcpy = 2, "memcpy", MemcpyEvent;
    Memset = 3, "memset", MemsetEvent;
    Sync = 4, "sync", SyncEvent;
    /// Asked for together with `Kernel`: a graph as a whole, and none of its kernels.
    Graph = 5, "graph", GraphEvent;
    Memory = 6, "memory", MemoryEvent;
    Pool = 7, "pool", PoolEvent;
    Overhead = 8, "overhead", OverheadEvent;
    Runtime = 9, "runtime", ApiEvent;
    Driver = 10, "driver", ApiEvent;
    Marker = 11, "nvtx", MarkerEvent;
    Launch = 12, "launch", LaunchEvent;
}

impl Event {
    /// The slots in the definitions that it refers to; [`NO_NAME`] for none.
    pub fn names(&self) -> [u32; 2] {
        match self {
            Event::Kernel(kernel) => [kernel.name_id, NO_NAME],
            Event::Launch(launch) => [launch.name_id, NO_NAME],
            Event::Marker(marker) => [marker.name_id, marker.domain_id],
            _ => [NO_NAME, NO_NAME],
        }
    }
}

/// What a reader asks for, and a black box records, where nothing else is said.
pub const BASIC_KINDS: u64 = EventKind::Kernel.bit() | EventKind::Memcpy.bit() | EventKind::Memset.bit();

impl EventKind {
    /// The bit that stands for this kind in a lease's wish and in the mask of what is recorded.
    pub const fn bit(self) -> u64 {
        1 << (self as u16)
    }

    pub fn from_name(name: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kinds in a mask, in the order of their numbers.
    pub fn in_mask(mask: u64) -> impl Iterator<Item = EventKind> {
        EventKind::ALL.iter().copied().filter(move |kind| mask & kind.bit() != 0)
    }
}

/// A list of kinds that has a name which is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no kind of event; there are {}, and `all`", EventKind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownKind {
    pub name: String,
}

/// The mask of a list as people write it: `kernel,memcpy`, or `all`.
pub fn kinds_of(list: &str) -> Result<u64, UnknownKind> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).try_fold(0, |mask, name| match name {
        "all" => Ok(ALL_KINDS),
        name => match EventKind::from_name(name) {
            Some(kind) => Ok(mask | kind.bit()),
            None => Err(UnknownKind { name: name.to_owned() }),
        },
    })
}

/// Why the words of a record are not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("unknown record kind {kind}")]
    UnknownKind { kind: u16 },
    #[error("record kind {kind} has {actual_words} words, at least {expected_words} are needed")]
    TooShort { kind: u16, expected_words: usize, actual_words: usize },
}

fn prefix<const N: usize>(kind: u16, words: &[u64]) -> Result<&[u64; N], DecodeError> {
    let too_short = DecodeError::TooShort { kind, expected_words: N, actual_words: words.len() };
    words.first_chunk::<N>().ok_or(too_short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kernel() -> KernelEvent {
        KernelEvent {
            start_ns: 1,
            end_ns: u64::MAX,
            correlation_id: 1 << 32 | 3,
            graph_node_id: 4,
            name_id: 5,
            device_id: 6,
            context_id: 7,
            stream_id: 8,
            graph_id: 9,
            grid: [u32::MAX, 11, 12],
            block: [13, 14, 15],
            static_shared_bytes: 16,
            dynamic_shared_bytes: 17,
            local_bytes_per_thread: 18,
            registers_per_thread: 255,
        }
    }

    #[test]
    fn a_kernel_survives_the_words() {
        assert_eq!(KernelEvent::WORDS, 12);
        assert_eq!(Event::decode(1, &kernel().encode()), Ok(Event::Kernel(kernel())));
    }

    #[test]
    fn the_words_are_the_fields_one_after_the_other() {
        let words = kernel().encode();
        assert_eq!(words[..5], [1, u64::MAX, 1 << 32 | 3, 4, 6 << 32 | 5]);
        assert_eq!(words[11], 255);
    }

    proptest! {
        /// Two fields that shared a byte, or a field that lost one, would not come back.
        #[test]
        fn every_event_survives_the_words(kind in 1u16..=12, words in prop::collection::vec(any::<u64>(), 12)) {
            let event = Event::decode(kind, &words).unwrap();
            prop_assert_eq!(event.kind() as u16, kind);
            let again = event.encode(<[u64]>::to_vec);
            prop_assert_eq!(Event::decode(kind, &again), Ok(event));
            // All but the bytes after the last field, in its word.
            prop_assert_eq!(&again[..again.len() - 1], &words[..again.len() - 1]);
        }
    }

    #[test]
    fn events_survive_columns() {
        let other = KernelEvent { start_ns: 2, ..kernel() };
        let mut columns = vec![Vec::new(); KernelEvent::NUMBERS];
        for event in [kernel(), other] {
            let numbers = event.numbers();
            columns.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
        }
        let mut events = Vec::new();
        Event::of_columns(EventKind::Kernel, &columns, &mut events);
        assert_eq!(events, [Event::Kernel(kernel()), Event::Kernel(other)]);
        let fields: usize = EventKind::Kernel.fields().iter().map(|(_, numbers)| numbers).sum();
        assert_eq!(fields, KernelEvent::NUMBERS);
        assert_eq!(EventKind::Kernel.fields()[9], ("grid", 3));
    }

    #[test]
    fn a_longer_record_is_read_by_its_prefix() {
        let mut longer = kernel().encode().to_vec();
        longer.push(99);
        assert_eq!(Event::decode(1, &longer), Ok(Event::Kernel(kernel())));
    }

    #[test]
    fn unknown_and_short_records_are_errors() {
        assert_eq!(Event::decode(999, &[]), Err(DecodeError::UnknownKind { kind: 999 }));
        let short = DecodeError::TooShort { kind: 1, expected_words: KernelEvent::WORDS, actual_words: 2 };
        assert_eq!(Event::decode(1, &[0; 2]), Err(short));
    }

    #[test]
    fn kinds_are_listed_by_name() {
        assert_eq!(kinds_of("kernel, memcpy,memset"), Ok(BASIC_KINDS));
        assert_eq!(kinds_of("all"), Ok(ALL_KINDS));
        assert_eq!(kinds_of("").unwrap(), 0);
        let error = kinds_of("kernel,kernels").unwrap_err();
        assert!(error.to_string().contains("\"kernels\"") && error.to_string().contains("nvtx"), "{error}");
        assert_eq!(EventKind::in_mask(BASIC_KINDS).count(), 3);
    }
}
