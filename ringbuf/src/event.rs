//! The compact events that lanes carry: fixed layouts of 64-bit words, the same on both sides.
//!
//! The shim encodes, the reader decodes; nothing here does I/O or allocates. A kind that a reader does not know is
//! skipped by its length. Every change of a layout bumps [`crate::layout::ABI_MINOR`] (a new kind) or
//! [`crate::layout::ABI_MAJOR`] (a changed one). Times are nanoseconds of CLOCK_REALTIME, as CUPTI gives them.

/// What a lane's record is. The number is part of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum EventKind {
    Kernel = 1,
    Memcpy = 2,
    Memset = 3,
}

impl EventKind {
    pub const ALL: [EventKind; 3] = [EventKind::Kernel, EventKind::Memcpy, EventKind::Memset];

    /// The bit that stands for this kind in a lease's wish and in the mask of what is recorded.
    pub const fn bit(self) -> u64 {
        1 << (self as u16)
    }

    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Kernel => "kernel",
            EventKind::Memcpy => "memcpy",
            EventKind::Memset => "memset",
        }
    }
}

/// Every kind that can be recorded, as a mask of [`EventKind::bit`]s.
pub const ALL_KINDS: u64 = EventKind::Kernel.bit() | EventKind::Memcpy.bit() | EventKind::Memset.bit();

/// A kernel's execution on a device. Source: `CUpti_ActivityKernel*`, kind CONCURRENT_KERNEL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelEvent {
    pub start_ns: u64,
    /// 0 where CUPTI delivered the record before the kernel had finished.
    pub end_ns: u64,
    /// Slot of the kernel's mangled name in the definitions area, or [`NO_NAME`].
    pub name_id: u32,
    pub correlation_id: u32,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub graph_id: u32,
    pub graph_node_id: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers_per_thread: u16,
    pub static_shared_bytes: u32,
    pub dynamic_shared_bytes: u32,
    pub local_bytes_per_thread: u32,
}

/// `name_id` of a kernel whose name found no room or was null.
pub const NO_NAME: u32 = u32::MAX;

/// A copy of memory. Source: `CUpti_ActivityMemcpy*`, kind MEMCPY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemcpyEvent {
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    pub correlation_id: u32,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub graph_id: u32,
    pub graph_node_id: u64,
    /// `CUpti_ActivityMemcpyKind`: 1 host to device, 2 device to host, 8 device to device, 10 peer to peer, ...
    pub copy_kind: u8,
    /// `CUpti_ActivityMemoryKind` of the source: 1 pageable, 2 pinned, 3 device, 4 array, 5 managed, ...
    pub src_kind: u8,
    /// `CUpti_ActivityMemoryKind` of the destination.
    pub dst_kind: u8,
    /// Bit 0: asynchronous.
    pub flags: u8,
}

/// A fill of memory. Source: `CUpti_ActivityMemset*`, kind MEMSET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemsetEvent {
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    pub correlation_id: u32,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub graph_id: u32,
    pub graph_node_id: u64,
    pub value: u32,
    pub memory_kind: u8,
    pub flags: u8,
}

/// An event decoded from a lane's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Kernel(KernelEvent),
    Memcpy(MemcpyEvent),
    Memset(MemsetEvent),
}

/// Why the words of a record are not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("unknown record kind {kind}")]
    UnknownKind { kind: u16 },
    #[error("record kind {kind} has {actual_words} words, at least {expected_words} are needed")]
    TooShort { kind: u16, expected_words: usize, actual_words: usize },
}

const KERNEL_WORDS: usize = 11;
const MEMCPY_WORDS: usize = 8;
const MEMSET_WORDS: usize = 8;

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

impl KernelEvent {
    pub fn encode(&self) -> [u64; KERNEL_WORDS] {
        [
            self.start_ns,
            self.end_ns,
            pair(self.name_id, self.correlation_id),
            pair(self.device_id, self.context_id),
            pair(self.stream_id, self.graph_id),
            self.graph_node_id,
            pair(self.grid[0], self.grid[1]),
            pair(self.grid[2], self.block[0]),
            pair(self.block[1], self.block[2]),
            pair(self.static_shared_bytes, self.dynamic_shared_bytes),
            pair(self.local_bytes_per_thread, u32::from(self.registers_per_thread)),
        ]
    }

    fn decode(w: &[u64; KERNEL_WORDS]) -> Self {
        KernelEvent {
            start_ns: w[0],
            end_ns: w[1],
            name_id: low(w[2]),
            correlation_id: high(w[2]),
            device_id: low(w[3]),
            context_id: high(w[3]),
            stream_id: low(w[4]),
            graph_id: high(w[4]),
            graph_node_id: w[5],
            grid: [low(w[6]), high(w[6]), low(w[7])],
            block: [high(w[7]), low(w[8]), high(w[8])],
            static_shared_bytes: low(w[9]),
            dynamic_shared_bytes: high(w[9]),
            local_bytes_per_thread: low(w[10]),
            registers_per_thread: high(w[10]) as u16,
        }
    }
}

impl MemcpyEvent {
    pub fn encode(&self) -> [u64; MEMCPY_WORDS] {
        [
            self.start_ns,
            self.end_ns,
            self.bytes,
            pair(self.correlation_id, u32::from_le_bytes([self.copy_kind, self.src_kind, self.dst_kind, self.flags])),
            pair(self.device_id, self.context_id),
            pair(self.stream_id, self.graph_id),
            self.graph_node_id,
            0,
        ]
    }

    fn decode(w: &[u64; MEMCPY_WORDS]) -> Self {
        let [copy_kind, src_kind, dst_kind, flags] = high(w[3]).to_le_bytes();
        MemcpyEvent {
            start_ns: w[0],
            end_ns: w[1],
            bytes: w[2],
            correlation_id: low(w[3]),
            device_id: low(w[4]),
            context_id: high(w[4]),
            stream_id: low(w[5]),
            graph_id: high(w[5]),
            graph_node_id: w[6],
            copy_kind,
            src_kind,
            dst_kind,
            flags,
        }
    }
}

impl MemsetEvent {
    pub fn encode(&self) -> [u64; MEMSET_WORDS] {
        [
            self.start_ns,
            self.end_ns,
            self.bytes,
            pair(self.correlation_id, self.value),
            pair(self.device_id, self.context_id),
            pair(self.stream_id, self.graph_id),
            self.graph_node_id,
            u64::from(u16::from_le_bytes([self.memory_kind, self.flags])),
        ]
    }

    fn decode(w: &[u64; MEMSET_WORDS]) -> Self {
        let [memory_kind, flags] = (w[7] as u16).to_le_bytes();
        MemsetEvent {
            start_ns: w[0],
            end_ns: w[1],
            bytes: w[2],
            correlation_id: low(w[3]),
            value: high(w[3]),
            device_id: low(w[4]),
            context_id: high(w[4]),
            stream_id: low(w[5]),
            graph_id: high(w[5]),
            graph_node_id: w[6],
            memory_kind,
            flags,
        }
    }
}

impl Event {
    /// Decodes the payload `words` of a record of `kind`. A longer record of a newer minor version is read by its
    /// prefix. The words are untrusted: any values decode to something, none panics.
    pub fn decode(kind: u16, words: &[u64]) -> Result<Event, DecodeError> {
        const KERNEL: u16 = EventKind::Kernel as u16;
        const MEMCPY: u16 = EventKind::Memcpy as u16;
        const MEMSET: u16 = EventKind::Memset as u16;
        match kind {
            KERNEL => Ok(Event::Kernel(KernelEvent::decode(prefix(kind, words)?))),
            MEMCPY => Ok(Event::Memcpy(MemcpyEvent::decode(prefix(kind, words)?))),
            MEMSET => Ok(Event::Memset(MemsetEvent::decode(prefix(kind, words)?))),
            _ => Err(DecodeError::UnknownKind { kind }),
        }
    }

    pub fn kind(&self) -> EventKind {
        match self {
            Event::Kernel(_) => EventKind::Kernel,
            Event::Memcpy(_) => EventKind::Memcpy,
            Event::Memset(_) => EventKind::Memset,
        }
    }
}

fn prefix<const N: usize>(kind: u16, words: &[u64]) -> Result<&[u64; N], DecodeError> {
    let too_short = DecodeError::TooShort { kind, expected_words: N, actual_words: words.len() };
    words.first_chunk::<N>().ok_or(too_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> KernelEvent {
        KernelEvent {
            start_ns: 1,
            end_ns: 2,
            name_id: 3,
            correlation_id: 4,
            device_id: 5,
            context_id: 6,
            stream_id: 7,
            graph_id: 8,
            graph_node_id: 9,
            grid: [u32::MAX, 11, 12],
            block: [13, 14, 15],
            registers_per_thread: 255,
            static_shared_bytes: 16,
            dynamic_shared_bytes: 17,
            local_bytes_per_thread: 18,
        }
    }

    #[test]
    fn events_survive_the_words() {
        let kernel = kernel();
        assert_eq!(Event::decode(1, &kernel.encode()), Ok(Event::Kernel(kernel)));
        let memcpy = MemcpyEvent {
            start_ns: 1,
            end_ns: 2,
            bytes: 3,
            correlation_id: 4,
            device_id: 5,
            context_id: 6,
            stream_id: 7,
            graph_id: 8,
            graph_node_id: 9,
            copy_kind: 10,
            src_kind: 11,
            dst_kind: 12,
            flags: 13,
        };
        assert_eq!(Event::decode(2, &memcpy.encode()), Ok(Event::Memcpy(memcpy)));
        let memset = MemsetEvent {
            start_ns: 1,
            end_ns: 2,
            bytes: 3,
            correlation_id: 4,
            device_id: 5,
            context_id: 6,
            stream_id: 7,
            graph_id: 8,
            graph_node_id: 9,
            value: 10,
            memory_kind: 11,
            flags: 12,
        };
        assert_eq!(Event::decode(3, &memset.encode()), Ok(Event::Memset(memset)));
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
        let short = DecodeError::TooShort { kind: 1, expected_words: KERNEL_WORDS, actual_words: 2 };
        assert_eq!(Event::decode(1, &[0; 2]), Err(short));
    }
}
