//! Random numbers from a seed, and random changes to bytes.

/// SplitMix64: small, and the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// Returns a byte that is special to parsers, or any byte.
    pub fn byte(&mut self) -> u8 {
        match self.below(4) {
            0 => [0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'\\'][self.below(8)],
            _ => self.next().to_le_bytes()[0],
        }
    }

    /// Changes some bytes, truncates, or extends.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            match self.below(8) {
                0 => bytes.truncate(self.below(bytes.len() + 1)),
                1 => bytes.extend(self.bytes(9)),
                _ if bytes.is_empty() => {}
                _ => {
                    let at = self.below(bytes.len());
                    bytes[at] = self.byte();
                }
            }
        }
    }
}

/// Returns the number of runs. The first runs are always the same.
pub fn times(each: u64) -> u64 {
    let times = std::env::var("JAATO_FUZZ_TIMES").ok().and_then(|times| times.parse::<u64>().ok());
    each * times.unwrap_or(1)
}
