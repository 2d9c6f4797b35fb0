//! The memory that a run's state may take (`--memory`): who holds how much, and when somebody has to let go. It may not know what is held,
//! nor how it is put on disk: that is `spill`.
//!
//! Counted is what operators keep until their input ends: groups, keys, rows. What passes by (read buffers, batches in queues, what sinks
//! encode) isn't, and a table that grows is there twice for a moment: so state may take half of what the run was given.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::RunError;

/// Why a join's right side has to stay in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    /// The job takes checkpoints.
    Checkpoints,
    /// A source is followed without an end.
    Endless,
    /// The join may reject left rows, and has to name their places.
    Rejects,
}

impl Stays {
    /// As the end of a sentence.
    fn why(self) -> &'static str {
        match self {
            Stays::Checkpoints => "no checkpoint holds what is on disk",
            Stays::Endless => "a source is followed without an end, where what is on disk would be looked at",
            Stays::Rejects => "it may reject rows, whose places are lost on disk",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Stays::Checkpoints => {
                "give the run more with `--memory`, filter the right side, exchange the sides so that the smaller one stands right, or switch checkpoints off with `checkpoint: off`: then it goes to disk"
            }
            Stays::Endless | Stays::Rejects => {
                "give the run more with `--memory`, filter the right side, or exchange the sides so that the smaller one stands right"
            }
        }
    }
}

/// The least that a part may have, however little memory there is.
const SMALLEST: usize = 16 << 10;

/// What a run may hold.
pub(crate) struct Budget {
    /// What the run was given.
    given: u64,
    /// Where state goes that passes it.
    folder: PathBuf,
    held: AtomicU64,
    /// Of that, what can't be put on disk.
    fixed: AtomicU64,
    accounts: AtomicU64,
}

impl Budget {
    /// For a run that was given so many bytes.
    pub(crate) fn new(given: u64, folder: PathBuf) -> Arc<Budget> {
        let (held, fixed, accounts) = Default::default();
        Arc::new(Budget { given, folder, held, fixed, accounts })
    }

    /// Where state goes.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes of state that may be held.
    fn limit(&self) -> u64 {
        self.given / 2
    }

    /// Bytes of a part of a state on disk that are in memory at once.
    pub(crate) fn part(&self) -> usize {
        usize::try_from(self.limit() / 4).unwrap_or(usize::MAX).max(SMALLEST)
    }

    /// Bytes that were counted by [`Budget::fix`] are gone.
    pub(crate) fn free(&self, bytes: usize) {
        self.held.fetch_sub(bytes as u64, Ordering::Relaxed);
        self.fixed.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that stay until the run ends, or are freed. `stays`: why they can't go to disk.
    ///
    /// # Errors
    /// When there are too many of them. They are counted all the same.
    pub(crate) fn fix(&self, node: &str, bytes: usize, stays: Stays) -> Result<(), RunError> {
        let bytes = bytes as u64;
        self.held.fetch_add(bytes, Ordering::Relaxed);
        let fixed = self.fixed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if fixed <= self.limit() {
            return Ok(());
        }
        let (limit, given) = (size(self.limit()), size(self.given));
        Err(RunError::Memory {
            node: node.to_owned(),
            message: format!(
                "the right side of a join is held in memory, since {}; of the {given} that the run was given it may take {limit}, and has {} so far",
                stays.why(),
                size(fixed)
            ),
            help: stays.help().to_owned(),
        })
    }
}

/// `512.0 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// What one operator of one task holds. Dropped, it holds nothing any more.
pub(crate) struct Account {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Account {
    pub(crate) fn new(budget: Arc<Budget>) -> Account {
        budget.accounts.fetch_add(1, Ordering::Relaxed);
        Account { budget, bytes: 0 }
    }

    /// It holds so much now. `true`: that is too much, and this account isn't one of the small ones.
    pub(crate) fn holds(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.budget.held.fetch_add(bytes, Ordering::Relaxed);
        let held = self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed) - self.bytes;
        self.bytes = bytes;
        let accounts = self.budget.accounts.load(Ordering::Relaxed).max(1);
        held > self.budget.limit() && bytes > self.budget.limit() / accounts / 2
    }

    /// The run's budget.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.accounts.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_most_lets_go() {
        let budget = Budget::new(2_000, PathBuf::new());
        let (mut small, mut large) = (Account::new(budget.clone()), Account::new(budget.clone()));
        assert!(!small.holds(200) && !large.holds(800));
        assert!(large.holds(801) && !small.holds(201));
        assert!(!large.holds(10) && !small.holds(900));
        drop(small);
        assert!(!large.holds(1_000));
        assert!(large.holds(1_001));
    }

    #[test]
    fn what_stays_has_an_end() {
        let budget = Budget::new(2_000, PathBuf::new());
        budget.fix("joined", 1_000, Stays::Rejects).unwrap();
        let error = budget.fix("joined", 500_000, Stays::Rejects).unwrap_err();
        assert_eq!(error.code(), "R0404");
        assert!(error.to_string().contains("and has 501.0 kB so far"), "{error}");
        budget.free(500_500);
        budget.fix("joined", 500, Stays::Rejects).unwrap();
    }
}
