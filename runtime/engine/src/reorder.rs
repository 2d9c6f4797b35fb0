//! Puts numbered things back in order.

use std::collections::BTreeMap;

/// Number of what comes after everything that is numbered (rows given at a task's end).
pub(crate) const TAIL: u64 = u64::MAX;

/// Holds things back until all with smaller numbers have come. Numbers run without gaps and come once each; [`TAIL`] may
/// come more than once, before the end.
pub(crate) struct Reorder<T> {
    next: u64,
    early: BTreeMap<u64, T>,
    tail: Vec<T>,
}

impl<T> Reorder<T> {
    /// The first number is `first`.
    pub(crate) fn new(first: u64) -> Self {
        Reorder { next: first, early: BTreeMap::new(), tail: Vec::new() }
    }

    /// The first number is `first` after all. Nothing has come yet.
    pub(crate) fn start_at(&mut self, first: u64) {
        self.next = first;
    }

    /// Whether this number's turn has come.
    pub(crate) fn is_next(&self, seq: u64) -> bool {
        seq <= self.next || seq == TAIL
    }

    /// How many are held back.
    pub(crate) fn held(&self) -> usize {
        self.early.len()
    }

    /// Takes a thing; what can go on now goes to `out`, in order.
    pub(crate) fn put(&mut self, seq: u64, item: T, out: &mut impl Extend<T>) {
        if seq == TAIL {
            self.tail.push(item);
            return;
        }
        if seq > self.next {
            self.early.insert(seq, item);
            return;
        }
        out.extend([item]);
        self.next = self.next.max(seq + 1);
        while let Some(item) = self.early.remove(&self.next) {
            self.next += 1;
            out.extend([item]);
        }
    }

    /// Everything with a number up to some barrier has come: what is held back nonetheless goes to `out`.
    pub(crate) fn release(&mut self, out: &mut impl Extend<T>) {
        if let Some((&last, _)) = self.early.last_key_value() {
            self.next = last + 1;
        }
        self.flush(out);
    }

    /// No more will come: all that is held back goes to `out`, in order.
    pub(crate) fn flush(&mut self, out: &mut impl Extend<T>) {
        out.extend(std::mem::take(&mut self.early).into_values());
        out.extend(std::mem::take(&mut self.tail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_comes_back() {
        let mut reorder = Reorder::new(0);
        let mut out = Vec::new();
        for seq in [2, TAIL, 1, 0, 4, 3, 6] {
            reorder.put(seq, seq, &mut out);
        }
        assert_eq!(out, [0, 1, 2, 3, 4]);
        assert_eq!(reorder.held(), 1);
        assert!(reorder.is_next(5) && !reorder.is_next(6));
        reorder.flush(&mut out);
        assert_eq!(out[5..], [6, TAIL]);
    }
}
