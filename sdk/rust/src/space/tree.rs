//! A tree of maxima over positions: the first position whose value is large enough, in logarithmic time.

/// Values are at least 1 where there is something; 0 = nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaxTree {
    leaves: usize,
    values: Vec<u32>,
}

impl MaxTree {
    pub(crate) fn new(len: usize) -> Self {
        let leaves = len.next_power_of_two();
        Self { leaves, values: vec![0; leaves * 2] }
    }

    pub(crate) fn max(&self) -> u32 {
        self.values.get(1).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, position: usize, value: u32) {
        let mut i = position + self.leaves;
        if self.values[i] == value {
            return;
        }
        self.values[i] = value;
        while i > 1 {
            i /= 2;
            let max = self.values[2 * i].max(self.values[2 * i + 1]);
            if self.values[i] == max {
                return;
            }
            self.values[i] = max;
        }
    }

    /// First position at or after `from` with a value of at least `least` (which is at least 1).
    pub(crate) fn next(&self, from: usize, least: u32) -> Option<usize> {
        if from >= self.leaves || self.max() < least {
            return None;
        }
        let mut i = from + self.leaves;
        while self.values[i] < least {
            while i & 1 == 1 {
                i >>= 1;
            }
            if i == 0 {
                return None;
            }
            i += 1;
        }
        while i < self.leaves {
            i = if self.values[2 * i] >= least { 2 * i } else { 2 * i + 1 };
        }
        Some(i - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::MaxTree;

    #[test]
    fn finds_what_a_scan_finds() {
        for len in [1_usize, 2, 3, 8, 13] {
            let mut tree = MaxTree::new(len);
            let mut plain = vec![0_u32; len];
            let mut seed = 7_u32;
            for _ in 0..500 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (position, value) = ((seed >> 8) as usize % len, (seed >> 20) % 6);
                tree.set(position, value);
                plain[position] = value;
                for from in 0..=len {
                    for least in 1..7 {
                        let scan = (from..len).find(|i| plain[*i] >= least);
                        assert_eq!(tree.next(from, least), scan, "{plain:?} from {from} least {least}");
                    }
                }
            }
        }
    }
}
