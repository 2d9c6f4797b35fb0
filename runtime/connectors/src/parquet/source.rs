//! The Parquet source: row groups are the units of work, columns are matched by name and only the projected ones are read.
//!
//! A barrier falls between two row groups: readers finish the one they are in, then answer. So a position is a number of row groups.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dfc_batch::{Batch, Origin, RowError};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use serde::{Deserialize, Serialize};

use super::convert;
use super::guard::guarded;
use crate::barriers::{Answered, Noticed, Wanted};
use crate::files::{Identity, InputFile, bad_position, distance, expand, input_file, io_error, other_file};
use crate::locate::NumberedRows;
use crate::options::OptionReader;
use crate::rows::Faults;
use crate::{ConnectError, Next, OpenContext, Positions, Reader, Source, SourceCounters, SplitPosition};

/// Rows of a batch.
const BATCH: usize = 16 << 10;

/// Opens it.
pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    let options = OptionReader::new("parquet", &spec.options);
    let path = options.required("path")?;
    if path == "-" {
        return Err(ConnectError::new("R0202", "parquet can't be read from the standard input")
            .help("such a file is read from its end: name a file"));
    }
    let mut shared = Shared {
        files: Vec::new(),
        units: Vec::new(),
        fields: spec.projected().fields,
        wanted: Wanted::default(),
        state: Mutex::default(),
        cancelled: cx.cancelled.clone(),
        counters: Arc::default(),
        bytes: 0,
    };
    let mut left = cx.limit_rows.unwrap_or(u64::MAX);
    let mut seq = 0;
    for (number, Found { file, position, ended }) in find_files(path, cx)?.into_iter().enumerate() {
        if ended {
            shared.files.push(FileState { file, opened: None, position });
            continue;
        }
        let opened = OpenedFile::open(&file, &spec.schema, &spec.projection)?;
        let mut first_row = 1;
        for (group, meta) in opened.metadata.metadata().row_groups().iter().enumerate() {
            let rows = meta.num_rows().max(0) as u64;
            let wanted = if group < position.row_groups { 0 } else { rows.min(left) };
            left -= wanted;
            if wanted > 0 {
                let bytes = opened.mask_bytes(meta);
                shared.bytes += bytes;
                shared.units.push(Unit { file: number, group, rows: wanted, first_row, first_seq: seq, bytes });
                seq += wanted.div_ceil(BATCH as u64);
            }
            // Damaged files say anything.
            first_row = first_row.saturating_add(rows);
        }
        shared.files.push(FileState { file, opened: Some(opened), position });
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
            found.push(Found { file, position: Position { row_groups: 0, file: identity }, ended: false });
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
    mask: ProjectionMask,
    /// For each projected field its column in the batches that the reader gives.
    columns: Vec<usize>,
}

/// A row group to read.
struct Unit {
    file: usize,
    group: usize,
    /// Rows wanted of it.
    rows: u64,
    /// Number of its first row in the file, from 1.
    first_row: u64,
    first_seq: u64,
    /// Stored bytes of the columns that are read.
    bytes: u64,
}

impl OpenedFile {
    fn open(file: &InputFile, schema: &Schema, projection: &[usize]) -> Result<Self, ConnectError> {
        let metadata = footer(file)?;
        let wish = ArrowReaderOptions::new().with_schema(Arc::new(convert::wished(metadata.schema())));
        // Where the reader can't give the wished form, the file's own is converted afterwards.
        let metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), wish).unwrap_or(metadata);
        let roots = match_columns(schema, &metadata, &file.name)?;
        let mut wanted: Vec<usize> = projection.iter().map(|&i| roots[i]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let columns = projection.iter().filter_map(|&i| wanted.iter().position(|w| *w == roots[i])).collect();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), wanted);
        Ok(OpenedFile { metadata, mask, columns })
    }

    fn mask_bytes(&self, group: &parquet::file::metadata::RowGroupMetaData) -> u64 {
        let columns = group.columns().iter().enumerate().filter(|(i, _)| self.mask.leaf_included(*i));
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
    fields: Vec<Field>,
    wanted: Wanted,
    state: Mutex<State>,
    cancelled: Arc<AtomicBool>,
    counters: Arc<SourceCounters>,
    bytes: u64,
}

#[derive(Default)]
struct State {
    /// Units given to readers.
    given: usize,
    noticed: Noticed<usize>,
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

    fn resumable(&self) -> Result<(), String> {
        Ok(())
    }

    fn mark(&self, number: u64) {
        self.shared.wanted.want(number);
    }

    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        let mut state = self.shared.state();
        let given = state.given;
        state.noticed.notice(&self.shared.wanted, || given);
        let given = state.noticed.report(number);
        let given = given.ok_or_else(|| ConnectError::new("R0499", format!("there was no barrier {number}")))?;
        self.shared.positions(given)
    }
}

struct GroupReader {
    shared: Arc<Shared>,
    current: Option<Current>,
    answered: Answered,
    ended: bool,
}

struct Current {
    unit: usize,
    reader: ParquetRecordBatchReader,
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
                state.noticed.notice(&shared.wanted, || unit);
                if let Some(number) = state.noticed.answer(&mut self.answered) {
                    return Ok(Next::Barrier(number));
                }
                if unit >= shared.units.len() {
                    self.ended = true;
                    return Ok(Next::End);
                }
                state.given += 1;
                drop(state);
                self.current = Some(Current { unit, reader: shared.open_group(unit)?, given: 0 });
                continue;
            };
            let unit = &shared.units[current.unit];
            let (file, opened) = shared.file(unit)?;
            let broken =
                |why: String| ConnectError::new("R0212", format!("`{}`: row group {}: {why}", file.name, unit.group));
            let done = current.given * BATCH as u64;
            let expected = (unit.rows - done.min(unit.rows)).min(BATCH as u64);
            if expected == 0 {
                self.current = None;
                shared.counters.bytes.fetch_add(unit.bytes, Ordering::Relaxed);
                continue;
            }
            let batch = guarded(|| current.reader.next())
                .map_err(broken)?
                .ok_or_else(|| broken("it has fewer rows than it says".into()))?
                .map_err(|e| broken(e.to_string()))?;
            if batch.num_rows() as u64 != expected {
                return Err(broken(format!("{} rows where {expected} are expected", batch.num_rows())));
            }
            let seq = unit.first_seq + current.given;
            current.given += 1;
            let rows = batch.num_rows();
            shared.counters.rows.fetch_add(rows as u64, Ordering::Relaxed);
            let locate = Arc::new(NumberedRows { source: file.name.clone(), first: unit.first_row + done });
            let mut faults = Faults::default();
            let arrays = shared.fields.iter().zip(&opened.columns).enumerate();
            let columns = arrays
                .map(|(i, (field, &column))| convert::column(batch.column(column), field, i, &mut faults))
                .collect();
            if faults.is_empty() {
                return Ok(Next::Batch(Batch { columns, rows, seq, origin: Some(Origin { locate, rows: None }) }));
            }
            return Ok(Next::Batch(faults.leave_out(columns, rows, seq, locate, errors)));
        }
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

    /// The positions when the first `given` units were read.
    fn positions(&self, given: usize) -> Result<Positions, ConnectError> {
        let mut splits = Vec::with_capacity(self.files.len());
        let mut units = self.units.iter().enumerate().peekable();
        for (number, state) in self.files.iter().enumerate() {
            let mut position = state.position.clone();
            let mut ended = true;
            while let Some((place, unit)) = units.next_if(|(_, unit)| unit.file == number) {
                match place < given {
                    true => position.row_groups = unit.group + 1,
                    false => ended = false,
                }
            }
            let position = serde_json::to_value(&position)
                .map_err(|e| ConnectError::new("R0499", format!("the position of `{}`: {e}", state.file.name)))?;
            splits.push(SplitPosition { split: state.file.name.to_string(), position, ended, exact: true });
        }
        Ok(Positions { splits })
    }

    fn open_group(&self, unit: usize) -> Result<ParquetRecordBatchReader, ConnectError> {
        let unit = &self.units[unit];
        let (file, opened) = self.file(unit)?;
        let limit = usize::try_from(unit.rows).unwrap_or(usize::MAX);
        let handle = open(file)?;
        let broken = |why: String| ConnectError::new("R0212", format!("`{}`: {why}", file.name));
        guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(handle, opened.metadata.clone())
                .with_row_groups(vec![unit.group])
                .with_projection(opened.mask.clone())
                .with_batch_size(BATCH)
                .with_limit(limit)
                .build()
        })
        .map_err(broken)?
        .map_err(|e| broken(e.to_string()))
    }
}
