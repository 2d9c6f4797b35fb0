//! A table of groups as bytes and back: what changed since it was last frozen, and the whole from such parts in their order (D11, D13).
//!
//! Freezing is quick (pages are shared, not copied) and done by the task; archiving is done elsewhere, while the task goes on. The bytes
//! may come back damaged or from anybody: everything is looked at before it is used.

use std::fmt;
use std::sync::Arc;

use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, Value};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Serialize};

use crate::arena::FrozenBytes;
use crate::estimate::Estimate;
use crate::joined::{InPlaces, Joined};
use crate::key::{decode, encode, hash_key, skip};
use crate::keys::AT_ONCE;
use crate::layout::{StateKind, StateLayout};
use crate::narrow::{Carried, Forms};
use crate::pages::FrozenPage;
use crate::side::{FrozenSides, Moments, Side};
use crate::table::GroupTable;

/// What changed in a table since it was last frozen, or all of it.
pub struct FrozenGroups {
    /// It doesn't build on what was frozen before.
    pub whole: bool,
    layout: String,
    gone: usize,
    first: usize,
    groups: usize,
    keys: FrozenBytes,
    /// Of a page as it is stored.
    page_bytes: usize,
    page_rows: usize,
    pages: Vec<FrozenPage>,
    /// Rows that are in use.
    rows: usize,
    carried: Arc<Carried>,
    forms: Option<Arc<Forms>>,
    first_side: usize,
    /// All of them from `first_side` on, each with its aggregate: sides change without their rows.
    sides: FrozenSides,
    last_side: usize,
    types: Arc<Types>,
}

/// Types of a table.
struct Types {
    /// Of the keys' columns.
    keys: Vec<DataType>,
    /// Bytes of every key, where they all have as many.
    key_bytes: Option<usize>,
    /// Of each aggregate's argument.
    arguments: Vec<DataType>,
}

/// State that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedState(
    /// What is wrong with it, as a half-sentence.
    pub String,
);

impl fmt::Display for DamagedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DamagedState {}

pub(crate) fn damaged<T>(what: impl Into<String>) -> Result<T, DamagedState> {
    Err(DamagedState(what.into()))
}

#[derive(Archive, Serialize)]
pub(crate) struct GroupsArchive {
    layout: String,
    whole: bool,
    /// Groups with a lower number were given on: nobody wants them any more.
    pub(crate) gone: u64,
    /// Number of groups that earlier parts hold.
    pub(crate) first: u64,
    #[rkyv(with = Joined)]
    pub(crate) keys: FrozenBytes,
    pub(crate) lengths: Vec<u32>,
    /// Numbers of the pages that follow, one after another.
    pub(crate) numbers: Vec<u32>,
    #[rkyv(with = Joined)]
    pub(crate) pages: StoredPages,
    /// Number of the sides that earlier pieces of the same freeze hold; with 0 those of earlier freezes are gone.
    first_side: u64,
    sides: Vec<SideArchive>,
}

/// Pages on their way to be stored: their rows are widened one page at a time.
pub(crate) struct StoredPages {
    pages: Vec<FrozenPage>,
    /// Bytes of one as it is stored.
    page_bytes: usize,
    page_rows: usize,
    rows: usize,
    carried: Arc<Carried>,
    forms: Option<Arc<Forms>>,
}

impl InPlaces for StoredPages {
    fn bytes(&self) -> usize {
        self.pages.len() * self.page_bytes
    }

    fn each<E>(&self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let Some(forms) = &self.forms else { return self.pages.iter().try_for_each(|page| take(page.bytes())) };
        let mut stored = Vec::with_capacity(self.page_bytes);
        self.pages.iter().try_for_each(|page| {
            stored.clear();
            forms.store_page(page.number * self.page_rows..self.rows, page.bytes(), &self.carried, &mut stored);
            take(&stored)
        })
    }
}

#[derive(Archive, Serialize)]
struct SideArchive {
    aggregate: u32,
    form: u8,
    ordinals: Vec<u64>,
    /// Values as keys are written, or registers, or the bits of the moments.
    bytes: Vec<u8>,
}

const EXTREME: u8 = 0;
const ORDERED: u8 = 1;
const DISTINCT: u8 = 2;
const ESTIMATE: u8 = 3;
const MOMENTS: u8 = 4;
const VALUES: u8 = 5;

/// A table on its way back out of its parts, one after another: no more than one of them needs to be in memory.
pub struct Rebuilding {
    table: GroupTable,
    parts: usize,
}

impl Rebuilding {
    /// No part was taken yet; about so many groups will come.
    pub fn new(spec: &AggregateSpec, groups: usize) -> Rebuilding {
        let mut table = GroupTable::new(spec);
        table.reserve(groups);
        Rebuilding { table, parts: 0 }
    }

    /// Takes the next part, in the order in which they were frozen, the first one whole.
    ///
    /// # Errors
    /// When it doesn't fit the aggregate or those before, or is damaged.
    pub fn take(&mut self, part: &[u8]) -> Result<(), DamagedState> {
        let aligned = aligned(part);
        let fitting = self.table.fitting(self.parts, &aligned)?;
        self.parts += 1;
        self.table.take_part(fitting)
    }

    /// The table.
    ///
    /// # Errors
    /// When what came isn't all of it.
    pub fn finish(self) -> Result<GroupTable, DamagedState> {
        self.table.check_gone()?;
        self.table.check_sides()?;
        Ok(self.table)
    }
}

impl GroupTable {
    /// What changed since the last call (`whole`, and the first time: everything).
    pub fn freeze(&mut self, whole: bool) -> FrozenGroups {
        let before = self.frozen.filter(|_| !whole);
        let first = before.unwrap_or(0);
        self.frozen = Some(self.len());
        FrozenGroups {
            whole: before.is_none(),
            layout: self.layout_text(),
            gone: self.gone,
            first,
            groups: self.len() - first,
            keys: self.keys.freeze(first),
            page_bytes: self.stored_page_bytes(),
            page_rows: self.states.page_rows(),
            pages: self.states.freeze(before.is_none()),
            rows: self.len(),
            carried: Arc::new(self.carried.clone()),
            forms: self.forms.clone(),
            first_side: 0,
            last_side: self.sides.len(),
            sides: self.sides.freeze(),
            types: self.types(),
        }
    }

    /// All of it, copied: for a table that others read at the same time.
    pub fn copy_whole(&self) -> FrozenGroups {
        FrozenGroups {
            whole: true,
            layout: self.layout_text(),
            gone: self.gone,
            first: 0,
            groups: self.len(),
            keys: self.keys.freeze(0),
            page_bytes: self.stored_page_bytes(),
            page_rows: self.states.page_rows(),
            pages: self.states.copy(),
            rows: self.len(),
            carried: Arc::new(self.carried.clone()),
            forms: self.forms.clone(),
            first_side: 0,
            last_side: self.sides.len(),
            sides: self.sides.copy(),
            types: self.types(),
        }
    }

    fn types(&self) -> Arc<Types> {
        let keys = self.key_layout().parts.iter().map(|part| part.ty.clone()).collect();
        let arguments = self.aggregates.iter().map(|info| DataType::of(info.arg.ty.clone())).collect();
        Arc::new(Types { keys, key_bytes: self.key_layout().fixed_bytes, arguments })
    }

    /// What must be equal for bytes to fit: types of keys and arguments, functions, and where the states lie.
    fn layout_text(&self) -> String {
        let keys: Vec<String> = self.key_layout().parts.iter().map(|part| part.ty.to_string()).collect();
        let slots = &self.stored_layout().slots;
        let aggregates = self.aggregates.iter().zip(slots);
        let aggregates = aggregates.map(|(a, slot)| format!("{}({}){slot:?}", a.function.name(), a.arg));
        format!("{} by {}", aggregates.collect::<Vec<_>>().join(" "), keys.join(" "))
    }

    /// The table that these parts make, in the order in which they were frozen, the first one whole.
    ///
    /// # Errors
    /// When they don't fit the aggregate or one another, or are damaged.
    pub fn from_parts<B: AsRef<[u8]>>(spec: &AggregateSpec, parts: &[B]) -> Result<GroupTable, DamagedState> {
        let mut rebuilt = Rebuilding::new(spec, 0);
        parts.iter().try_for_each(|part| rebuilt.take(part.as_ref()))?;
        rebuilt.finish()
    }

    /// A part, if it is one of a table like this one.
    pub(crate) fn fitting<'b>(
        &self,
        number: usize,
        bytes: &'b [u8],
    ) -> Result<&'b ArchivedGroupsArchive, DamagedState> {
        let archive = rkyv::access::<ArchivedGroupsArchive, rkyv::rancor::Error>(bytes)
            .map_err(|error| DamagedState(format!("its archive can't be read: {error}")))?;
        if archive.whole != (number == 0) {
            return damaged("a part is missing before it");
        }
        let layout = self.layout_text();
        if archive.layout.as_str() != layout {
            return damaged(format!("it was made for `{}`, not for `{layout}`", archive.layout.as_str()));
        }
        Ok(archive)
    }

    /// How states are stored.
    fn stored_layout(&self) -> &StateLayout {
        self.forms.as_ref().map_or(self.state_layout(), |forms| forms.stored())
    }

    /// Bytes of a row as it is stored.
    pub(crate) fn stored_row_bytes(&self) -> usize {
        self.stored_layout().row_bytes
    }

    /// Bytes of a page as it is stored.
    pub(crate) fn stored_page_bytes(&self) -> usize {
        self.states.page_rows() * self.stored_row_bytes()
    }

    /// Takes a row as it is stored.
    pub(crate) fn take_row(&mut self, row: usize, stored: &[u8]) {
        match &self.forms {
            Some(forms) => forms.hold(row, stored, &mut self.carried, self.states.row_mut(row)),
            None => self.states.write(row, 0, stored),
        }
    }

    fn check_gone(&self) -> Result<(), DamagedState> {
        match self.gone <= self.len() {
            true => Ok(()),
            false => damaged(format!("{} of its {} groups are gone", self.gone, self.len())),
        }
    }

    fn take_part(&mut self, archive: &ArchivedGroupsArchive) -> Result<(), DamagedState> {
        self.gone = archive.gone.to_native() as usize;
        let keyless = self.key_layout().parts.is_empty();
        let first = archive.first.to_native() as usize;
        if !keyless && first != self.len() {
            return damaged(format!("it begins with group {first} where {} are known", self.len()));
        }
        let mut rest = archive.keys.as_slice();
        let mut block: Vec<(&[u8], u64)> = Vec::with_capacity(AT_ONCE);
        for lengths in archive.lengths.chunks(AT_ONCE) {
            block.clear();
            for length in lengths {
                let Some((key, after)) = rest.split_at_checked(length.to_native() as usize) else {
                    return damaged("its keys are cut off");
                };
                rest = after;
                let parts = &self.key_layout().parts;
                if parts.iter().try_fold(key, |key, part| skip(key, &part.ty)).is_none_or(|left| !left.is_empty()) {
                    return damaged("a key in it is none");
                }
                block.push((key, hash_key(key)));
            }
            self.foresee(block.iter().map(|(_, hash)| *hash));
            for (key, hash) in &block {
                let before = self.len();
                self.group(key, *hash);
                if !keyless && self.len() == before {
                    return damaged("a key stands in it twice");
                }
            }
        }
        if !rest.is_empty() {
            return damaged("it has bytes of keys left over");
        }
        self.take_pages(archive)?;
        self.take_sides(archive)
    }

    fn take_pages(&mut self, archive: &ArchivedGroupsArchive) -> Result<(), DamagedState> {
        let size = self.stored_page_bytes();
        if archive.pages.len() != archive.numbers.len() * size {
            return damaged("its pages are cut off");
        }
        let pages = self.states.count();
        for (number, bytes) in archive.numbers.iter().zip(archive.pages.chunks_exact(size)) {
            let number = number.to_native() as usize;
            if number >= pages {
                return damaged(format!("it has page {number} of {pages}"));
            }
            // A page may come before the last of its groups.
            match self.forms.clone() {
                Some(forms) => {
                    let first = number * self.states.page_rows();
                    let page = forms.hold_page(first, bytes, &mut self.carried);
                    self.states.fill(number, &page);
                }
                None => self.states.fill(number, bytes),
            }
        }
        Ok(())
    }

    fn take_sides(&mut self, archive: &ArchivedGroupsArchive) -> Result<(), DamagedState> {
        let read = |side: &ArchivedSideArchive| Ok((side.aggregate.to_native(), self.side_from(side)?));
        let sides: Result<Vec<(u32, Side)>, DamagedState> = archive.sides.iter().map(read).collect();
        match archive.first_side.to_native() as usize {
            0 => self.sides.clear(),
            first if first == self.sides.len() => {}
            first => return damaged(format!("it begins with value {first} where {} are known", self.sides.len())),
        }
        sides?.into_iter().for_each(|side| self.sides.push(side));
        Ok(())
    }

    /// Whether every group's values are there: known when all parts are in.
    fn check_sides(&self) -> Result<(), DamagedState> {
        for info in self.aggregates.iter().filter(|info| info.slot.kind == StateKind::Side) {
            for row in 0..self.len() {
                let index = u64::from_le_bytes(self.states.read(row, info.slot.offset)) as usize;
                if index > self.sides.len() {
                    return damaged("a group in it has a value that isn't there");
                }
            }
        }
        Ok(())
    }

    fn side_from(&self, side: &ArchivedSideArchive) -> Result<Side, DamagedState> {
        let Some(info) = self.aggregates.get(side.aggregate.to_native() as usize) else {
            return damaged("it has a value of no aggregate");
        };
        let ty = DataType::of(info.arg.ty.clone());
        let mut rest = side.bytes.as_slice();
        let mut value = || -> Result<Value<'static>, DamagedState> {
            let Some(after) = skip(rest, &ty) else { return damaged("a value in it is none") };
            let mut front = &rest[..rest.len() - after.len()];
            rest = after;
            Ok(decode(&mut front, &ty).into_owned())
        };
        let ordinals: Vec<u64> = side.ordinals.iter().map(|ordinal| ordinal.to_native()).collect();
        Ok(match side.form {
            EXTREME => Side::Extreme(value()?),
            ORDERED => match ordinals[..] {
                [ordinal] => Side::Ordered(ordinal, value()?),
                _ => return damaged("a first or last value in it has no place"),
            },
            VALUES => {
                let values: Result<Vec<_>, _> = ordinals.iter().map(|&ordinal| Ok((ordinal, value()?))).collect();
                Side::Values(values?)
            }
            DISTINCT => {
                let mut values = HashSet::with_hasher(FixedState::default());
                for length in ordinals {
                    let Some((front, after)) = rest.split_at_checked(length as usize) else {
                        return damaged("a set in it is cut off");
                    };
                    rest = after;
                    values.get_or_insert_with(front, |bytes| bytes.into());
                }
                Side::Distinct(values)
            }
            ESTIMATE => match Estimate::from_registers(rest) {
                Some(estimate) => Side::Estimate(estimate),
                None => return damaged("an estimate in it is cut off"),
            },
            MOMENTS => match rest.as_chunks::<8>() {
                ([count, mean, squares], []) => Side::Moments(Moments {
                    count: f64::from_le_bytes(*count),
                    mean: f64::from_le_bytes(*mean),
                    squares: f64::from_le_bytes(*squares),
                }),
                _ => return damaged("moments in it are cut off"),
            },
            form => return damaged(format!("it has a value of form {form}")),
        })
    }
}

impl FrozenGroups {
    /// Groups in it.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Bytes of memory that it holds or shares, about.
    pub fn memory_bytes(&self) -> usize {
        let sides = self.last_side - self.first_side;
        self.keys.len() + self.pages.len() * self.page_bytes + sides * size_of::<Side>()
    }

    /// Bytes of each key.
    fn lengths(&self) -> Result<Vec<u32>, DamagedState> {
        if let Some(bytes) = self.types.key_bytes {
            return Ok(vec![bytes as u32; self.groups]);
        }
        let mut lengths = Vec::with_capacity(self.groups);
        let mut parts = self.keys.parts();
        let mut rest: &[u8] = &[];
        while lengths.len() < self.groups {
            if rest.is_empty() {
                rest = parts.next().unwrap_or_default();
            }
            let Some(after) = self.types.keys.iter().try_fold(rest, |key, ty| skip(key, ty)) else {
                return damaged("a key in it is none");
            };
            lengths.push((rest.len() - after.len()) as u32);
            rest = after;
        }
        Ok(lengths)
    }

    /// The same in pieces of about `limit` bytes each, which build on one another in their order: an archive has an end at 2 GiB,
    /// and while it is made its bytes are in memory twice.
    ///
    /// # Errors
    /// When its keys are none.
    pub fn split(mut self, limit: usize) -> Result<Vec<FrozenGroups>, DamagedState> {
        let mut out: Vec<FrozenGroups> = Vec::new();
        let lengths = self.lengths()?;
        let mut pages = std::mem::take(&mut self.pages).into_iter().peekable();
        let (mut group, mut side) = (0, self.first_side);
        loop {
            let (first_group, first_side) = (group, side);
            let mut of_pages = Vec::new();
            let (mut bytes, mut of_keys) = (0, 0);
            while bytes < limit {
                // A page comes with the groups that fill it, or after them.
                let known = (self.first + group).div_ceil(self.page_rows);
                let rest = group == lengths.len();
                if let Some(page) = pages.next_if(|page| page.number < known || rest) {
                    of_pages.push(page);
                    bytes += self.page_bytes;
                } else if let Some(&length) = lengths.get(group) {
                    group += 1;
                    of_keys += length as usize;
                    bytes += length as usize + size_of::<u32>();
                } else if let Some((_, value)) = self.sides.get(side).filter(|_| side < self.last_side) {
                    bytes += value.bytes();
                    side += 1;
                } else {
                    break;
                }
            }
            out.push(FrozenGroups {
                whole: self.whole && out.is_empty(),
                layout: self.layout.clone(),
                gone: self.gone,
                first: self.first + first_group,
                groups: group - first_group,
                keys: self.keys.take_front(of_keys),
                page_bytes: self.page_bytes,
                page_rows: self.page_rows,
                pages: of_pages,
                rows: self.rows,
                carried: self.carried.clone(),
                forms: self.forms.clone(),
                first_side,
                last_side: side,
                sides: self.sides.clone(),
                types: self.types.clone(),
            });
            if group == lengths.len() && pages.peek().is_none() && side == self.last_side {
                return Ok(out);
            }
        }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// When there are more than an archive can hold (2 GiB).
    pub fn archive(self) -> Result<AlignedVec, DamagedState> {
        self.archive_in(AlignedVec::new())
    }

    /// The same in memory that was used before: what was in it is gone.
    ///
    /// # Errors
    /// When there are more than an archive can hold (2 GiB).
    pub fn archive_in(self, mut room: AlignedVec) -> Result<AlignedVec, DamagedState> {
        room.clear();
        room.reserve(self.memory_bytes() + self.groups * size_of::<u32>() + ROOM);
        let sides = (self.first_side..self.last_side).filter_map(|side| self.sides.get(side));
        let argument = |aggregate: u32| &self.types.arguments[aggregate as usize];
        let archive = GroupsArchive {
            lengths: self.lengths()?,
            whole: self.whole,
            gone: self.gone as u64,
            first: self.first as u64,
            keys: self.keys,
            numbers: self.pages.iter().map(|page| page.number as u32).collect(),
            pages: StoredPages {
                pages: self.pages,
                page_bytes: self.page_bytes,
                page_rows: self.page_rows,
                rows: self.rows,
                carried: self.carried,
                forms: self.forms,
            },
            first_side: self.first_side as u64,
            sides: sides.map(|(of, side)| archive_side(side, *of, argument(*of))).collect(),
            layout: self.layout,
        };
        let bytes = rkyv::api::high::to_bytes_in::<_, rkyv::rancor::Error>(&archive, room);
        bytes.map_err(|error| DamagedState(format!("it can't be archived: {error}")))
    }
}

fn archive_side(side: &Side, aggregate: u32, ty: &DataType) -> SideArchive {
    let (mut bytes, mut ordinals) = (Vec::new(), Vec::new());
    let form = match side {
        Side::Extreme(value) => {
            encode(value, ty, &mut bytes);
            EXTREME
        }
        Side::Ordered(ordinal, value) => {
            ordinals.push(*ordinal);
            encode(value, ty, &mut bytes);
            ORDERED
        }
        Side::Distinct(values) => {
            for value in values {
                ordinals.push(value.len() as u64);
                bytes.extend_from_slice(value);
            }
            DISTINCT
        }
        Side::Estimate(estimate) => {
            bytes.extend_from_slice(estimate.registers());
            ESTIMATE
        }
        Side::Moments(Moments { count, mean, squares }) => {
            [count, mean, squares].iter().for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
            MOMENTS
        }
        Side::Values(values) => {
            for (ordinal, value) in values {
                ordinals.push(*ordinal);
                encode(value, ty, &mut bytes);
            }
            VALUES
        }
    };
    SideArchive { aggregate, form, ordinals, bytes }
}

/// The bytes where rkyv can read them in place: where they are, if they lie as it wants them, as large allocations do.
pub(crate) fn aligned(bytes: &[u8]) -> Aligned<'_> {
    if bytes.as_ptr().align_offset(ALIGNMENT) == 0 {
        return Aligned::There(bytes);
    }
    let mut copy = AlignedVec::new();
    copy.extend_from_slice(bytes);
    Aligned::Copied(copy)
}

/// Bytes of an archive beside its lists, about.
const ROOM: usize = 4096;

/// What rkyv wants at most.
const ALIGNMENT: usize = 16;

/// Bytes that lie as rkyv wants them.
pub(crate) enum Aligned<'b> {
    There(&'b [u8]),
    Copied(AlignedVec<ALIGNMENT>),
}

impl std::ops::Deref for Aligned<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Aligned::There(bytes) => bytes,
            Aligned::Copied(bytes) => bytes,
        }
    }
}
