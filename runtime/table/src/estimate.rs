//! The estimated number of distinct values: HyperLogLog.
//!
//! Flajolet, Fusy, Gandouet, Meunier: "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm" (2007), with 2¹²
//! registers (standard error 1.04 / √4096 = 1.6 %), 64-bit hashes, and linear counting for small numbers.

/// log₂ of the number of registers.
const BITS: u32 = 12;
const REGISTERS: usize = 1 << BITS;

/// What was seen so far.
#[derive(Clone)]
pub struct Estimate(Box<[u8; REGISTERS]>);

impl Estimate {
    /// Nothing was seen.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Estimate(Box::new([0; REGISTERS]))
    }

    /// Sees a value, by the hash of its bytes.
    pub fn add(&mut self, hash: u64) {
        // The finalizer of MurmurHash3: the table's hash is made for tables, here every bit counts.
        let mut mixed = hash;
        for factor in [0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53] {
            mixed = (mixed ^ (mixed >> 33)).wrapping_mul(factor);
        }
        mixed ^= mixed >> 33;
        let register = (mixed >> (64 - BITS)) as usize;
        // The place of the first 1 in the other bits, from 1; the marker ends a run of zeros.
        let rank = ((mixed << BITS) | (1 << (BITS - 1))).leading_zeros() as u8 + 1;
        self.0[register] = self.0[register].max(rank);
    }

    /// Sees what `other` has seen.
    pub fn merge(&mut self, other: &Estimate) {
        self.0.iter_mut().zip(other.0.iter()).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
    }

    /// The registers.
    pub fn registers(&self) -> &[u8] {
        &self.0[..]
    }

    /// From registers; `None` if they are not as many as an estimate has.
    pub fn from_registers(registers: &[u8]) -> Option<Self> {
        Some(Estimate(Box::new(registers.try_into().ok()?)))
    }

    /// The estimate.
    pub fn count(&self) -> u64 {
        let registers = REGISTERS as f64;
        let mut of_rank = [0u32; 256];
        self.0.iter().for_each(|&rank| of_rank[usize::from(rank)] += 1);
        let sum: f64 =
            of_rank.iter().zip(0i32..).map(|(&count, rank)| f64::from(count) * f64::from(-rank).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = of_rank[0];
        let estimate =
            if raw <= 2.5 * registers && empty > 0 { registers * (registers / f64::from(empty)).ln() } else { raw };
        estimate.round() as u64
    }

    /// Bytes of the registers.
    pub const BYTES: usize = REGISTERS;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_key;

    #[test]
    fn estimates_are_near() {
        for count in [0u64, 1, 10, 1_000, 10_000, 20_000, 300_000] {
            let (mut first, mut second) = (Estimate::new(), Estimate::new());
            for n in 0..count {
                // Each value twice, and both halves overlap.
                first.add(hash_key(&n.to_le_bytes()));
                if n % 3 != 0 {
                    second.add(hash_key(&n.to_le_bytes()));
                }
            }
            second.merge(&first);
            assert_eq!(first.count(), second.count());
            let error = (first.count() as f64 - count as f64).abs();
            assert!(error <= count as f64 * 0.05, "{} for {count}", first.count());
        }
    }
}
