//! A task's share of a stored table of groups, taken out of its parts without putting the whole table together first (D11, D13): all tasks
//! read the same parts, each takes the groups whose hashes are its own.

use dfc_eval::EvalError;
use dfc_ir::stage::AggregateSpec;

use crate::archive::{ArchivedGroupsArchive, DamagedState, aligned, damaged};
use crate::key::{hash_key, partition, skip};
use crate::table::GroupTable;

/// Keys that are looked up together.
const AT_ONCE: usize = 64;
/// So many of the first keys say how many of all are a task's.
const SAMPLE: usize = 2048;

/// Why a share can't be taken.
#[derive(Debug)]
pub enum ShareError {
    /// The parts can't be used.
    Damaged(DamagedState),
    /// Two states of a group can't be put together.
    Value(EvalError),
}

impl From<DamagedState> for ShareError {
    fn from(error: DamagedState) -> ShareError {
        ShareError::Damaged(error)
    }
}

/// A key on its way into the table.
#[derive(Clone, Copy)]
struct Found<'b> {
    /// Its group's number in the stored table.
    number: usize,
    key: &'b [u8],
    hash: u64,
}

/// What is known of the stored table, page by page.
struct Stored<'b> {
    /// The newest bytes of each page; `None`: all zeros.
    pages: Vec<Option<&'b [u8]>>,
    page_rows: usize,
    row_bytes: usize,
}

impl<'b> Stored<'b> {
    fn row(&self, number: usize) -> Option<&'b [u8]> {
        let page = (*self.pages.get(number / self.page_rows)?)?;
        let start = number % self.page_rows * self.row_bytes;
        page.get(start..start + self.row_bytes)
    }
}

impl GroupTable {
    /// Takes in the groups of a stored table whose hashes fall to `part` of `of`: see [`partition`]. The parts are those of
    /// [`GroupTable::from_parts`].
    ///
    /// # Errors
    /// When the parts don't fit or are damaged; when a state can't be put together with one that is there already.
    pub fn take_share<B: AsRef<[u8]>>(
        &mut self,
        spec: &AggregateSpec,
        parts: &[B],
        part: usize,
        of: usize,
    ) -> Result<(), ShareError> {
        // Values beside the rows, and the one group without a key, are few: they take the long way.
        if spec.keys.is_empty() || !self.is_in_rows() {
            let whole = GroupTable::from_parts(spec, parts)?;
            self.merge_partition(&whole, part, of).map_err(ShareError::Value)?;
            if spec.keys.is_empty() {
                // It is there from the start, so that it was given on has to be known.
                self.forget_before(whole.first());
            }
            return Ok(());
        }
        let bytes: Vec<_> = parts.iter().map(|part| aligned(part.as_ref())).collect();
        let archives = bytes.iter().enumerate().map(|(number, bytes)| self.fitting(number, bytes));
        let archives = archives.collect::<Result<Vec<_>, _>>()?;
        let (stored, groups) = self.look_through(&archives)?;
        let gone = archives.last().map_or(0, |last| last.gone.to_native() as usize);
        if gone > groups {
            return Err(damaged_share(format!("{gone} of its {groups} groups are gone")));
        }
        let before = self.len();
        // Groups that are in the table already, from another stored one.
        let mut again = GroupTable::new(spec);
        let mut block: Vec<Found> = Vec::with_capacity(AT_ONCE);
        let (mut number, mut ours) = (0, 0);
        for archive in &archives {
            let mut rest = archive.keys.as_slice();
            for length in archive.lengths.iter() {
                let Some((key, after)) = rest.split_at_checked(length.to_native() as usize) else {
                    return Err(damaged_share("its keys are cut off"));
                };
                rest = after;
                let types = &self.key_layout().parts;
                if types.iter().try_fold(key, |key, part| skip(key, &part.ty)).is_none_or(|left| !left.is_empty()) {
                    return Err(damaged_share("a key in it is none"));
                }
                let hash = hash_key(key);
                if partition(hash, of) == part {
                    ours += 1;
                    if number >= gone {
                        block.push(Found { number, key, hash });
                    }
                }
                number += 1;
                if number == SAMPLE && before == 0 {
                    // A few too many cost less than to grow.
                    self.reserve((groups - gone) / SAMPLE * (ours + ours / 16));
                }
                if block.len() == AT_ONCE {
                    self.take_block(&block, &stored, before, &mut again)?;
                    block.clear();
                }
            }
            if !rest.is_empty() {
                return Err(damaged_share("it has bytes of keys left over"));
            }
        }
        self.take_block(&block, &stored, before, &mut again)?;
        self.merge_partition(&again, 0, 1).map(drop).map_err(ShareError::Value)
    }

    /// Whether the parts build on one another; the newest of each page, and the number of groups.
    fn look_through<'b>(&self, archives: &[&'b ArchivedGroupsArchive]) -> Result<(Stored<'b>, usize), DamagedState> {
        let (page_rows, size) = (self.states.page_rows(), self.stored_page_bytes());
        let mut stored = Stored { pages: Vec::new(), page_rows, row_bytes: self.stored_row_bytes() };
        let mut groups = 0;
        for archive in archives {
            let first = archive.first.to_native() as usize;
            if first != groups {
                return damaged(format!("it begins with group {first} where {groups} are known"));
            }
            groups += archive.lengths.len();
            if archive.pages.len() != archive.numbers.len() * size {
                return damaged("its pages are cut off");
            }
            let pages = groups.div_ceil(page_rows);
            stored.pages.resize(pages, None);
            for (number, bytes) in archive.numbers.iter().zip(archive.pages.chunks_exact(size)) {
                match stored.pages.get_mut(number.to_native() as usize) {
                    Some(page) => *page = Some(bytes),
                    None => return damaged(format!("it has page {number} of {pages}")),
                }
            }
        }
        Ok((stored, groups))
    }

    fn take_block(
        &mut self,
        block: &[Found<'_>],
        stored: &Stored<'_>,
        before: usize,
        again: &mut GroupTable,
    ) -> Result<(), DamagedState> {
        self.foresee(block.iter().map(|found| found.hash));
        for found in block {
            let known = self.len();
            let group = self.group(found.key, found.hash).0 as usize;
            let (table, row) = if group == known {
                (&mut *self, group)
            } else {
                let others = again.len();
                let row = again.group(found.key, found.hash).0 as usize;
                if group >= before || row < others {
                    return damaged("a key stands in it twice");
                }
                (&mut *again, row)
            };
            if let Some(bytes) = stored.row(found.number) {
                table.take_row(row, bytes);
            }
        }
        Ok(())
    }
}

fn damaged_share(what: impl Into<String>) -> ShareError {
    ShareError::Damaged(DamagedState(what.into()))
}
