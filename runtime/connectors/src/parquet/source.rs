//! The Parquet source: row groups are the units of work, columns are matched by name and only the projected ones are read. Row groups in
//! which no row can pass the source's conditions are no work at all.
//!
//! What is read before a barrier are the first rows in the order of the files: readers finish the row group that they are in, then answer,
//! but for the last one that was given out, which is left where it is. So a position is a number of row groups, and of rows of the next.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::new_empty_array;
use dfc_batch::{Batch, RowError, arrow_type};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Field, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::ParquetMetaData;
use serde::{Deserialize, Serialize};

use super::convert;
use super::group::{BATCH, Columns, Dropped, GroupOf, GroupRows};
use super::guard::guarded;
use super::pieces::Pieces;
use super::pruning::{Pruner, remaining};
use crate::barriers::{Answered, Noticed, Wanted};
use crate::files::{Identity, InputFile, bad_position, distance, expand, input_file, io_error, other_file};
use crate::options::OptionReader;
use crate::{
    Condition, ConnectError, Next, OpenContext, Positions, Reader, RowFilter, Source, SourceCounters, SplitPosition,
};

/// Opens it.
pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    let options = OptionReader::new("parquet", &spec.options);
    let path = options.required("path")?;
    if path == "-" {
        return Err(ConnectError::new("R0202", "parquet can't be read from the standard input")
            .help("such a file is read from its end: name a file"));
    }
    let fields: Arc<[Field]> = spec.projected().fields.into();
    let conditions: Arc<[Condition]> = cx.filter.clone().map_or_else(Vec::new, |RowFilter(asked)| asked).into();
    let mut shared = Shared {
        files: Vec::new(),
        units: Vec::new(),
        fields: fields.clone(),
        dropped: Dropped::default(),
        unread: AtomicU64::new(0),
        skipped: Skips::default(),
        wanted: Wanted::default(),
        state: Mutex::default(),
        cancelled: cx.cancelled.clone(),
        counters: Arc::default(),
        bytes: 0,
    };
    let mut left = cx.limit_rows.unwrap_or(u64::MAX);
    let (mut seq, mut unread) = (0, 0);
    for (number, Found { file, position, ended }) in find_files(path, cx)?.into_iter().enumerate() {
        if ended {
            shared.files.push(FileState { file, opened: None, position });
            continue;
        }
        let mut opened = OpenedFile::open(&file, &spec.schema, &spec.projection, &fields, &conditions)?;
        let mut first_row = 1;
        let before = shared.units.len();
        for (group, meta) in opened.metadata.metadata().row_groups().iter().enumerate() {
            let rows = meta.num_rows().max(0) as u64;
            let from = if group == position.row_groups { position.row.min(rows) } else { 0 };
            let wanted = if group < position.row_groups { 0 } else { (rows - from).min(left) };
            left -= wanted;
            let skips = |pruner: &Pruner| pruner.skips(opened.metadata.metadata(), group);
            if wanted > 0 && opened.pruner.as_ref().is_some_and(skips) {
                shared.skipped.groups.fetch_add(1, Ordering::Relaxed);
                // They count as read when the next one is.
                unread += wanted;
            } else if wanted > 0 {
                let bytes = opened.mask_bytes(meta);
                let skipped = std::mem::take(&mut unread);
                shared.bytes += bytes;
                shared.units.push(Unit {
                    file: number,
                    group,
                    from,
                    rows: wanted,
                    skipped,
                    first_row,
                    first_seq: seq,
                    bytes,
                });
                seq += wanted.div_ceil(BATCH as u64);
            }
            shared.skipped.all.fetch_add(u64::from(wanted > 0), Ordering::Relaxed);
            // Damaged files say anything.
            first_row = first_row.saturating_add(rows);
        }
        if shared.units.len() > before {
            opened.index(&file)?;
        }
        shared.files.push(FileState { file, opened: Some(opened), position });
    }
    match shared.units.last_mut() {
        Some(last) => last.skipped += unread,
        None => shared.unread = AtomicU64::new(unread),
    }
    Ok(Box::new(ParquetSource { shared: Arc::new(shared), tasks: cx.tasks.max(1) }))
}

/// A file that is to be read, or was.
struct Found {
    file: InputFile,
    position: Position,
    ended: bool,
}

/// How far a file was read, as it stands in a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    /// Row groups that were read.
    row_groups: usize,
    /// Rows of the next one that were read.
    #[serde(default)]
    row: u64,
    /// The file. Its end, which lists all that is in it, is part of what is compared by its length alone: such files don't grow.
    file: Identity,
}

/// The files of the path, or of a checkpoint; with `continues` those that came since, too.
fn find_files(path: &str, cx: &OpenContext) -> Result<Vec<Found>, ConnectError> {
    let mut found = Vec::new();
    for split in cx.positions.iter().flat_map(|positions| &positions.splits) {
        let position: Position =
            serde_json::from_value(split.position.clone()).map_err(|_| bad_position(&split.split, &split.position))?;
        let known = Path::new(&split.split);
        let (file, ended) = match split.ended {
            true => (InputFile { path: Some(known.into()), name: split.split.as_str().into(), size: Some(0) }, true),
            false => (input_file(known)?, false),
        };
        if !ended || (cx.continues && known.exists()) {
            let grown = file.size.is_some_and(|size| !ended && size > position.file.size);
            let why = match grown {
                true => Some(format!("it has more than the {} bytes it had", position.file.size)),
                false => position.file.difference(known).map_err(|e| io_error("read", &file.name, &e))?,
            };
            if let Some(why) = why {
                return Err(other_file(&file.name, &why));
            }
        }
        found.push(Found { file, position, ended });
    }
    if cx.positions.is_none() || cx.continues {
        let known: HashSet<Arc<str>> = found.iter().map(|found| found.file.name.clone()).collect();
        for file in expand(path)?.into_iter().filter(|file| !known.contains(&file.name)) {
            let identity = Identity::of(file.path.as_deref().unwrap_or(Path::new("-")));
            let identity = identity.map_err(|e| io_error("read", &file.name, &e))?;
            found.push(Found { file, position: Position { row_groups: 0, row: 0, file: identity }, ended: false });
        }
    }
    Ok(found)
}

struct FileState {
    file: InputFile,
    /// `None`: it was read to its end before.
    opened: Option<OpenedFile>,
    /// Where it was when the source was opened.
    position: Position,
}

struct OpenedFile {
    metadata: ArrowReaderMetadata,
    columns: Columns,
    /// Where the file's statistics tell something about the conditions.
    pruner: Option<Pruner>,
    /// The same metadata with the index of pages, as far as that tells something.
    indexed: Option<ParquetMetaData>,
}

/// A row group to read.
struct Unit {
    file: usize,
    group: usize,
    /// Rows of it that were read before.
    from: u64,
    /// Rows wanted of it, behind those.
    rows: u64,
    /// Rows of groups before it, and after the last, that aren't read.
    skipped: u64,
    /// Number of its first row in the file, from 1.
    first_row: u64,
    first_seq: u64,
    /// Stored bytes of the columns that are read.
    bytes: u64,
}

impl OpenedFile {
    fn open(
        file: &InputFile,
        schema: &Schema,
        projection: &[usize],
        fields: &Arc<[Field]>,
        conditions: &Arc<[Condition]>,
    ) -> Result<Self, ConnectError> {
        let metadata = footer(file)?;
        let wish = ArrowReaderOptions::new().with_schema(Arc::new(convert::wished(metadata.schema())));
        // Where the reader can't give the wished form, the file's own is converted afterwards.
        let metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), wish).unwrap_or(metadata);
        let roots = match_columns(schema, &metadata, &file.name)?;
        let roots: Vec<usize> = projection.iter().map(|&i| roots[i]).collect();
        let columns = Columns::new(&metadata, &roots, fields, conditions);
        let pruner = Pruner::new(conditions, &metadata, &roots, fields);
        Ok(OpenedFile { metadata, columns, pruner, indexed: None })
    }

    /// Reads the index of its pages, if that may tell something.
    fn index(&mut self, file: &InputFile) -> Result<(), ConnectError> {
        if let Some(pruner) = &self.pruner {
            self.indexed = pruner.index(self.metadata.metadata(), &open(file)?);
        }
        Ok(())
    }

    fn mask_bytes(&self, group: &parquet::file::metadata::RowGroupMetaData) -> u64 {
        let columns = group.columns().iter().enumerate().filter(|(i, _)| self.columns.reads(*i));
        columns.map(|(_, c)| c.compressed_size().max(0) as u64).sum()
    }
}

/// A file's footer.
///
/// # Errors
/// The file can't be opened, or is no Parquet file.
pub(super) fn footer(file: &InputFile) -> Result<ArrowReaderMetadata, ConnectError> {
    let broken = |why: String| {
        let why = why.trim_start_matches("Parquet error: ").trim_start_matches("EOF: ");
        ConnectError::new("R0212", format!("`{}` is no readable Parquet file ({why})", file.name)).help(
            "such a file begins and ends with `PAR1`; without its end, the list of its columns, nothing can be read",
        )
    };
    let handle = open(file)?;
    guarded(|| ArrowReaderMetadata::load(&handle, ArrowReaderOptions::new()))
        .map_err(&broken)?
        .map_err(|e| broken(e.to_string()))
}

fn open(file: &InputFile) -> Result<File, ConnectError> {
    // Only standard input has no path, and it was refused.
    let path = file.path.as_deref().unwrap_or_else(|| std::path::Path::new("-"));
    File::open(path).map_err(|e| io_error("read", &file.name, &e))
}

/// For each declared field its root column in the file.
fn match_columns(schema: &Schema, metadata: &ArrowReaderMetadata, file: &str) -> Result<Vec<usize>, ConnectError> {
    let fields = metadata.schema().fields();
    let find = |field: &Field| {
        let name = field.external_name();
        let mut found = fields.iter().enumerate().filter(|(_, f)| f.name() == name);
        let Some((at, column)) = found.next() else {
            let names: Vec<String> = fields.iter().take(20).map(|f| format!("`{}`", f.name())).collect();
            let near =
                fields.iter().map(|f| (distance(&name.to_lowercase(), &f.name().to_lowercase()), f.name())).min();
            let error =
                ConnectError::new("R0210", format!("`{file}` has no column `{name}`; it has {}", names.join(", ")));
            return Err(match near {
                Some((d, near)) if d <= 1.max(name.chars().count() / 3) => {
                    error.help(format!("is it `{near}`? write `{name}: … = \"{near}\"` in the record"))
                }
                _ => error,
            });
        };
        if found.next().is_some() {
            return Err(ConnectError::new("R0211", format!("`{file}` has the column `{name}` more than once")));
        }
        match convert::natural(column.data_type()) {
            Some(from) if convert::fits(&from, &field.ty.ty) => Ok(at),
            Some(from) => Err(ConnectError::new(
                "R0213",
                format!("the column `{name}` of `{file}` is {from}, {} is declared", field.ty.ty),
            )
            .help(format!("declare it as {from} and convert it with `as` in the pipeline"))),
            None => Err(ConnectError::new(
                "R0213",
                format!("the column `{name}` of `{file}` is of the type {}, which can't be read", column.data_type()),
            )
            .help("leave the field out of the record")),
        }
    };
    schema.fields.iter().map(find).collect()
}

struct Shared {
    files: Vec<FileState>,
    units: Vec<Unit>,
    fields: Arc<[Field]>,
    dropped: Dropped,
    /// Rows that aren't read where there is nothing that is.
    unread: AtomicU64,
    skipped: Skips,
    wanted: Wanted,
    state: Mutex<State>,
    cancelled: Arc<AtomicBool>,
    counters: Arc<SourceCounters>,
    bytes: u64,
}

/// What needn't be read.
#[derive(Default)]
struct Skips {
    /// Row groups that are wanted.
    all: AtomicU64,
    /// Row groups among them that no row passes.
    groups: AtomicU64,
    /// Pages of the others.
    pages: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Units given to readers.
    given: usize,
    noticed: Noticed<Cut>,
}

/// How far all was read at a barrier.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Units that had been given out.
    given: usize,
    /// Where the last of them is left, if it isn't read to its end: the number of the next row of its group.
    row: Option<u64>,
}

impl State {
    fn notice(&mut self, wanted: &Wanted) {
        let cut = Cut { given: self.given, row: None };
        self.noticed.notice(wanted, || cut);
    }
}

struct ParquetSource {
    shared: Arc<Shared>,
    tasks: usize,
}

impl Source for ParquetSource {
    fn reader(&self, _task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        Ok(Box::new(GroupReader {
            shared: self.shared.clone(),
            current: None,
            answered: Answered::default(),
            left_out: 0,
            ended: false,
        }))
    }

    fn total_bytes(&self) -> Option<u64> {
        Some(self.shared.bytes)
    }

    fn max_tasks(&self) -> usize {
        self.tasks.min(self.shared.units.len().max(1))
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.shared.counters.clone()
    }

    fn skipped(&self) -> Option<String> {
        let Skips { all, groups, pages } = &self.shared.skipped;
        let [all, groups, pages] = [all, groups, pages].map(|count| count.load(Ordering::Relaxed));
        let of_groups = format!("{groups} of {all} row group{}", if all == 1 { "" } else { "s" });
        match (groups, pages) {
            (0, 0) => None,
            (_, 0) => Some(of_groups),
            (_, 1) => Some(format!("{of_groups} and a page of the others")),
            (_, _) => Some(format!("{of_groups} and {pages} pages of the others")),
        }
    }

    fn resumable(&self) -> Result<(), String> {
        Ok(())
    }

    fn mark(&self, number: u64) {
        self.shared.wanted.want(number);
    }

    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        let mut state = self.shared.state();
        state.notice(&self.shared.wanted);
        let cut = state.noticed.report(number);
        let cut = cut.ok_or_else(|| ConnectError::new("R0499", format!("there was no barrier {number}")))?;
        self.shared.positions(cut)
    }
}

struct GroupReader {
    shared: Arc<Shared>,
    current: Option<Current>,
    answered: Answered,
    left_out: u64,
    ended: bool,
}

struct Current {
    unit: usize,
    rows: GroupRows,
    /// Batches given.
    given: u64,
}

impl Reader for GroupReader {
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        let shared = self.shared.clone();
        loop {
            if self.ended || shared.cancelled.load(Ordering::Relaxed) {
                self.ended = true;
                return Ok(Next::End);
            }
            let Some(current) = &mut self.current else {
                let mut state = shared.state();
                let unit = state.given;
                state.notice(&shared.wanted);
                if let Some(number) = state.noticed.answer(&mut self.answered) {
                    return Ok(Next::Barrier(number));
                }
                if unit >= shared.units.len() {
                    self.left_out += shared.skip(shared.unread.swap(0, Ordering::Relaxed));
                    self.ended = true;
                    return Ok(Next::End);
                }
                state.given += 1;
                drop(state);
                self.left_out += shared.skip(shared.units[unit].skipped);
                let (rows, skipped) = shared.open_group(unit)?;
                self.left_out += shared.skip(skipped);
                self.current = Some(Current { unit, rows, given: 0 });
                continue;
            };
            if let Some(row) = current.rows.reached() {
                let mut state = shared.state();
                state.notice(&shared.wanted);
                if let Some(cut) = state.noticed.next(&self.answered).filter(|cut| cut.given == current.unit + 1) {
                    cut.row = Some(row);
                    if let Some(number) = state.noticed.answer(&mut self.answered) {
                        return Ok(Next::Barrier(number));
                    }
                }
            }
            let unit = &shared.units[current.unit];
            let of = shared.group_of(unit)?;
            let batch = match current.rows.next(&of, errors)? {
                Some(step) => {
                    shared.counters.rows.fetch_add(step.rows, Ordering::Relaxed);
                    self.left_out += step.left_out;
                    match step.batch {
                        Some(batch) => batch,
                        None => continue,
                    }
                }
                // As many batches as were promised: some rows weren't read.
                None if current.given < unit.rows.div_ceil(BATCH as u64) => {
                    let columns = shared.fields.iter().map(|field| new_empty_array(&arrow_type(&field.ty.ty)));
                    Batch::new(columns.collect(), 0, 0)
                }
                None => {
                    self.current = None;
                    shared.counters.bytes.fetch_add(unit.bytes, Ordering::Relaxed);
                    continue;
                }
            };
            let seq = unit.first_seq + current.given;
            current.given += 1;
            return Ok(Next::Batch(Batch { seq, ..batch }));
        }
    }

    fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A number and a list are whole whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a unit.
    fn file(&self, unit: &Unit) -> Result<(&InputFile, &OpenedFile), ConnectError> {
        let state = &self.files[unit.file];
        let opened = state.opened.as_ref();
        opened
            .map(|opened| (&state.file, opened))
            .ok_or_else(|| ConnectError::new("R0499", format!("`{}` was read to its end before", state.file.name)))
    }

    /// The positions at a barrier.
    fn positions(&self, Cut { given, row }: Cut) -> Result<Positions, ConnectError> {
        let mut splits = Vec::with_capacity(self.files.len());
        let mut units = self.units.iter().enumerate().peekable();
        for (number, state) in self.files.iter().enumerate() {
            let mut position = state.position.clone();
            let mut ended = true;
            while let Some((place, unit)) = units.next_if(|(_, unit)| unit.file == number) {
                match row.filter(|_| place + 1 == given) {
                    _ if place >= given => ended = false,
                    Some(row) => {
                        (position.row_groups, position.row) = (unit.group, row);
                        ended = false;
                    }
                    None => (position.row_groups, position.row) = (unit.group + 1, 0),
                }
            }
            let position = serde_json::to_value(&position)
                .map_err(|e| ConnectError::new("R0499", format!("the position of `{}`: {e}", state.file.name)))?;
            splits.push(SplitPosition { split: state.file.name.to_string(), position, ended, exact: true });
        }
        Ok(Positions { splits })
    }

    /// Rows that are passed over count as read.
    fn skip(&self, rows: u64) -> u64 {
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        rows
    }

    fn group_of<'s>(&'s self, unit: &Unit) -> Result<GroupOf<'s>, ConnectError> {
        let (file, opened) = self.file(unit)?;
        let OpenedFile { metadata, columns, .. } = opened;
        let (name, dropped) = (&file.name, &self.dropped);
        Ok(GroupOf { name, metadata, columns, group: unit.group, first_row: unit.first_row, dropped })
    }

    /// Begins a row group. Gives with it the number of its rows that won't be read.
    fn open_group(&self, unit: usize) -> Result<(GroupRows, u64), ConnectError> {
        let unit = &self.units[unit];
        let (file, opened) = self.file(unit)?;
        let of_pages = opened.pruner.as_ref().zip(opened.indexed.as_ref());
        let skipped = of_pages.map(|(pruner, indexed)| pruner.pages(indexed, unit.group)).unwrap_or_default();
        self.skipped.pages.fetch_add(skipped.pages, Ordering::Relaxed);
        let mut runs = remaining(unit.from + unit.rows, &skipped.rows);
        runs.iter_mut().for_each(|run| run.start = run.start.max(unit.from));
        runs.retain(|run| run.start < run.end);
        let read: u64 = runs.iter().map(|run| run.end - run.start).sum();
        let chunks = opened.metadata.metadata().row_group(unit.group).columns().iter();
        let chunks = chunks.enumerate().filter(|(leaf, _)| opened.columns.reads(*leaf));
        let pieces = Pieces::new(open(file)?, chunks.map(|(_, chunk)| chunk.byte_range()));
        let pieces = pieces.map_err(|e| io_error("read", &file.name, &e))?;
        // What the run that began the group passes over is counted then.
        let passed_over = if unit.from == 0 { unit.rows - read } else { 0 };
        Ok((GroupRows::open(&self.group_of(unit)?, pieces, runs)?, passed_over))
    }
}
