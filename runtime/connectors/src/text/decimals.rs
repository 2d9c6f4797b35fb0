//! Decimals of a column. It may not know which rows they belong to, nor what becomes of texts that it doesn't read.

use std::cell::Cell;
use std::ops::Mul;

use super::blocks::{BLOCK, Bounds, MOST_DECIMALS, Numbers};
use super::columns::Fast;

/// Decimals, whose texts mostly have as many decimals as one another: as the type, or fewer.
pub(super) struct Decimals<F> {
    precision: u8,
    scale: u8,
    /// How those are read that have as many as most had lately.
    form: Cell<Numbers>,
    /// How many those are.
    decimals: Cell<u8>,
    /// Reads one with any number of them.
    one: F,
}

impl<F> Decimals<F> {
    /// `one` reads a text of any form that a value of the type has.
    pub(super) fn new(precision: u8, scale: u8, one: F) -> Self {
        let decimals = scale.min(MOST_DECIMALS);
        let form = Cell::new(Numbers::decimals(precision - (scale - decimals), decimals));
        Decimals { precision, scale, form, decimals: Cell::new(decimals), one }
    }

    /// Reads those with as many as this text from now on; whether that is a change.
    fn take_after(&self, text: &[u8]) -> bool {
        let decimals = text.iter().rev().position(|byte| *byte == b'.').unwrap_or(0);
        let new = u8::try_from(decimals)
            .ok()
            .filter(|new| *new <= self.scale.min(MOST_DECIMALS) && *new != self.decimals.get() && decimals > 0);
        if let Some(new) = new {
            self.decimals.set(new);
            self.form.set(Numbers::decimals(self.precision - (self.scale - new), new));
        }
        new.is_some()
    }
}

impl<T: From<i64> + Mul<Output = T> + Copy, F: Fn(&[u8]) -> Option<T>> Fast<T> for Decimals<F> {
    fn one(&self, text: &[u8]) -> Option<T> {
        (self.one)(text)
    }

    #[inline(always)]
    fn block(&self, data: &[u8], bounds: &Bounds, out: &mut [T; BLOCK]) -> u64 {
        let mut numbers = [0; BLOCK];
        let mut unread = self.form.get().read(data, bounds, &mut numbers);
        if unread.count_ones() as usize > BLOCK / 2 {
            let there = bounds.starts.iter().zip(&bounds.ends).filter(|(start, end)| start < end);
            let texts = there.filter_map(|(start, end)| data.get(*start as usize..*end as usize));
            // Not the first one: what fills a half of the block has a good chance to be in its middle.
            let text = texts.clone().nth(texts.count() / 2);
            if text.is_some_and(|text| self.take_after(text)) {
                unread = self.form.get().read(data, bounds, &mut numbers);
            }
        }
        match self.scale - self.decimals.get() {
            0 => out.iter_mut().zip(numbers).for_each(|(out, number)| *out = T::from(number)),
            missing => {
                let times = (0..missing).fold(T::from(1), |times, _| times * T::from(10));
                for (k, (out, number)) in out.iter_mut().zip(numbers).enumerate() {
                    // What wasn't read may be any number.
                    *out = T::from(if unread >> k & 1 == 0 { number } else { 0 }) * times;
                }
            }
        }
        unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::number;
    use proptest::prelude::*;

    /// What a block's reading reads is what the text says, and all of it is read from the second block on where all texts have as many decimals.
    fn agrees<T>(texts: &[String], precision: u8, scale: u8, alike: bool, one: impl Fn(&[u8]) -> Option<T> + Copy)
    where
        T: From<i64> + Mul<Output = T> + Copy + PartialEq + std::fmt::Debug,
    {
        let decimals = Decimals::new(precision, scale, one);
        for (number, texts) in texts.chunks_exact(BLOCK).enumerate() {
            let mut data = b"a row before, ".to_vec();
            let mut bounds = Bounds { starts: [0; BLOCK], ends: [0; BLOCK] };
            for (k, text) in texts.iter().enumerate() {
                bounds.starts[k] = data.len() as u32;
                data.extend_from_slice(text.as_bytes());
                bounds.ends[k] = data.len() as u32;
                data.push(b',');
            }
            let mut values = [T::from(0); BLOCK];
            let unread = decimals.block(&data, &bounds, &mut values);
            for (k, text) in texts.iter().enumerate() {
                let is = one(text.as_bytes());
                if unread >> k & 1 == 0 {
                    assert_eq!(Some(values[k]), is, "`{text}` as decimal({precision}, {scale})");
                } else if alike && number > 0 {
                    assert_eq!(is, None, "`{text}` as decimal({precision}, {scale}) isn't read");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn decimals_are_read_with_as_many_as_texts_have(
            numbers in proptest::collection::vec(-9_999_999_999i64..9_999_999_999, 3 * BLOCK),
            has in 1usize..=7, wide: bool, precision in 1u8..=18, scale in 0u8..=18, mixed: bool,
        ) {
            let written = |(k, number): (usize, &i64)| {
                let has = if mixed { (k * 7 + has) % 9 } else { has };
                let number = number >> (k % 30);
                let (sign, digits) = (if number < 0 { "-" } else { "" }, format!("{:0>1$}", number.abs(), has + 1));
                let (whole, fraction) = digits.split_at(digits.len() - has);
                format!("{sign}{whole}{}{fraction}", if has > 0 { "." } else { "" })
            };
            let texts: Vec<String> = numbers.iter().enumerate().map(written).collect();
            let scale = scale.min(precision);
            if wide {
                let (precision, scale) = (precision + 20, scale * 2);
                let limit = 10i128.pow(precision.into());
                agrees(&texts, precision, scale, !mixed, |text| number::wide_decimal(text, scale, limit));
            } else {
                let limit = 10i64.pow(precision.into());
                agrees(&texts, precision, scale, !mixed, |text| number::short_decimal(text, scale, limit));
            }
        }
    }
}
