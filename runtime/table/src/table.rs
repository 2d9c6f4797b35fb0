//! The table of groups: from packed keys, which are numbered, to state rows in pages.

use std::sync::Arc;

use dfc_eval::EvalError;
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, ExprKind, Site, Type, Value};

use crate::estimate::Estimate;
use crate::key::{KeyLayout, hash_key, partition};
use crate::keys::AT_ONCE;
use crate::layout::{StateKind, StateLayout, StateSlot};
use crate::narrow::{Carried, Forms};
use crate::numbered::KeyTable;
use crate::pages::{Pages, page_rows};
use crate::side::Sides;

/// A group's number: groups are numbered from 0 in the order of their arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupIndex(pub u32);

/// What the table knows about an aggregate.
pub(crate) struct AggregateInfo {
    pub function: AggFunction,
    pub slot: StateSlot,
    /// Type of the first argument.
    pub arg: DataType,
    /// `string_agg`'s separator.
    pub separator: String,
    pub ty: DataType,
    pub site: Site,
}

impl AggregateInfo {
    fn new(aggregate: &Aggregate, slot: StateSlot) -> Self {
        let separator = match aggregate.args.get(1).map(|arg| &arg.kind) {
            Some(ExprKind::Literal(Value::Str(text))) => text.to_string(),
            _ => String::new(),
        };
        let arg = aggregate.args.first().map_or(DataType::optional(Type::Null), |arg| arg.ty.clone());
        AggregateInfo {
            function: aggregate.function,
            slot,
            arg,
            separator,
            ty: aggregate.ty.clone(),
            site: aggregate.site,
        }
    }
}

/// Groups by key, each with the states of its aggregates.
///
/// A state row's address stays good, and the row where it is, until the table is frozen, dropped or finished; it may be written
/// through only while the table itself isn't used otherwise.
pub struct GroupTable {
    pub(crate) keys: KeyTable,
    pub(crate) states: Pages,
    /// What narrow sums carry beside the rows.
    pub(crate) carried: Carried,
    /// How rows are stored, where that isn't how they are held.
    pub(crate) forms: Option<Arc<Forms>>,
    /// The values beside the rows, each with the aggregate that it belongs to.
    pub(crate) sides: Sides,
    pub(crate) aggregates: Vec<AggregateInfo>,
    key_layout: KeyLayout,
    state_layout: StateLayout,
    pub(crate) scratch: Vec<u8>,
    /// Groups when it was last frozen; `None`: never.
    pub(crate) frozen: Option<usize>,
    /// Groups with a lower number were given on: see [`GroupTable::forget_before`].
    pub(crate) gone: usize,
}

impl GroupTable {
    /// An empty table; without keys it has its one group from the start.
    pub fn new(spec: &AggregateSpec) -> GroupTable {
        let state_layout = StateLayout::new(spec);
        let stored = StateLayout::stored(&spec.aggregates);
        let aggregates =
            spec.aggregates.iter().zip(&state_layout.slots).map(|(a, slot)| AggregateInfo::new(a, *slot)).collect();
        let key_layout = KeyLayout::new(spec.keys.iter().map(|key| key.ty.clone()));
        let mut table = GroupTable {
            keys: KeyTable::new(key_layout.fixed_bytes),
            states: Pages::new(state_layout.row_bytes, page_rows(stored.row_bytes)),
            carried: Carried::default(),
            forms: Forms::new(&state_layout, stored),
            sides: Sides::default(),
            aggregates,
            key_layout,
            state_layout,
            scratch: Vec::new(),
            frozen: None,
            gone: 0,
        };
        if spec.keys.is_empty() {
            table.group(&[], hash_key(&[]));
        }
        table
    }

    /// How keys are written.
    pub fn key_layout(&self) -> &KeyLayout {
        &self.key_layout
    }

    /// How state rows are laid out.
    pub fn state_layout(&self) -> &StateLayout {
        &self.state_layout
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no group yet.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The bytes of a group's key.
    pub fn key(&self, group: GroupIndex) -> &[u8] {
        self.keys.get(group.0 as usize)
    }

    /// The group with this key, which is added if there is none. `hash` is the key's [`hash_key`].
    ///
    /// Panics past three quarters of 2³² groups.
    #[inline]
    pub fn group(&mut self, key: &[u8], hash: u64) -> GroupIndex {
        match self.keys.find(key, hash) {
            Ok(number) => GroupIndex(number),
            Err(at) => self.add(key, hash, at),
        }
    }

    /// Adds a group whose slot is free.
    #[inline]
    fn add(&mut self, key: &[u8], hash: u64, at: usize) -> GroupIndex {
        self.states.push();
        GroupIndex(self.keys.add(key, hash, at))
    }

    /// The address of a group's state row: see [`StateLayout`].
    ///
    /// Panics if there is no such group.
    #[inline]
    pub fn state_row(&mut self, group: GroupIndex) -> *mut u8 {
        self.states.writable(group.0 as usize)
    }

    /// A narrow sum of a group, whose state row this is, was `before` when its argument would have made it pass 64 bits: it begins anew with
    /// the argument.
    ///
    /// Panics if it is no group's row.
    pub fn carry(&mut self, row: *const u8, aggregate: usize, before: i64) {
        // Can't fail: see above.
        let row = self.states.row_of(row).expect("the row is one of the table");
        self.carried.add(row, aggregate, before.into());
    }

    /// Merges those groups of `other`, a table of the same aggregate, whose hash falls to `part` of `parts`: see [`partition`].
    /// Gives their number.
    ///
    /// Errors: `R0101` if a sum passes 128 bits.
    pub fn merge_partition(&mut self, other: &GroupTable, part: usize, parts: usize) -> Result<usize, EvalError> {
        let ours = |hash: &u64| partition(*hash, parts) == part;
        let mut room = [0; AT_ONCE];
        if self.is_empty() {
            let mut expected = 0;
            for first in (other.gone..other.len()).step_by(AT_ONCE) {
                expected += other.keys.hashes(first, &mut room).iter().filter(|hash| ours(hash)).count();
            }
            self.reserve(expected);
        }
        let in_rows = self.is_in_rows() && other.carried.is_empty();
        let mut merged = 0;
        for first in (other.gone..other.len()).step_by(AT_ONCE) {
            let hashes = other.keys.hashes(first, &mut room);
            self.foresee(hashes.iter().copied().filter(ours));
            for (hash, number) in hashes.iter().zip(first..).filter(|(hash, _)| ours(hash)) {
                merged += 1;
                let key = other.keys.get(number);
                let group = match self.keys.find(key, *hash) {
                    Ok(number) => GroupIndex(number),
                    Err(at) => {
                        let group = self.add(key, *hash, at);
                        if in_rows {
                            // A new group's state is all zeros, with which every state is itself.
                            self.states.copy_row(group.0 as usize, &other.states, number);
                            continue;
                        }
                        group
                    }
                };
                for aggregate in 0..self.aggregates.len() {
                    self.merge_state(group, aggregate, other, GroupIndex(number as u32))?;
                }
            }
        }
        Ok(merged)
    }

    /// Groups with a lower number than this were given on: they stay where they are, but for whoever merges or reads the table as it was
    /// frozen from now on they are no part of it. It costs nothing, however many stay.
    pub fn forget_before(&mut self, group: usize) {
        self.gone = self.gone.max(group.min(self.len()));
    }

    /// The number of the first group that wasn't given on.
    pub fn first(&self) -> usize {
        self.gone
    }

    /// Lets an estimate see the keys.
    pub fn see_keys(&self, estimate: &mut Estimate) {
        let mut room = [0; AT_ONCE];
        for first in (0..self.len()).step_by(AT_ONCE) {
            self.keys.hashes(first, &mut room).iter().for_each(|hash| estimate.add(*hash));
        }
    }

    /// Whether all states lie in the rows, and none beside them.
    pub(crate) fn is_in_rows(&self) -> bool {
        self.aggregates.iter().all(|aggregate| aggregate.slot.kind != StateKind::Side)
    }

    /// Loads that don't wait for each other: who asks for groups with these hashes next finds their slots in the cache.
    pub(crate) fn foresee(&self, hashes: impl Iterator<Item = u64>) {
        self.keys.foresee(hashes);
    }

    /// Makes room for so many groups in all.
    pub fn reserve(&mut self, groups: usize) {
        self.keys.reserve(groups);
    }

    /// Bytes of a group's state row and its entry, keys and sides aside.
    pub fn row_bytes(&self) -> usize {
        self.state_layout.row_bytes + self.keys.entry_bytes() + 2 * size_of::<u32>()
    }

    /// Bytes of memory that the table holds, about (values beside the rows are counted by their number only).
    pub fn memory_bytes(&self) -> usize {
        self.states.memory_bytes()
            + self.keys.memory_bytes()
            + self.carried.memory_bytes()
            + self.sides.iter().map(|(_, side)| side.memory_bytes()).sum::<usize>()
    }
}

/// [`GroupTable::group`] for compiled code: the address of the group's state row.
///
/// # Safety
///
/// `table` points to a table that nothing else uses during the call; `key` to `len` bytes that the table's
/// [`KeyLayout`] could have written, outside the table; `hash` is their [`hash_key`].
pub unsafe extern "C" fn find_or_insert(table: *mut GroupTable, key: *const u8, len: usize, hash: u64) -> *mut u8 {
    // SAFETY: the caller's promise.
    let (table, key) = unsafe { (&mut *table, std::slice::from_raw_parts(key, len)) };
    let group = table.group(key, hash);
    table.state_row(group)
}
