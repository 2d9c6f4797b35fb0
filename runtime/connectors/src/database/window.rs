//! How far a split has been read, where rows may appear late: behind the last row lie those that have the same increment, and one of them
//! may be committed after its neighbours were read (F5). They are read again, and those that have been seen are left out. It may not know
//! in which order a database has its keys.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use super::keys::{Key, key_to_text};

/// Keys that are remembered at most.
pub(crate) const MOST_SEEN: usize = 10_000;

/// A place in a split.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reached {
    /// The key of the last row that was read.
    pub last: Option<Key>,
    /// Reading goes on after this key, without the rows that are `seen`; where none are, after the last one.
    pub floor: Option<Key>,
    /// Rows after the floor that have been read.
    pub seen: Vec<Key>,
}

impl Reached {
    /// The key after which reading goes on.
    pub(crate) fn start(&self) -> Option<&Key> {
        if self.seen.is_empty() { self.last.as_ref() } else { self.floor.as_ref() }
    }
}

/// Keys of rows that are left out when they come again. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Seen(Rc<RefCell<HashSet<String>>>);

impl Seen {
    pub(crate) fn new(keys: &[Key]) -> Seen {
        Seen(Rc::new(RefCell::new(keys.iter().map(key_to_text).collect())))
    }

    /// Whether rows have to be looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether it is one of them; it comes once.
    pub(crate) fn take(&self, key: &Key) -> bool {
        self.0.borrow_mut().remove(&key_to_text(key))
    }

    fn keeps(&self, key: &Key) -> bool {
        self.0.borrow().contains(&key_to_text(key))
    }
}

/// The last rows of a chunk that have one increment, in a connector's own form of rows, and the row before them.
#[derive(Debug, Clone)]
pub(crate) struct Tail<R> {
    before: Option<R>,
    rows: VecDeque<R>,
}

impl<R> Default for Tail<R> {
    fn default() -> Self {
        Tail { before: None, rows: VecDeque::new() }
    }
}

impl<R> Tail<R> {
    /// One more row; `tied`: it has the increment of the one before.
    pub(crate) fn push(&mut self, row: R, tied: bool) {
        if !tied {
            self.before = self.rows.pop_back();
            self.rows.clear();
        } else if self.rows.len() == MOST_SEEN {
            self.before = self.rows.pop_front();
        }
        self.rows.push_back(row);
    }

    pub(crate) fn last(&self) -> Option<&R> {
        self.rows.back()
    }

    /// In another form.
    ///
    /// # Errors
    /// Those of `form`.
    pub(crate) fn map<S, E>(self, form: impl Fn(R) -> Result<S, E>) -> Result<Tail<S>, E> {
        Ok(Tail {
            before: self.before.map(&form).transpose()?,
            rows: self.rows.into_iter().map(form).collect::<Result<_, E>>()?,
        })
    }
}

/// A read that goes on.
pub(crate) struct Window {
    floor: Option<Key>,
    rows: VecDeque<Key>,
    old: Vec<Key>,
    pub seen: Seen,
}

impl Window {
    /// From a place on.
    pub(crate) fn new(from: &Reached) -> Window {
        Window {
            floor: from.start().cloned(),
            rows: VecDeque::new(),
            old: from.seen.clone(),
            seen: Seen::new(&from.seen),
        }
    }

    /// The place after a chunk, whose last row has this key.
    pub(crate) fn advance(&mut self, last: Key, tail: Tail<Key>) -> Reached {
        let tied = |known: &Key| known.first() == last.first();
        match tail.before {
            Some(before) => (self.floor, self.rows) = (Some(before), tail.rows),
            // All rows of the chunk have one increment, perhaps that of those before.
            None if self.rows.back().is_none_or(tied) => self.rows.extend(tail.rows),
            None => (self.floor, self.rows) = (self.rows.pop_back(), tail.rows),
        }
        while self.rows.len() > MOST_SEEN {
            self.floor = self.rows.pop_front();
        }
        // Those of an earlier read that haven't come again yet.
        self.old.retain(|key| self.seen.keeps(key));
        let seen = self.rows.iter().chain(&self.old).cloned().collect();
        Reached { last: Some(last), floor: self.floor.clone(), seen }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::KeyValue;
    use super::*;

    fn key(at: i64, id: i64) -> Key {
        vec![KeyValue::Int(at), KeyValue::Int(id)]
    }

    /// The rows after the place where a read goes on.
    fn rest(rows: &[(i64, i64)], from: &Reached) -> Vec<(i64, i64)> {
        let number = |value: &KeyValue| if let KeyValue::Int(n) = value { *n } else { i64::MIN };
        let start = from.start().map_or((i64::MIN, 0), |key| (number(&key[0]), number(&key[1])));
        rows.iter().copied().filter(|row| *row > start).collect()
    }

    /// Reads rows, given in their order, in chunks; what was given.
    fn read(rows: &[(i64, i64)], from: &Reached, chunk: usize) -> (Vec<(i64, i64)>, Vec<Reached>) {
        let mut window = Window::new(from);
        let (mut given, mut places) = (Vec::new(), Vec::new());
        for rows in rest(rows, from).chunks(chunk) {
            let mut tail = Tail::default();
            for &(at, id) in rows {
                let tied = tail.last().is_some_and(|last: &Key| last[0] == KeyValue::Int(at));
                tail.push(key(at, id), tied);
                if !window.seen.take(&key(at, id)) {
                    given.push((at, id));
                }
            }
            let last = *rows.last().expect("chunks are not empty");
            places.push(window.advance(key(last.0, last.1), tail));
        }
        (given, places)
    }

    /// F5: wherever a read stops, the next one gives what is new, ties that were committed later included, and nothing twice.
    #[test]
    fn late_ties_are_read_and_nothing_twice() {
        let mut all = vec![(1, 5), (2, 4), (2, 6), (2, 8), (3, 5), (3, 7)];
        for chunk in 1..5 {
            let (first, places) = read(&all, &Reached::default(), chunk);
            assert_eq!(first, all);
            assert_eq!(read(&all, places.last().unwrap(), chunk).0, []);
        }
        let (_, places) = read(&all, &Reached::default(), 2);
        assert_eq!(places[1].last, Some(key(2, 8)));
        all.extend([(2, 1), (2, 9), (3, 1), (3, 6), (4, 1)]);
        all.sort_unstable();
        // From the middle, and from the end, where (2, 9) lies after the last row before the ties, (2, 8); the second read stops anywhere, too.
        for (from, expected) in [
            (&places[1], &[(2, 1), (2, 9), (3, 1), (3, 5), (3, 6), (3, 7), (4, 1)][..]),
            (places.last().unwrap(), &[(2, 9), (3, 1), (3, 6), (4, 1)]),
        ] {
            for chunk in 1..5 {
                let (given, again) = read(&all, from, chunk);
                assert_eq!(given, expected);
                for (stopped, place) in again.iter().enumerate() {
                    let before: Vec<_> = rest(&all, from).into_iter().take((stopped + 1) * chunk).collect();
                    let (mut both, _) = read(&all, place, chunk);
                    both.extend(expected.iter().filter(|row| before.contains(row)));
                    both.sort_unstable();
                    assert_eq!(both, expected, "stopped after {} chunks of {chunk}", stopped + 1);
                }
            }
        }
    }

    #[test]
    fn many_ties_are_remembered_up_to_a_number() {
        let rows: Vec<(i64, i64)> = (0..25_000).map(|id| (1, id)).collect();
        let (_, places) = read(&rows, &Reached::default(), 8_192);
        let place = places.last().unwrap();
        assert_eq!((place.seen.len(), &place.floor), (MOST_SEEN, &Some(key(1, 14_999))));
        assert_eq!(read(&rows, place, 8_192).0, []);
    }
}
