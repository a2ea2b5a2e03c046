//! Who writes a segment: written once before anyone can see it, the magic last.

use crate::{
    layout::{ABI_MAJOR, ABI_MINOR, BadSize, Layout, MAGIC, Sizes, ident},
    sync::Ordering,
    words::{ReadWords, Words},
};

/// What kind of memory carries the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A POSIX shared memory object; outlives the process.
    Shm,
    /// A sealed memfd; lives as long as somebody maps it.
    Memfd,
}

impl Backing {
    pub fn name(self) -> &'static str {
        match self {
            Backing::Shm => "shm",
            Backing::Memfd => "memfd",
        }
    }
}

/// Which process, and which tap of it, wrote a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub abi_major: u32,
    pub abi_minor: u32,
    /// As the process sees itself.
    pub pid: u32,
    /// Inode of its pid namespace.
    pub pid_namespace: u64,
    /// Field 22 of its /proc/PID/stat, clock ticks since boot: tells a recycled pid.
    pub start_ticks: u64,
    pub boot_id: u128,
    /// Random; the same in the control object.
    pub nonce: u64,
    /// CLOCK_MONOTONIC when the tap started.
    pub started_ns: u64,
    pub backing: Backing,
}

/// Why the head of a segment was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    #[error("this is not a gputap segment (magic {found:#x}); it may be one that is just being made")]
    NotOurs { found: u64 },
    #[error(
        "the tap speaks ABI {found_major}, this gputap speaks {ABI_MAJOR}: use the gputap that the job was started with"
    )]
    OtherAbi { found_major: u32 },
    #[error("the segment was written on a machine of the other byte order: read it there")]
    OtherByteOrder,
    #[error("the header is broken: its check word is {found:#x}, its contents make {expected:#x}")]
    Broken { found: u64, expected: u64 },
    #[error("the header is broken: {0}")]
    BadSize(#[from] BadSize),
    #[error("the segment is cut short: {expected_bytes} bytes by its header, {actual_bytes} are there")]
    CutShort { expected_bytes: u64, actual_bytes: u64 },
}

impl Identity {
    /// Writes everything but the magic.
    pub fn write<W: Words>(&self, words: &W, sizes: &Sizes) {
        let put = |index, value| words.store(index, value, Ordering::Relaxed);
        put(ident::ABI, u64::from(self.abi_minor) | u64::from(self.abi_major) << 32);
        put(ident::TOTAL_BYTES, Layout::new(*sizes).total_words as u64 * 8);
        put(ident::PID, u64::from(self.pid));
        put(ident::PID_NAMESPACE, self.pid_namespace);
        put(ident::START_TICKS, self.start_ticks);
        put(ident::BOOT_ID, self.boot_id as u64);
        put(ident::BOOT_ID + 1, (self.boot_id >> 64) as u64);
        put(ident::NONCE, self.nonce);
        put(ident::STARTED_NS, self.started_ns);
        put(ident::LANES, sizes.lanes as u64);
        put(ident::LANE_WORDS, sizes.lane_words as u64);
        put(ident::CUBIN_SLOTS, sizes.cubin_slots as u64);
        put(ident::CUBIN_BYTES, sizes.cubin_bytes as u64);
        put(ident::DEFINITION_SLOTS, sizes.definition_slots as u64);
        put(ident::DEFINITION_BYTES, sizes.definition_bytes as u64);
        put(ident::BACKING, if self.backing == Backing::Memfd { 1 } else { 0 });
        let mut w = [0; ident::WORDS];
        words.load_all(0, &mut w);
        put(ident::CHECK, check(&w));
    }

    /// Makes the segment acceptable to readers.
    pub fn publish<W: Words>(words: &W) {
        // SYNC: pairs with the Acquire load of MAGIC in `read`.
        words.store(ident::MAGIC, MAGIC, Ordering::Release);
    }

    /// Reads and checks an identity block against the `actual_bytes` that the segment has. Trusts nothing.
    pub fn read<R: ReadWords>(words: &R, actual_bytes: u64) -> Result<(Identity, Layout), BadHeader> {
        // SYNC: pairs with the Release store of MAGIC in `publish`.
        let found = words.load(ident::MAGIC, Ordering::Acquire);
        if found == MAGIC.swap_bytes() {
            return Err(BadHeader::OtherByteOrder);
        }
        if found != MAGIC {
            return Err(BadHeader::NotOurs { found });
        }
        let mut w = [0; ident::WORDS];
        words.load_all(0, &mut w);
        let found_major = (w[ident::ABI] >> 32) as u32;
        if found_major != ABI_MAJOR {
            return Err(BadHeader::OtherAbi { found_major });
        }
        let (found, expected) = (w[ident::CHECK], check(&w));
        if found != expected {
            return Err(BadHeader::Broken { found, expected });
        }
        let size = |index: usize| usize::try_from(w[index]).unwrap_or(usize::MAX);
        let sizes = Sizes {
            lanes: size(ident::LANES),
            lane_words: size(ident::LANE_WORDS),
            cubin_slots: size(ident::CUBIN_SLOTS),
            cubin_bytes: size(ident::CUBIN_BYTES),
            definition_slots: size(ident::DEFINITION_SLOTS),
            definition_bytes: size(ident::DEFINITION_BYTES),
        };
        let layout = Layout::new(sizes.checked()?);
        let expected_bytes = layout.total_words as u64 * 8;
        if expected_bytes > actual_bytes || expected_bytes != w[ident::TOTAL_BYTES] {
            return Err(BadHeader::CutShort { expected_bytes, actual_bytes });
        }
        let identity = Identity {
            abi_major: found_major,
            abi_minor: w[ident::ABI] as u32,
            pid: w[ident::PID] as u32,
            pid_namespace: w[ident::PID_NAMESPACE],
            start_ticks: w[ident::START_TICKS],
            boot_id: u128::from(w[ident::BOOT_ID]) | u128::from(w[ident::BOOT_ID + 1]) << 64,
            nonce: w[ident::NONCE],
            started_ns: w[ident::STARTED_NS],
            backing: if w[ident::BACKING] == 1 { Backing::Memfd } else { Backing::Shm },
        };
        Ok((identity, layout))
    }

    /// A fresh identity of the present ABI for this process.
    pub fn current(pid: u32, backing: Backing, nonce: u64, started_ns: u64) -> Identity {
        let process = crate::process::this();
        Identity {
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            pid,
            pid_namespace: process.pid_namespace,
            start_ticks: process.start_ticks,
            boot_id: process.boot_id,
            nonce,
            started_ns,
            backing,
        }
    }
}

/// Rotated, so that two words with the same wrong byte do not make up for each other.
fn check(w: &[u64; ident::WORDS]) -> u64 {
    let covered = (ident::ABI..ident::WORDS).filter(|index| *index != ident::CHECK);
    covered.fold(MAGIC, |xor, index| xor ^ w[index].rotate_left(index as u32))
}
