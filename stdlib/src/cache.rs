//! A small cache of what patterns compile to: a pattern is nearly always a constant, so it is compiled once a thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::thread::LocalKey;

/// Compiled forms by their text. Kept in a thread local.
pub struct Cache<T> {
    /// The one asked for last, found without hashing.
    last: Option<(Rc<str>, Rc<T>)>,
    all: HashMap<Rc<str>, Rc<T>>,
}

/// More patterns than this are no constants: the cache starts anew rather than grow.
const CAPACITY: usize = 256;

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Cache { last: None, all: HashMap::new() }
    }
}

impl<T> Cache<T> {
    /// The compiled form of `text`; failures are not kept.
    pub fn get<E>(
        cache: &'static LocalKey<RefCell<Cache<T>>>,
        text: &str,
        compile: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Rc<T>, E> {
        cache.with_borrow_mut(|cache| {
            if let Some((last, compiled)) = &cache.last
                && **last == *text
            {
                return Ok(Rc::clone(compiled));
            }
            let entry = match cache.all.get_key_value(text) {
                Some((text, compiled)) => (Rc::clone(text), Rc::clone(compiled)),
                None => {
                    let entry = (Rc::from(text), Rc::new(compile(text)?));
                    if cache.all.len() >= CAPACITY {
                        cache.all.clear();
                    }
                    cache.all.insert(Rc::clone(&entry.0), Rc::clone(&entry.1));
                    entry
                }
            };
            let compiled = Rc::clone(&entry.1);
            cache.last = Some(entry);
            Ok(compiled)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static LENGTHS: RefCell<Cache<usize>> = RefCell::default();
    }

    #[test]
    fn compiles_once_and_stays_small() {
        let mut compiled = 0;
        for _ in 0..3 {
            let length = Cache::get(&LENGTHS, "abc", |text| {
                compiled += 1;
                Ok::<_, ()>(text.len())
            });
            assert_eq!(length.as_deref(), Ok(&3));
        }
        assert_eq!(compiled, 1);
        assert_eq!(Cache::get(&LENGTHS, "x", |_| Err(7)).err(), Some(7));
        for n in 0..3 * CAPACITY {
            Cache::get(&LENGTHS, &n.to_string(), |text| Ok::<_, ()>(text.len())).unwrap();
        }
        LENGTHS.with_borrow(|cache| assert!(cache.all.len() <= CAPACITY));
    }
}
