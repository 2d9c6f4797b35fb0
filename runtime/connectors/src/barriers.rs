//! Barriers in a source whose readers share its work behind one lock (F2): which are wanted, how far the source had been read at each,
//! and which of them a reader has answered. It may not know what is read.
//!
//! The engine's thread must not wait for a reader that reads a block just now. So a wanted barrier is put down in a list of its own, and
//! whoever takes the next piece of work notices it first: how far the source has been handed out at that moment is the barrier's position,
//! for all readers alike.

use std::sync::{Mutex, PoisonError};

use dfc_trial::{Planted, planted, turns};

/// Barriers that nobody has noticed yet.
#[derive(Default)]
pub(crate) struct Wanted(Mutex<Vec<u64>>);

impl Wanted {
    /// Barrier `number` is wanted.
    pub(crate) fn want(&self, number: u64) {
        // A list is whole whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    /// Whether one is wanted that nobody has noticed.
    pub(crate) fn is_any(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Barriers that were noticed, with the positions at each; part of what the source's lock protects.
pub(crate) struct Noticed<P> {
    list: Vec<(u64, P)>,
}

impl<P> Default for Noticed<P> {
    fn default() -> Self {
        Noticed { list: Vec::new() }
    }
}

impl<P> Noticed<P> {
    /// Takes what is wanted. To be called before anything is handed out.
    pub(crate) fn notice(&mut self, wanted: &Wanted, position: impl Fn() -> P) {
        let mut wanted = wanted.0.lock().unwrap_or_else(PoisonError::into_inner);
        for number in wanted.drain(..) {
            self.list.push((number, position()));
        }
    }

    /// The position at the next barrier that a reader has to answer: one that isn't at the end of what it was given may move it.
    pub(crate) fn next(&mut self, answered: &Answered) -> Option<&mut P> {
        self.list.iter_mut().find(|(number, _)| *number > answered.0).map(|(_, position)| position)
    }

    /// The next barrier that a reader has to answer, and notes that it did.
    pub(crate) fn answer(&self, answered: &mut Answered) -> Option<u64> {
        let number = self.list.iter().map(|(number, _)| *number).find(|number| *number > answered.0)?;
        if planted(Planted::BarrierTooLate) && turns::choose(2) == 1 {
            return None;
        }
        answered.0 = number;
        Some(number)
    }

    /// The positions at a barrier. It and all before it are forgotten: every reader has answered them.
    pub(crate) fn report(&mut self, number: u64) -> Option<P> {
        let at = self.list.iter().position(|(noticed, _)| *noticed == number)?;
        self.list.drain(..=at).next_back().map(|(_, position)| position)
    }
}

/// The last barrier that a reader has answered.
#[derive(Default)]
pub(crate) struct Answered(u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_answers_every_barrier_once_in_order() {
        let (wanted, mut noticed) = (Wanted::default(), Noticed::default());
        let mut readers = [Answered::default(), Answered::default()];
        wanted.want(3);
        wanted.want(5);
        noticed.notice(&wanted, || 'a');
        assert_eq!((noticed.answer(&mut readers[0]), noticed.answer(&mut readers[0])), (Some(3), Some(5)));
        assert_eq!(noticed.answer(&mut readers[0]), None);
        wanted.want(9);
        noticed.notice(&wanted, || 'b');
        assert_eq!([noticed.answer(&mut readers[1]), noticed.answer(&mut readers[0])], [Some(3), Some(9)]);
        // 3 was given up by whoever wanted it.
        assert_eq!(noticed.report(5), Some('a'));
        assert_eq!(noticed.report(5), None);
        assert_eq!([noticed.answer(&mut readers[1]), noticed.answer(&mut readers[1])], [Some(9), None]);
        assert_eq!(noticed.report(9), Some('b'));
    }
}
