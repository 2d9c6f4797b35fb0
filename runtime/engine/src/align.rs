//! Who has given a barrier that others haven't (F2). It may not know what is held back meanwhile.

use crate::schedule::TaskId;

/// The barrier that some writers have given, and these.
#[derive(Debug, Default)]
pub(crate) struct Alignment(Option<(u64, Vec<TaskId>)>);

impl Alignment {
    /// A writer gives a barrier. One that still waits for others when a later one comes was given up: whoever had given it is held back
    /// no longer, and whoever comes late with it is passed over.
    pub(crate) fn give(&mut self, writer: TaskId, number: u64) {
        let (of, given) = self.0.get_or_insert_with(|| (number, Vec::new()));
        if number > *of {
            (*of, *given) = (number, Vec::new());
        }
        if number == *of {
            given.push(writer);
        }
    }

    /// A writer has ended: it counts as having given every barrier.
    pub(crate) fn ended(&mut self, writer: TaskId) {
        if let Some((_, given)) = &mut self.0 {
            given.retain(|&giver| giver != writer);
        }
    }

    /// Whether this writer has given a barrier that others haven't.
    pub(crate) fn holds_back(&self, writer: TaskId) -> bool {
        self.0.as_ref().is_some_and(|(_, given)| given.contains(&writer))
    }

    /// The barrier that so many writers, which are all, have given: it is theirs no longer.
    pub(crate) fn complete(&mut self, writers: usize) -> Option<u64> {
        self.0.take_if(|(_, given)| given.len() == writers).map(|(number, _)| number)
    }

    /// Nobody waits for anybody any more.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_must_give_it() {
        let mut alignment = Alignment::default();
        alignment.give(1, 7);
        assert!(alignment.holds_back(1) && !alignment.holds_back(2));
        assert_eq!(alignment.complete(2), None);
        alignment.give(2, 7);
        assert_eq!(alignment.complete(2), Some(7));
        assert!(!alignment.holds_back(1));
    }

    /// What another one gives after a barrier was given up isn't taken for that one: rows behind it would count to the checkpoint before.
    #[test]
    fn a_barrier_that_was_given_up_is_passed_over() {
        let mut alignment = Alignment::default();
        alignment.give(1, 7);
        alignment.give(2, 8);
        assert_eq!(alignment.complete(2), None);
        assert!(!alignment.holds_back(1) && alignment.holds_back(2));
        alignment.give(3, 7);
        assert!(!alignment.holds_back(3));
        alignment.give(1, 8);
        alignment.give(3, 8);
        assert_eq!(alignment.complete(3), Some(8));
    }

    #[test]
    fn who_has_ended_has_given_every_barrier() {
        let mut alignment = Alignment::default();
        alignment.give(1, 7);
        alignment.ended(1);
        assert_eq!(alignment.complete(1), None);
        alignment.ended(2);
        assert_eq!(alignment.complete(0), Some(7));
    }
}
