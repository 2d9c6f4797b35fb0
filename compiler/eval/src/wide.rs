//! Signed numbers of 256 bits, as far as exact decimal arithmetic needs them: products of two 38-digit numbers, sums at
//! a common scale, quotients rounded half away from zero.

/// An unsigned number: `hi × 2¹²⁸ + lo`. The derived order is the numbers' order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Magnitude {
    hi: u128,
    lo: u128,
}

impl Magnitude {
    const ZERO: Magnitude = Magnitude { hi: 0, lo: 0 };

    /// The exact product of two 128-bit numbers, by halves.
    fn product(a: u128, b: u128) -> Magnitude {
        const LOW: u128 = u64::MAX as u128;
        let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
        let low = a0 * b0;
        let middle = a1 * b0 + (low >> 64);
        let (middle, carry) = middle.overflowing_add(a0 * b1);
        Magnitude { hi: a1 * b1 + (middle >> 64) + (u128::from(carry) << 64), lo: (middle << 64) | (low & LOW) }
    }

    fn checked_mul(self, factor: u128) -> Option<Magnitude> {
        let low = Magnitude::product(self.lo, factor);
        let hi = low.hi.checked_add(self.hi.checked_mul(factor)?)?;
        Some(Magnitude { hi, lo: low.lo })
    }

    fn checked_add(self, other: Magnitude) -> Option<Magnitude> {
        let (lo, carry) = self.lo.overflowing_add(other.lo);
        let hi = self.hi.checked_add(other.hi)?.checked_add(carry.into())?;
        Some(Magnitude { hi, lo })
    }

    /// `self − other`, which must not be larger.
    fn sub(self, other: Magnitude) -> Magnitude {
        let (lo, borrow) = self.lo.overflowing_sub(other.lo);
        Magnitude { hi: self.hi - other.hi - u128::from(borrow), lo }
    }

    fn bit(self, index: u32) -> u128 {
        if index < 128 { (self.lo >> index) & 1 } else { (self.hi >> (index - 128)) & 1 }
    }

    /// Quotient and remainder; `divisor` is neither 0 nor above 2²⁵⁵.
    fn div_rem(self, divisor: Magnitude) -> (Magnitude, Magnitude) {
        if self.hi == 0 && divisor.hi == 0 {
            let small = |lo| Magnitude { hi: 0, lo };
            return (small(self.lo / divisor.lo), small(self.lo % divisor.lo));
        }
        let (mut quotient, mut rest) = (Magnitude::ZERO, Magnitude::ZERO);
        for index in (0..256).rev() {
            rest = Magnitude { hi: (rest.hi << 1) | (rest.lo >> 127), lo: (rest.lo << 1) | self.bit(index) };
            quotient = Magnitude { hi: (quotient.hi << 1) | (quotient.lo >> 127), lo: quotient.lo << 1 };
            if rest >= divisor {
                rest = rest.sub(divisor);
                quotient.lo |= 1;
            }
        }
        (quotient, rest)
    }
}

/// A signed number of 256 bits. Zero may carry either sign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide {
    negative: bool,
    magnitude: Magnitude,
}

/// 10^k, for k ≤ 38.
pub(crate) fn pow10(k: u32) -> i128 {
    10i128.pow(k)
}

impl From<i128> for Wide {
    fn from(number: i128) -> Self {
        Wide { negative: number < 0, magnitude: Magnitude { hi: 0, lo: number.unsigned_abs() } }
    }
}

impl Wide {
    /// The exact product.
    pub fn product(a: i128, b: i128) -> Wide {
        Wide { negative: (a < 0) != (b < 0), magnitude: Magnitude::product(a.unsigned_abs(), b.unsigned_abs()) }
    }

    /// `self × 10^k`, unless it passes 256 bits.
    pub fn scaled_up(self, mut k: u32) -> Option<Wide> {
        let mut magnitude = self.magnitude;
        while k > 0 {
            let step = k.min(38);
            magnitude = magnitude.checked_mul(pow10(step).unsigned_abs())?;
            k -= step;
        }
        Some(Wide { magnitude, ..self })
    }

    /// The sum, unless it passes 256 bits.
    pub fn checked_add(self, other: Wide) -> Option<Wide> {
        if self.negative == other.negative {
            let magnitude = self.magnitude.checked_add(other.magnitude)?;
            Some(Wide { magnitude, ..self })
        } else if self.magnitude >= other.magnitude {
            Some(Wide { magnitude: self.magnitude.sub(other.magnitude), ..self })
        } else {
            Some(Wide { magnitude: other.magnitude.sub(self.magnitude), ..other })
        }
    }

    /// How it compares with 0.
    pub fn sign(self) -> std::cmp::Ordering {
        let size = self.magnitude.cmp(&Magnitude::ZERO);
        if self.negative { size.reverse() } else { size }
    }

    /// The number with the other sign.
    pub fn negated(self) -> Wide {
        Wide { negative: !self.negative, ..self }
    }

    /// The quotient towards zero, and the remainder with the dividend's sign. `divisor` is not 0.
    pub fn div_rem(self, divisor: Wide) -> (Wide, Wide) {
        let (quotient, rest) = self.magnitude.div_rem(divisor.magnitude);
        (Wide { negative: self.negative != divisor.negative, magnitude: quotient }, Wide { magnitude: rest, ..self })
    }

    /// The quotient rounded half away from zero. `divisor` is not 0.
    pub fn div_round(self, divisor: Wide) -> Wide {
        let (quotient, rest) = self.div_rem(divisor);
        // rest ≥ divisor − rest, which can't overflow as 2 × rest could.
        let up = rest.magnitude >= divisor.magnitude.sub(rest.magnitude);
        let one = Magnitude { hi: 0, lo: up.into() };
        // A quotient of 256 one-bits can only come from a divisor of 1, which leaves no rest.
        Wide { magnitude: quotient.magnitude.checked_add(one).unwrap_or(quotient.magnitude), ..quotient }
    }

    /// `self ÷ 10^k`, rounded half away from zero.
    pub fn scaled_down(self, mut k: u32) -> Wide {
        // Rounding must happen once: all but the last step towards zero would lose the half, so divide by one power.
        let mut divisor = Wide::from(1);
        while k > 0 {
            let step = k.min(38);
            match divisor.scaled_up(step) {
                Some(larger) if larger.magnitude.hi >> 127 == 0 => divisor = larger,
                // The divisor is more than twice any dividend that decimals give: the quotient rounds to 0.
                _ => return Wide::from(0),
            }
            k -= step;
        }
        self.div_round(divisor)
    }

    /// The number, if 128 bits hold it.
    pub fn to_i128(self) -> Option<i128> {
        if self.magnitude.hi != 0 {
            return None;
        }
        match self.negative {
            true => 0i128.checked_sub_unsigned(self.magnitude.lo),
            false => i128::try_from(self.magnitude.lo).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: i128 = 99_999_999_999_999_999_999_999_999_999_999_999_999;

    #[test]
    fn products_divide_back() {
        for (a, b) in [(BIG, BIG), (-BIG, BIG), (BIG, -7), (3, 5), (i128::MAX, i128::MIN), (0, BIG)] {
            let (quotient, rest) = Wide::product(a, b).div_rem(Wide::from(b));
            assert_eq!((quotient.to_i128(), rest.to_i128()), (Some(a), Some(0)), "{a} × {b}");
        }
    }

    #[test]
    fn quotients_round_half_away_from_zero() {
        for (a, b, expected) in
            [(5, 2, 3), (-5, 2, -3), (7, 5, 1), (8, 5, 2), (-7, -2, 4), (1, 2, 1), (-1, 2, -1), (1, 3, 0)]
        {
            assert_eq!(Wide::from(a).div_round(Wide::from(b)).to_i128(), Some(expected), "{a} / {b}");
        }
    }

    #[test]
    fn powers_of_ten_go_up_and_down() {
        let up = Wide::from(BIG).scaled_up(38).unwrap();
        assert_eq!(up.to_i128(), None);
        assert_eq!(up.scaled_down(38).to_i128(), Some(BIG));
        assert_eq!(Wide::from(15).scaled_down(1).to_i128(), Some(2));
        assert_eq!(Wide::from(BIG).scaled_down(90).to_i128(), Some(0));
        assert!(Wide::from(BIG).scaled_up(60).is_none());
    }

    #[test]
    fn sums_have_the_right_sign() {
        let up = |n: i128| Wide::from(n).scaled_up(30).unwrap();
        assert_eq!(up(BIG).checked_add(up(-BIG)).unwrap().to_i128(), Some(0));
        assert_eq!(up(-BIG).checked_add(up(BIG - 1)).unwrap().scaled_down(30).to_i128(), Some(-1));
        assert_eq!(up(1).negated().checked_add(up(3)).unwrap().scaled_down(30).to_i128(), Some(2));
        assert_eq!(Wide::from(i128::MIN).to_i128(), Some(i128::MIN));
    }
}
