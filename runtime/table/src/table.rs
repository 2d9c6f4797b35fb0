//! The table of groups: from packed keys to state rows.
//!
//! Open addressing over 8-byte slots (high half of the hash, and the group's number); keys packed one after another in an arena; state
//! rows in pages. Neither ever moves.

use dfc_eval::EvalError;
use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, ExprKind, Site, Type, Value};

use crate::arena::{Arena, Place};
use crate::estimate::Estimate;
use crate::key::{KeyLayout, hash_key, partition};
use crate::layout::{StateKind, StateLayout, StateSlot};
use crate::pages::Pages;
use crate::side::Sides;

/// Most groups in so many slots: a search for a new one ends at a free slot, about seven on where so many are taken, in one or two lines of
/// the cache, and of those before it hardly any has the same half of the hash.
fn filled(slots: usize) -> usize {
    slots / 4 * 3
}

/// Groups whose slots are looked up together.
const MERGED_AT_ONCE: usize = 64;

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

pub(crate) struct Entry {
    pub(crate) hash: u64,
    /// Where its key lies in the arena.
    pub(crate) key: Place,
    /// Bytes of its key.
    pub(crate) len: u32,
}

/// Entries of a block.
const BLOCK: usize = 4096;

/// Entries in blocks: more of them need no other place for those before, and no more memory than a block beyond their own.
#[derive(Default)]
pub(crate) struct Entries {
    blocks: Vec<Vec<Entry>>,
    count: usize,
}

impl Entries {
    fn push(&mut self, entry: Entry) {
        if self.count.is_multiple_of(BLOCK) {
            // The first grows, as most tables are small.
            self.blocks.push(Vec::with_capacity(if self.count == 0 { 0 } else { BLOCK }));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(entry);
        }
        self.count += 1;
    }

    fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn get(&self, number: usize) -> &Entry {
        &self.blocks[number / BLOCK][number % BLOCK]
    }

    fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.blocks.iter().flatten()
    }

    /// From an entry on, as slices of at most so many, each with the number of its first.
    fn chunks(&self, first: usize, of: usize) -> impl Iterator<Item = (usize, &[Entry])> {
        let blocks = self.blocks.iter().enumerate().skip(first / BLOCK);
        blocks.flat_map(move |(number, block)| {
            let start = first.saturating_sub(number * BLOCK).min(block.len());
            block[start..].chunks(of).zip(0..).map(move |(chunk, n)| (number * BLOCK + start + n * of, chunk))
        })
    }

    fn memory_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.capacity() * size_of::<Entry>()).sum()
    }
}

/// Groups by key, each with the states of its aggregates.
///
/// A state row's address stays good, and the row where it is, until the table is frozen, dropped or finished; it may be written
/// through only while the table itself isn't used otherwise.
pub struct GroupTable {
    /// 0: free; else the hash's high half, and the group's number plus 1 in the low half.
    slots: Vec<u64>,
    pub(crate) entries: Entries,
    pub(crate) keys: Arena,
    pub(crate) states: Pages,
    /// The values beside the rows, each with the aggregate that it belongs to.
    pub(crate) sides: Sides,
    pub(crate) aggregates: Vec<AggregateInfo>,
    key_layout: KeyLayout,
    state_layout: StateLayout,
    pub(crate) scratch: Vec<u8>,
    /// Groups and the end of their keys when it was last frozen; `None`: never.
    pub(crate) frozen: Option<(usize, Place)>,
    /// Groups with a lower number were given on: see [`GroupTable::forget_before`].
    pub(crate) gone: usize,
}

impl GroupTable {
    /// An empty table; without keys it has its one group from the start.
    pub fn new(spec: &AggregateSpec) -> GroupTable {
        let state_layout = StateLayout::new(&spec.aggregates);
        let aggregates =
            spec.aggregates.iter().zip(&state_layout.slots).map(|(a, slot)| AggregateInfo::new(a, *slot)).collect();
        let mut table = GroupTable {
            slots: vec![0; 64],
            entries: Entries::default(),
            keys: Arena::default(),
            states: Pages::new(state_layout.row_bytes),
            sides: Sides::default(),
            aggregates,
            key_layout: KeyLayout::new(spec.keys.iter().map(|key| key.ty.clone())),
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
        self.entries.len()
    }

    /// Whether there is no group yet.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// The bytes of a group's key.
    pub fn key(&self, group: GroupIndex) -> &[u8] {
        let entry = self.entries.get(group.0 as usize);
        self.keys.get(entry.key, entry.len as usize)
    }

    /// The group with this key, which is added if there is none. `hash` is the key's [`hash_key`].
    ///
    /// Panics past 2³² − 2 groups.
    pub fn group(&mut self, key: &[u8], hash: u64) -> GroupIndex {
        let tag = hash & !0xFFFF_FFFF;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => break,
                slot if slot & !0xFFFF_FFFF == tag => {
                    let group = GroupIndex(slot as u32 - 1);
                    if self.key(group) == key {
                        return group;
                    }
                }
                _ => {}
            }
            at = (at + 1) & mask;
        }
        let number = self.entries.len() as u32;
        assert!(number < u32::MAX - 1, "more than 4,294,967,294 groups in one table");
        self.slots[at] = tag | u64::from(number + 1);
        self.entries.push(Entry { hash, key: self.keys.add(key), len: key.len() as u32 });
        self.states.push();
        if self.entries.len() > filled(self.slots.len()) {
            self.grow();
        }
        GroupIndex(number)
    }

    /// The address of a group's state row: see [`StateLayout`].
    ///
    /// Panics if there is no such group.
    pub fn state_row(&mut self, group: GroupIndex) -> *mut u8 {
        self.states.writable(group.0 as usize)
    }

    fn grow(&mut self) {
        self.spread(self.slots.len() * 2);
    }

    /// Gives the table so many slots, a power of two.
    fn spread(&mut self, slots: usize) {
        let mask = slots - 1;
        let mut slots = vec![0; slots];
        for (entry, number) in self.entries.iter().zip(1u64..) {
            let mut at = entry.hash as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = entry.hash & !0xFFFF_FFFF | number;
        }
        self.slots = slots;
    }

    /// Merges those groups of `other`, a table of the same aggregate, whose hash falls to `part` of `parts`: see [`partition`].
    /// Gives their number.
    ///
    /// Errors: `R0101` if a sum passes 128 bits.
    pub fn merge_partition(&mut self, other: &GroupTable, part: usize, parts: usize) -> Result<usize, EvalError> {
        let ours = |entry: &&Entry| partition(entry.hash, parts) == part;
        if self.is_empty() {
            self.reserve(other.entries.iter().skip(other.gone).filter(ours).count());
        }
        let in_rows = self.is_in_rows();
        let mut merged = 0;
        for (first, block) in other.entries.chunks(other.gone, MERGED_AT_ONCE) {
            self.foresee(block.iter().filter(ours).map(|entry| entry.hash));
            for (entry, number) in block.iter().zip(first as u32..).filter(|(entry, _)| ours(entry)) {
                let (theirs, before) = (GroupIndex(number), self.len());
                let group = self.group(other.key(theirs), entry.hash);
                if in_rows && self.len() > before {
                    // A new group's state is all zeros, with which every state is itself.
                    self.states.copy_row(group.0 as usize, &other.states, number as usize);
                } else {
                    for aggregate in 0..self.aggregates.len() {
                        self.merge_state(group, aggregate, other, theirs)?;
                    }
                }
                merged += 1;
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
        self.entries.iter().for_each(|entry| estimate.add(entry.hash));
    }

    /// Whether all states lie in the rows, and none beside them.
    pub(crate) fn is_in_rows(&self) -> bool {
        self.aggregates.iter().all(|aggregate| aggregate.slot.kind != StateKind::Side)
    }

    /// Loads that don't wait for each other: who asks for groups with these hashes next finds their slots in the cache.
    pub(crate) fn foresee(&self, hashes: impl Iterator<Item = u64>) {
        let mask = self.slots.len() - 1;
        let slots = hashes.map(|hash| self.slots[hash as usize & mask]);
        std::hint::black_box(slots.fold(0, |all, slot| all ^ slot));
    }

    /// Makes room for so many groups in all.
    pub fn reserve(&mut self, groups: usize) {
        let mut slots = self.slots.len();
        while groups > filled(slots) {
            slots *= 2;
        }
        if slots > self.slots.len() {
            self.spread(slots);
        }
    }

    /// Bytes of a group's state row and its entry, keys and sides aside.
    pub fn row_bytes(&self) -> usize {
        self.state_layout.row_bytes + size_of::<Entry>() + 2 * size_of::<u64>()
    }

    /// Bytes of memory that the table holds, about (values beside the rows are counted by their number only).
    pub fn memory_bytes(&self) -> usize {
        self.states.memory_bytes()
            + self.keys.memory_bytes()
            + self.slots.capacity() * size_of::<u64>()
            + self.entries.memory_bytes()
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
