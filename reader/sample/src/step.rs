//! What a training step launches: the same kernels with the same shapes each time.

use crate::random::Random;

/// The sample's streams, as CUDA numbers them.
pub const COMPUTE: u32 = 7;
pub const SIDE: u32 = 20;
pub const COLLECTIVE: u32 = 24;
pub const COPY: u32 = 28;

/// Kernels in a step.
pub const KERNELS: usize = 450;
/// Of them, so many at the end are nodes of a graph, where there are graphs.
pub const GRAPH_NODES: usize = 60;
/// Every so many a collective runs beside the others.
const COLLECTIVE_EVERY: usize = 36;
/// And every so many one of another stream.
const SIDE_EVERY: usize = 15;

/// A launch of a step, as it is each time.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub name: usize,
    pub stream_id: u32,
    pub duration_ns: u64,
    /// Between the end of the kernel before it in its stream and its start, at least.
    pub pause_ns: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    pub static_shared_bytes: u32,
    pub dynamic_shared_bytes: u32,
}

/// The launches of each step, of kernels of `names` names, the first of which is the collective.
pub fn plan(names: usize, seed: u64) -> Vec<Slot> {
    let mut random = Random::new(seed ^ 0x57e9);
    (0..KERNELS).map(|position| slot(position, names, &mut random)).collect()
}

fn slot(position: usize, names: usize, random: &mut Random) -> Slot {
    let (name, stream_id) = match position {
        position if position % COLLECTIVE_EVERY == COLLECTIVE_EVERY - 1 => (0, COLLECTIVE),
        position if position % SIDE_EVERY == SIDE_EVERY - 1 => (1 + position % (names - 1), SIDE),
        position => (1 + position % (names - 1), COMPUTE),
    };
    let duration_ns = match name {
        0 => 180_000,
        1 | 2 => 60_000 + random.below(90_000),
        _ => 1_800 + 900 * random.below(20),
    };
    Slot {
        name,
        stream_id,
        duration_ns,
        pause_ns: 300 + random.below(900),
        grid: [1 + random.below(1024) as u32, 1 + (random.below(4) == 0) as u32 * 11, 1],
        block: [[128, 256, 384, 512][random.below(4) as usize], 1, 1],
        registers: (16 + 8 * random.below(30)) as u16,
        static_shared_bytes: 1024 * random.below(4) as u32,
        dynamic_shared_bytes: if name < 3 { 227 * 1024 } else { 0 },
    }
}
