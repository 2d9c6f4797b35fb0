//! Operator state on its way into a checkpoint and out of it again (D11, D13, F1).
//!
//! A task hands over what it holds without stopping for long ([`Saved`]: shared pages, shared arrays); the checkpoint's writer makes bytes
//! of it. A stage's state is a bag: whatever number of tasks restores it, each takes its share.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema};
use dfc_batch::Batch;
use dfc_checkpoint::StoredPart;
use dfc_ir::stage::AggregateSpec;
use dfc_table::{FrozenBytes, FrozenGroups, GroupTable};
use dfc_trial::{Planted, planted};
use rkyv::api::high::to_bytes_in;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

use crate::RunError;
use crate::ops::batch_rows;
use crate::store::{self, Arrival, FrozenPlaces, RowRef};

/// What kind of state it is: how it is shared out, and what it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A table of groups, in parts that build on one another.
    Groups,
    /// Finished rows that were not given yet.
    Results,
    /// Rows held to the end, in their order.
    Rows,
    /// Keys that have come.
    Seen,
    /// The right rows of a join that have had a partner, a bit each.
    Marks,
    /// A few numbers.
    Numbers,
    /// Rows of a join table.
    Build,
    /// Packets before a stage that hasn't started.
    Queue,
}

impl Kind {
    const NAMES: [(Kind, &'static str); 8] = [
        (Kind::Groups, "groups"),
        (Kind::Results, "results"),
        (Kind::Rows, "rows"),
        (Kind::Seen, "seen"),
        (Kind::Marks, "marks"),
        (Kind::Numbers, "numbers"),
        (Kind::Build, "build"),
        (Kind::Queue, "queue"),
    ];

    /// As it stands in manifests.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The kind of this name.
    pub(crate) fn by_name(name: &str) -> Option<Kind> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind)
    }
}

/// State as an operator hands it over.
pub(crate) enum Saved {
    /// Part of a table of groups.
    Groups(FrozenGroups),
    /// A table that nobody changes any more.
    Table(Arc<GroupTable>),
    /// Rows, each batch with its number; `arrivals`: for each row the number of the packet and the row in it that it came from.
    Rows {
        /// The rows.
        batches: Vec<Batch>,
        /// Empty, or one for each row.
        arrivals: Vec<(u64, u32)>,
    },
    /// Rows picked out of batches, with the places that they came from.
    Picked {
        /// Where they stand.
        batches: Vec<Batch>,
        /// Which ones, in their order.
        places: FrozenPlaces,
        /// The first of them that counts.
        from: usize,
    },
    /// Keys, one after another.
    Seen {
        /// The keys' bytes.
        bytes: FrozenBytes,
        /// How long they are.
        lengths: KeyLengths,
    },
    /// Numbers, or words of bits.
    Numbers(Vec<u64>),
}

/// The lengths of keys.
pub(crate) enum KeyLengths {
    /// So many keys, all as long.
    All {
        /// Bytes of each.
        width: usize,
        /// How many there are.
        keys: usize,
    },
    /// The length of each, as four bytes, little end first.
    Each(FrozenBytes),
}

impl KeyLengths {
    /// How many keys there are.
    fn keys(&self) -> usize {
        match self {
            KeyLengths::All { keys, .. } => *keys,
            KeyLengths::Each(lengths) => lengths.len() / size_of::<u32>(),
        }
    }

    /// One after another.
    fn iter(&self) -> impl Iterator<Item = usize> {
        let (all, each) = match self {
            KeyLengths::All { width, keys } => (Some(std::iter::repeat_n(*width, *keys)), None),
            KeyLengths::Each(lengths) => (None, Some(lengths)),
        };
        let each = each.into_iter().flat_map(FrozenBytes::parts);
        let each = each.flat_map(|part| part.as_chunks::<{ size_of::<u32>() }>().0);
        all.into_iter().flatten().chain(each.map(|length| u32::from_le_bytes(*length) as usize))
    }

    /// Takes those of the first so many keys out.
    fn take_front(&mut self, count: usize) -> KeyLengths {
        match self {
            KeyLengths::All { width, keys } => {
                *keys -= count;
                KeyLengths::All { width: *width, keys: count }
            }
            KeyLengths::Each(lengths) => KeyLengths::Each(lengths.take_front(count * size_of::<u32>())),
        }
    }
}

/// How a part changes what was saved before under the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It takes its place.
    Replace,
    /// It is added to it.
    Append,
    /// Nothing changed.
    Keep,
}

/// One piece of a task's state.
pub(crate) struct Piece {
    /// What kind.
    pub(crate) kind: Kind,
    /// What it does to what was saved before.
    pub(crate) change: Change,
    /// `None` only with [`Change::Keep`].
    pub(crate) saved: Option<Saved>,
}

impl Piece {
    /// State that replaces what was saved before.
    pub(crate) fn whole(kind: Kind, saved: Saved) -> Piece {
        Piece { kind, change: Change::Replace, saved: Some(saved) }
    }
}

/// State as it comes back.
#[derive(Clone)]
pub(crate) struct Restored {
    /// What kind.
    pub(crate) kind: Kind,
    /// Position in the bag, for dealing out what has no owner.
    pub(crate) position: usize,
    /// The bag has what each of so many tasks had, at this task's position; `None`: that isn't known.
    pub(crate) tasks: Option<usize>,
    /// The parts, in their order; all tasks read the same.
    pub(crate) parts: Arc<Parts>,
}

/// Stored parts, of which every byte is what was written. They are unpacked when a task first wants them, and given up when all have had them.
pub(crate) struct Parts {
    parts: Vec<Mutex<Part>>,
    /// Groups, keys or rows in them, as is said of them.
    entries: u64,
}

enum Part {
    Stored(StoredPart),
    Unpacked(Unpacked),
    GivenUp,
}

/// A part's bytes.
#[derive(Clone)]
pub(crate) struct Unpacked(Arc<Vec<u8>>);

impl AsRef<[u8]> for Unpacked {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::Deref for Unpacked {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Parts {
    pub(crate) fn new(parts: impl IntoIterator<Item = StoredPart>, entries: u64) -> Parts {
        Parts { parts: parts.into_iter().map(|part| Mutex::new(Part::Stored(part))).collect(), entries }
    }

    /// How many groups, keys or rows there are said to be.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Lets their bytes be looked at one after another, for who is alone in wanting them: they are given up on the way.
    ///
    /// # Errors
    /// When one of them isn't what a part is, or what `look` says.
    pub(crate) fn consume(&self, mut look: impl FnMut(&[u8]) -> Result<(), RunError>) -> Result<(), RunError> {
        // The same memory for all: what is new from the system has to be cleared by it.
        let mut room = Vec::new();
        for part in &self.parts {
            let part = std::mem::replace(&mut *part.lock().unwrap_or_else(|e| e.into_inner()), Part::GivenUp);
            match part {
                Part::Stored(stored) => look(stored.unpack_in(&mut room).map_err(failed)?)?,
                Part::Unpacked(bytes) => look(&bytes)?,
                Part::GivenUp => return Err(failed("a part of it has been given up already")),
            }
        }
        Ok(())
    }

    /// Their bytes, in their order.
    ///
    /// # Errors
    /// When one of them isn't what a part is.
    pub(crate) fn all(&self) -> Result<Vec<Unpacked>, RunError> {
        (0..self.parts.len()).map(|number| self.get(number)).collect()
    }

    /// The same. Several tasks that want all begin at different ones, so that each unpacks some.
    ///
    /// # Errors
    /// As with [`Parts::all`].
    pub(crate) fn all_for(&self, share: Share) -> Result<Vec<Unpacked>, RunError> {
        let first = self.parts.len() * share.part / share.parts.max(1);
        (first..self.parts.len()).try_for_each(|number| self.get(number).map(drop))?;
        self.all()
    }

    fn get(&self, number: usize) -> Result<Unpacked, RunError> {
        let mut part = self.parts[number].lock().unwrap_or_else(|e| e.into_inner());
        let bytes = match std::mem::replace(&mut *part, Part::GivenUp) {
            Part::Stored(stored) => Unpacked(Arc::new(stored.unpack().map_err(failed)?)),
            Part::Unpacked(bytes) => bytes,
            Part::GivenUp => return Err(failed("a part of it has been given up already")),
        };
        *part = Part::Unpacked(bytes.clone());
        Ok(bytes)
    }

    /// Nobody wants them any more.
    pub(crate) fn give_up(&self) {
        for part in &self.parts {
            *part.lock().unwrap_or_else(|e| e.into_inner()) = Part::GivenUp;
        }
    }
}

/// Which share of the bag is a task's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// Number of the task.
    pub(crate) part: usize,
    /// Number of tasks.
    pub(crate) parts: usize,
}

impl Share {
    /// Whether what has no owner by its key is this task's.
    pub(crate) fn takes(self, position: usize) -> bool {
        if planted(Planted::StateDealtTwice) {
            return true;
        }
        let position = if planted(Planted::StateLost) { position } else { position % self.parts };
        position == self.part
    }
}

#[derive(Archive, Serialize, Deserialize)]
struct RowsArchive {
    /// An Arrow IPC stream.
    stream: Vec<u8>,
    /// Rows of each batch: a batch without columns has no other place for them.
    rows: Vec<u64>,
    numbers: Vec<u64>,
    arrival_packets: Vec<u64>,
    arrival_rows: Vec<u32>,
}

#[derive(Archive, Serialize, Deserialize)]
struct SeenArchive {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

#[derive(Archive, Serialize, Deserialize)]
struct NumbersArchive {
    numbers: Vec<u64>,
}

fn failed(what: impl std::fmt::Display) -> RunError {
    RunError::State(what.to_string())
}

impl Saved {
    /// Rows in it, as people count them: groups, keys, rows.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Saved::Groups(groups) => groups.groups() as u64,
            Saved::Table(table) => table.len() as u64,
            Saved::Picked { places, from, .. } => (places.len() - from) as u64,
            Saved::Rows { batches, .. } => batches.iter().map(|batch| batch.rows as u64).sum(),
            Saved::Seen { lengths, .. } => lengths.keys() as u64,
            Saved::Numbers(_) => 0,
        }
    }

    /// The same in pieces of about `limit` bytes, in their order: the first one replaces what the whole would, the others are
    /// added to it. What the task has only pointed at is copied here, beside its work.
    ///
    /// # Errors
    /// When it isn't what it is said to be.
    pub(crate) fn pieces(self, limit: usize) -> Result<Vec<Saved>, RunError> {
        Ok(match self {
            Saved::Table(table) => return Saved::Groups(table.copy_whole()).pieces(limit),
            Saved::Picked { batches, places, from } => return picked(batches, &places, from).pieces(limit),
            Saved::Groups(groups) if groups.memory_bytes() > limit => {
                groups.split(limit).map_err(failed)?.into_iter().map(Saved::Groups).collect()
            }
            Saved::Rows { batches, arrivals } => {
                let mut out: Vec<(Vec<Batch>, Vec<(u64, u32)>)> = vec![(Vec::new(), Vec::new())];
                let (mut bytes, mut arrivals) = (0, arrivals.into_iter());
                for batch in batches {
                    let size: usize = batch.columns.iter().map(|column| column.get_array_memory_size()).sum();
                    if bytes + size > limit && bytes > 0 {
                        out.push((Vec::new(), Vec::new()));
                        bytes = 0;
                    }
                    bytes += size;
                    if let Some((batches, of_rows)) = out.last_mut() {
                        of_rows.extend(arrivals.by_ref().take(batch.rows));
                        batches.push(batch);
                    }
                }
                out.into_iter().map(|(batches, arrivals)| Saved::Rows { batches, arrivals }).collect()
            }
            Saved::Seen { mut bytes, mut lengths } if bytes.len() > limit => {
                let mut out = Vec::new();
                let (mut of_keys, mut keys) = (0, 0);
                let all: Vec<usize> = lengths.iter().collect();
                for (number, length) in all.iter().enumerate() {
                    (of_keys, keys) = (of_keys + length, keys + 1);
                    if all.get(number + 1).is_none_or(|next| of_keys + next > limit) {
                        let (bytes, lengths) = (bytes.take_front(of_keys), lengths.take_front(keys));
                        out.push(Saved::Seen { bytes, lengths });
                        (of_keys, keys) = (0, 0);
                    }
                }
                out
            }
            small => vec![small],
        })
    }

    /// Its bytes.
    ///
    /// # Errors
    /// When it can't be archived.
    pub(crate) fn archive(self) -> Result<AlignedVec, RunError> {
        self.archive_in(AlignedVec::new())
    }

    /// The same in memory that was used before: what was in it is gone.
    ///
    /// # Errors
    /// When it can't be archived.
    pub(crate) fn archive_in(self, mut room: AlignedVec) -> Result<AlignedVec, RunError> {
        room.clear();
        match self {
            Saved::Groups(groups) => groups.archive_in(room).map_err(failed),
            Saved::Table(table) => table.copy_whole().archive_in(room).map_err(failed),
            Saved::Picked { batches, places, from } => picked(batches, &places, from).archive_in(room),
            Saved::Rows { batches, arrivals } => {
                let archive = RowsArchive {
                    stream: write_stream(&batches)?,
                    rows: batches.iter().map(|batch| batch.rows as u64).collect(),
                    numbers: batches.iter().map(|batch| batch.seq).collect(),
                    arrival_packets: arrivals.iter().map(|(packet, _)| *packet).collect(),
                    arrival_rows: arrivals.iter().map(|(_, row)| *row).collect(),
                };
                to_bytes_in::<_, rkyv::rancor::Error>(&archive, room).map_err(failed)
            }
            Saved::Seen { bytes, lengths } => {
                let ends = lengths.iter().scan(0, |end, length| {
                    *end += length as u64;
                    Some(*end)
                });
                let archive = SeenArchive { bytes: bytes.parts().flatten().copied().collect(), ends: ends.collect() };
                to_bytes_in::<_, rkyv::rancor::Error>(&archive, room).map_err(failed)
            }
            Saved::Numbers(numbers) => {
                let archive = NumbersArchive { numbers };
                to_bytes_in::<_, rkyv::rancor::Error>(&archive, room).map_err(failed)
            }
        }
    }
}

/// The rows that are pointed at, as batches.
fn picked(batches: Vec<Batch>, places: &FrozenPlaces, from: usize) -> Saved {
    let places: Vec<&(Arrival, RowRef)> = places.iter().skip(from).collect();
    let gather = |places: &[&(Arrival, RowRef)]| {
        let rows: Vec<RowRef> = places.iter().map(|(_, row)| *row).collect();
        store::gather(&batches, &rows, 0)
    };
    let arrivals = places.iter().map(|(arrival, _)| *arrival).collect();
    Saved::Rows { batches: places.chunks(batch_rows()).map(gather).collect(), arrivals }
}

fn write_stream(batches: &[Batch]) -> Result<Vec<u8>, RunError> {
    let Some(first) = batches.iter().find(|batch| !batch.columns.is_empty()) else { return Ok(Vec::new()) };
    let field =
        |(i, column): (usize, &arrow_array::ArrayRef)| Field::new(i.to_string(), column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(first.columns.iter().enumerate().map(field).collect::<Vec<_>>()));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).map_err(failed)?;
    for batch in batches {
        let record = RecordBatch::try_new(schema.clone(), batch.columns.clone()).map_err(failed)?;
        writer.write(&record).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

/// Saved rows.
pub(crate) struct RestoredRows {
    /// The batches, with their numbers.
    pub(crate) batches: Vec<Batch>,
    /// Empty, or one for each row.
    pub(crate) arrivals: Vec<(u64, u32)>,
}

fn access<T>(bytes: &[u8]) -> Result<T, RunError>
where
    T: Archive,
    T::Archived: for<'a> rkyv::bytecheck::CheckBytes<rkyv::api::high::HighValidator<'a, rkyv::rancor::Error>>
        + Deserialize<T, rkyv::api::high::HighDeserializer<rkyv::rancor::Error>>,
{
    let mut aligned = AlignedVec::<16>::new();
    aligned.extend_from_slice(bytes);
    rkyv::from_bytes::<T, rkyv::rancor::Error>(&aligned).map_err(failed)
}

/// Rows as [`Saved::Rows`] wrote them; every batch has `columns` columns.
pub(crate) fn rows(bytes: &[u8], columns: Option<usize>) -> Result<RestoredRows, RunError> {
    let archive: RowsArchive = access(bytes)?;
    let mut batches = Vec::new();
    if archive.stream.is_empty() {
        for (&rows, &seq) in archive.rows.iter().zip(&archive.numbers) {
            batches.push(Batch::new(Vec::new(), usize::try_from(rows).map_err(failed)?, seq));
        }
    } else {
        let reader = StreamReader::try_new(archive.stream.as_slice(), None).map_err(failed)?;
        for (record, &seq) in reader.zip(&archive.numbers) {
            let record = record.map_err(failed)?;
            batches.push(Batch::new(record.columns().to_vec(), record.num_rows(), seq));
        }
    }
    let total: usize = batches.iter().map(|batch| batch.rows).sum();
    let arrivals: Vec<(u64, u32)> = archive.arrival_packets.into_iter().zip(archive.arrival_rows).collect();
    let fits = batches.len() == archive.rows.len()
        && batches.iter().zip(&archive.rows).all(|(batch, &rows)| batch.rows as u64 == rows)
        && (arrivals.is_empty() || arrivals.len() == total)
        && columns.is_none_or(|columns| batches.iter().all(|batch| batch.columns.len() == columns));
    if fits { Ok(RestoredRows { batches, arrivals }) } else { Err(failed("saved rows don't fit what is said of them")) }
}

/// Saved keys.
pub(crate) struct SeenKeys(SeenArchive);

impl SeenKeys {
    /// One after another.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.0.ends);
        // What they end at was looked at before.
        starts.zip(&self.0.ends).map(|(start, end)| &self.0.bytes[*start as usize..*end as usize])
    }
}

/// Keys as [`Saved::Seen`] wrote them.
pub(crate) fn seen(bytes: &[u8]) -> Result<SeenKeys, RunError> {
    let archive: SeenArchive = access(bytes)?;
    match archive.ends.is_sorted() && archive.ends.last().is_none_or(|last| *last <= archive.bytes.len() as u64) {
        true => Ok(SeenKeys(archive)),
        false => Err(failed("saved keys are cut off")),
    }
}

/// Numbers as [`Saved::Numbers`] wrote them.
pub(crate) fn numbers(bytes: &[u8]) -> Result<Vec<u64>, RunError> {
    access::<NumbersArchive>(bytes).map(|archive| archive.numbers)
}

/// Groups as [`Saved::Groups`] wrote them, part by part.
pub(crate) fn groups<B: AsRef<[u8]>>(spec: &AggregateSpec, parts: &[B]) -> Result<GroupTable, RunError> {
    GroupTable::from_parts(spec, parts).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dfc_batch::ColumnBuilder;
    use dfc_ir::{DataType, Type, Value};
    use dfc_table::Arena;

    fn batch(seq: u64, rows: usize) -> Batch {
        let mut column = ColumnBuilder::new(&DataType::of(Type::INT64), rows);
        (0..rows).for_each(|row| column.push(&Value::Int(seq as i128 * 1_000 + row as i128)));
        Batch::new(vec![column.finish()], rows, seq)
    }

    fn keys_of(saved: Saved, limit: usize) -> Vec<Vec<u8>> {
        assert_eq!(saved.rows(), 200);
        let pieces = saved.pieces(limit).unwrap().into_iter().map(|piece| seen(&piece.archive().unwrap()).unwrap());
        pieces.flat_map(|keys| keys.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
    }

    /// Large state is stored in pieces, which are the whole when they are read one after another (D13).
    #[test]
    fn pieces_are_the_whole() {
        for limit in [1, 500, 5_000, usize::MAX] {
            let batches: Vec<Batch> = (0..20).map(|seq| batch(seq, 1 + seq as usize * 7)).collect();
            let total: usize = batches.iter().map(|batch| batch.rows).sum();
            let arrivals: Vec<(u64, u32)> = (0..total).map(|row| (row as u64 / 10, row as u32)).collect();
            let pieces = Saved::Rows { batches: batches.clone(), arrivals: arrivals.clone() }.pieces(limit).unwrap();
            assert_eq!(pieces.len() > 1, limit < usize::MAX);
            let (mut again, mut places) = (Vec::new(), Vec::new());
            for piece in pieces {
                let read = rows(&piece.archive().unwrap(), Some(1)).unwrap();
                again.extend(read.batches);
                places.extend(read.arrivals);
            }
            let flat = |batches: &[Batch]| -> Vec<_> { batches.iter().map(|b| (b.seq, b.columns.clone())).collect() };
            assert_eq!(flat(&again), flat(&batches));
            assert_eq!(places, arrivals);

            let keys: Vec<Vec<u8>> = (0..200u8).map(|number| vec![number; usize::from(number) % 9]).collect();
            let (mut bytes, mut lengths) = (Arena::default(), Arena::default());
            for key in &keys {
                bytes.add(key);
                lengths.add(&(key.len() as u32).to_le_bytes());
            }
            let saved = Saved::Seen { bytes: bytes.freeze(None), lengths: KeyLengths::Each(lengths.freeze(None)) };
            assert_eq!(keys_of(saved, limit), keys);

            let keys: Vec<Vec<u8>> = (0..200u8).map(|number| vec![number; 9]).collect();
            let mut bytes = Arena::default();
            for key in &keys {
                bytes.add(key);
            }
            let lengths = KeyLengths::All { width: 9, keys: keys.len() };
            assert_eq!(keys_of(Saved::Seen { bytes: bytes.freeze(None), lengths }, limit), keys);
        }
    }
}
