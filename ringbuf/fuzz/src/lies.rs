//! What an input says: which words of the segment to make wrong, how, and when to read meanwhile.

use crate::segment::{SIZES, Segment};
use gputap_ringbuf::{
    lane::CHUNK_HEADER_WORDS,
    layout::{
        CHUNK_WORDS, COUNTER_LINES, COUNTERS, LINE, Layout, SLOT_WORDS, STATUS, STORE_CONTROL_WORDS, Sizes, ident,
        status,
    },
    sync::Ordering,
    words::{ReadWords, Words},
};

const LIE_BYTES: usize = 12;
/// More than this makes an input slow, not better.
const MAX_LIES: usize = 128;

/// One step of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Word `at` says `value`.
    Word { at: usize, value: u64 },
    /// The total size agrees with the sizes of the parts, as lies of a careful liar do.
    TotalAgrees,
    /// The segment ends after `words`: only heard before the reader has attached.
    Cut { words: usize },
    /// The reader takes a turn, of about `records` a lane.
    Read { records: u64 },
}

/// The lies of an input: `place and manner | which | offset (16) | value (64)`, little-endian.
pub fn lies(input: &[u8], segment: &Segment) -> Vec<Lie> {
    input.as_chunks::<LIE_BYTES>().0.iter().take(MAX_LIES).map(|bytes| lie(bytes, segment)).collect()
}

fn lie(bytes: &[u8; LIE_BYTES], segment: &Segment) -> Lie {
    let [place, which, o0, o1, value @ ..] = *bytes;
    let (which, offset) = (usize::from(which), usize::from(u16::from_le_bytes([o0, o1])));
    let value = u64::from_le_bytes(value);
    match place & 15 {
        11 => Lie::TotalAgrees,
        12 => Lie::Cut { words: value as usize % (segment.layout.total_words + 1) },
        13.. => Lie::Read { records: value % 4096 },
        place => {
            let at = word(place, which, offset, &segment.layout);
            Lie::Word { at, value: manner(bytes[0] >> 4, value, segment.right(at)) }
        }
    }
}

/// Mostly the words that say where and how much.
fn word(place: u8, which: usize, offset: usize, layout: &Layout) -> usize {
    let lane = which % SIZES.lanes;
    match place {
        0 => ident::LANES + offset % 8,
        1 => offset % ident::WORDS,
        2 => STATUS + offset % status::WORDS,
        3 => COUNTERS + offset % COUNTER_LINES * LINE,
        4 => layout.lane_header(lane) + offset % 4,
        5 => layout.lanes + which % 8 * CHUNK_WORDS + offset % (CHUNK_HEADER_WORDS + 2),
        6 => layout.lane_data(lane) + offset % SIZES.lane_words,
        7 => layout.cubin_control + offset % 3 * LINE,
        8 => layout.cubin_control + STORE_CONTROL_WORDS + offset % (SIZES.cubin_slots * SLOT_WORDS),
        9 => layout.definition_control + offset % 3 * LINE,
        10 => layout.definition_control + STORE_CONTROL_WORDS + offset % (SIZES.definition_slots * SLOT_WORDS),
        _ => (which << 16 | offset) % layout.total_words,
    }
}

/// Values that break arithmetic more often than uniform ones do.
fn manner(manner: u8, value: u64, right: u64) -> u64 {
    match manner & 7 {
        0 | 1 => value,
        2 => 1 << (value % 64),
        3 => (1 << (value % 64)) - 1,
        4 => u64::MAX - value % 64,
        5 => right ^ 1 << (value % 64),
        6 => right.wrapping_add(value % 64),
        _ => right.wrapping_sub(value % 64),
    }
}

/// Makes the word of a lie wrong.
pub fn tell(lie: Lie, segment: &Segment) {
    match lie {
        Lie::Word { at, value } => segment.words.store(at, value, Ordering::Relaxed),
        Lie::TotalAgrees => {
            if let Some(total_bytes) = total_bytes(segment) {
                segment.words.store(ident::TOTAL_BYTES, total_bytes, Ordering::Relaxed);
            }
        }
        Lie::Cut { .. } | Lie::Read { .. } => {}
    }
}

/// Makes it right again.
pub fn take_back(lie: Lie, segment: &Segment) {
    match lie {
        Lie::Word { at, .. } => segment.put_right(at),
        Lie::TotalAgrees => segment.put_right(ident::TOTAL_BYTES),
        Lie::Cut { .. } | Lie::Read { .. } => {}
    }
}

fn total_bytes(segment: &Segment) -> Option<u64> {
    let size = |word: usize| segment.words.load(word, Ordering::Relaxed) as usize;
    let sizes = Sizes {
        lanes: size(ident::LANES),
        lane_words: size(ident::LANE_WORDS),
        cubin_slots: size(ident::CUBIN_SLOTS),
        cubin_bytes: size(ident::CUBIN_BYTES),
        definition_slots: size(ident::DEFINITION_SLOTS),
        definition_bytes: size(ident::DEFINITION_BYTES),
    };
    Some(Layout::new(sizes.checked().ok()?).total_words as u64 * 8)
}
