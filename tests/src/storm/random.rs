//! Numbers that follow from a seed.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    /// What follows from the seed and the numbers of who asks.
    pub fn new(seed: u64, of: &[u64]) -> Random {
        Random(of.iter().fold(mixed(seed), |state, number| mixed(state ^ mixed(*number))))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// Below `end`, which is above 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn in_100(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

pub fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
