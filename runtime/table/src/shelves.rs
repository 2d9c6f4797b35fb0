//! A list whose freezes share it: what is changed afterwards is copied first, a shelf of it at a time (D11, D13).

use std::sync::Arc;

enum Shelf<T> {
    Own(Vec<T>),
    /// It may belong to a freeze too.
    Shared(Arc<Vec<T>>),
}

/// A list whose freezes share it; so many items stand on a shelf.
pub struct Shelves<T, const SHELF: usize> {
    shelves: Vec<Shelf<T>>,
    len: usize,
}

impl<T, const SHELF: usize> Default for Shelves<T, SHELF> {
    fn default() -> Self {
        Shelves { shelves: Vec::new(), len: 0 }
    }
}

impl<T: Clone, const SHELF: usize> Shelves<T, SHELF> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An item.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.shelves.get(at / SHELF)?.items().get(at % SHELF)
    }

    /// An item, to be changed. Panics if there is none.
    pub fn get_mut(&mut self, at: usize) -> &mut T {
        &mut self.shelves[at / SHELF].own()[at % SHELF]
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        if self.len.is_multiple_of(SHELF) {
            self.shelves.push(Shelf::Own(Vec::new()));
        }
        // There is one: either it was just added, or it isn't full.
        if let Some(last) = self.shelves.last_mut() {
            last.own().push(item);
        }
        self.len += 1;
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        *self = Shelves::default();
    }

    /// The items, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.shelves.iter().flat_map(Shelf::items)
    }

    /// As it is now.
    pub fn freeze(&mut self) -> FrozenShelves<T, SHELF> {
        FrozenShelves { shelves: self.shelves.iter_mut().map(Shelf::share).collect() }
    }

    /// The same in memory of its own.
    pub fn copy(&self) -> FrozenShelves<T, SHELF> {
        FrozenShelves { shelves: self.shelves.iter().map(|shelf| Arc::new(shelf.items().to_vec())).collect() }
    }
}

impl<T: Clone> Shelf<T> {
    fn items(&self) -> &[T] {
        match self {
            Shelf::Own(items) => items,
            Shelf::Shared(items) => items,
        }
    }

    fn own(&mut self) -> &mut Vec<T> {
        if let Shelf::Shared(items) = self {
            let items = Arc::try_unwrap(std::mem::take(items)).unwrap_or_else(|shared| shared.to_vec());
            *self = Shelf::Own(items);
        }
        match self {
            Shelf::Own(items) => items,
            // It was made an own one just now.
            Shelf::Shared(items) => Arc::make_mut(items),
        }
    }

    fn share(&mut self) -> Arc<Vec<T>> {
        if let Shelf::Own(items) = self {
            *self = Shelf::Shared(Arc::new(std::mem::take(items)));
        }
        match self {
            Shelf::Shared(items) => items.clone(),
            // It was made a shared one just now.
            Shelf::Own(items) => Arc::new(items.clone()),
        }
    }
}

/// A list as it was when it was frozen.
pub struct FrozenShelves<T, const SHELF: usize> {
    shelves: Vec<Arc<Vec<T>>>,
}

impl<T, const SHELF: usize> Clone for FrozenShelves<T, SHELF> {
    fn clone(&self) -> Self {
        FrozenShelves { shelves: self.shelves.clone() }
    }
}

impl<T, const SHELF: usize> FrozenShelves<T, SHELF> {
    /// An item.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.shelves.get(at / SHELF)?.get(at % SHELF)
    }

    /// The items, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.shelves.iter().flat_map(|shelf| shelf.iter())
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shelves.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_stays_what_it_was() {
        let mut list = Shelves::<usize, 64>::default();
        let mut plain = Vec::new();
        let mut frozen = Vec::new();
        for step in 0..5_000usize {
            list.push(step);
            plain.push(step);
            let at = step * 7919 % plain.len();
            *list.get_mut(at) += 1;
            plain[at] += 1;
            if step % 500 == 3 {
                frozen.push((list.freeze(), plain.clone()));
            }
            if step % 1_700 == 5 {
                // Whoever had it has put it down: nothing needs to be copied.
                frozen.clear();
            }
        }
        assert!(list.iter().eq(&plain) && list.get(4_999) == plain.last() && list.get(5_000).is_none());
        assert!(frozen.len() > 1);
        for (frozen, plain) in &frozen {
            assert!(frozen.iter().eq(plain) && frozen.len() == plain.len());
        }
    }

    #[test]
    fn only_what_is_touched_is_copied() {
        let mut list = Shelves::<Arc<i32>, 64>::default();
        (0..1_000).for_each(|item| list.push(Arc::new(item)));
        let frozen = list.freeze();
        *list.get_mut(130) = Arc::new(7);
        let copied = list.iter().zip(frozen.iter()).filter(|(now, _)| Arc::strong_count(now) > 1).count();
        assert_eq!(copied, 63);
        assert_eq!(**list.get(130).unwrap(), 7);
        assert_eq!(**frozen.iter().nth(130).unwrap(), 130);
    }
}
