//! Numbers that look random and are the same for the same seed: splitmix64.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// `number`, up to 3 % more or less; one in 1,000 takes three times as long.
    pub fn around(&mut self, number: u64) -> u64 {
        let varied = number * 97 / 100 + self.below(number * 6 / 100 + 1);
        if self.below(1000) == 0 { varied * 3 } else { varied }
    }
}
