//! Reads a row group: batches of the projected columns in declared form, of the rows that pass the source's conditions.
//!
//! Where conditions drop much, the columns that they read are decoded first, a window of rows at a time, and the others only for the rows
//! that passed. Where they drop little, all is decoded at once and the stage drops the rest: the conditions are asked here only if a value
//! doesn't fit its type, since a row that doesn't pass has no wrong values in columns that come later.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use dfc_batch::{Batch, Origin, RowError, arrow_type};
use dfc_ir::Field;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
};

use super::convert;
use super::guard::guarded;
use super::pieces::Pieces;
use super::pruning::mask;
use crate::locate::NumberedRows;
use crate::rows::Faults;
use crate::{Condition, ConnectError};

/// Rows of a batch.
pub(super) const BATCH: usize = 16 << 10;
/// Rows whose conditions are asked before their other columns are read.
const WINDOW: u64 = 16 * BATCH as u64;
/// Of so many row groups one has its conditions asked even where they drop little: it may be different there.
const AGAIN: usize = 64;

/// What is read of a file, and how.
pub(super) struct Columns {
    fields: Arc<[Field]>,
    conditions: Arc<[Condition]>,
    all: Part,
    /// What the conditions read.
    asked: Part,
    rest: Part,
}

/// Some of the projected columns.
struct Part {
    mask: ProjectionMask,
    /// For each its position in the projection and in what is read.
    columns: Vec<(usize, usize)>,
}

impl Columns {
    /// Of the projected fields, whose root columns these are.
    pub(super) fn new(
        file: &ArrowReaderMetadata,
        roots: &[usize],
        fields: &Arc<[Field]>,
        conditions: &Arc<[Condition]>,
    ) -> Columns {
        let part = |wanted: &dyn Fn(&usize) -> bool| {
            let positions: Vec<usize> = (0..roots.len()).filter(wanted).collect();
            let roots: Vec<usize> = positions.iter().map(|&position| roots[position]).collect();
            let (mask, columns) = mask(file, &roots);
            Part { mask, columns: positions.into_iter().zip(columns).collect() }
        };
        let read = |position: &usize| conditions.iter().any(|condition| condition.columns.contains(position));
        Columns {
            fields: fields.clone(),
            conditions: conditions.clone(),
            all: part(&|_| true),
            asked: part(&read),
            rest: part(&|position| !read(position)),
        }
    }

    /// The leaves that are read.
    pub(super) fn reads(&self, leaf: usize) -> bool {
        self.all.mask.leaf_included(leaf)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize, origin: Option<Origin>) -> Batch {
        Batch { columns, rows, seq: 0, origin }
    }

    fn convert(&self, raw: &ArrayRef, position: usize, faults: &mut Faults) -> ArrayRef {
        convert::column(raw, &self.fields[position], position, faults)
    }

    /// Asks the conditions of rows: gives the columns that they read, of the rows that passed, and these rows.
    fn ask(&self, raw: &[Option<ArrayRef>], rows: usize, faults: &mut Faults) -> Passed {
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.fields.len()];
        let mut passed: Option<Vec<u32>> = None;
        for condition in self.conditions.iter() {
            for &position in &condition.columns {
                if columns[position].is_none()
                    && let Some(raw) = &raw[position]
                {
                    columns[position] = Some(self.convert_some(raw, position, passed.as_deref(), faults));
                }
            }
            let read = condition.columns.iter().filter_map(|&position| columns[position].clone()).collect();
            let before = passed.as_ref().map_or(rows, Vec::len);
            let kept = (condition.pass)(read, before);
            let Some(kept) = faults.without(kept, passed.as_deref(), rows) else { continue };
            passed = Some(match &passed {
                Some(passed) => kept.iter().map(|&row| passed[row as usize]).collect(),
                None => kept.clone(),
            });
            let kept = UInt32Array::from(kept);
            columns.iter_mut().flatten().for_each(|column| *column = dfc_batch::take(column, &kept));
        }
        Passed { columns, rows: passed }
    }

    /// A column of the rows that have passed so far.
    fn convert_some(&self, raw: &ArrayRef, position: usize, passed: Option<&[u32]>, faults: &mut Faults) -> ArrayRef {
        let Some(passed) = passed else { return self.convert(raw, position, faults) };
        let raw = dfc_batch::take(raw, &UInt32Array::from(passed.to_vec()));
        let mut of_these = Faults::default();
        let column = self.convert(&raw, position, &mut of_these);
        faults.extend(of_these, Some(passed));
        column
    }
}

struct Passed {
    columns: Vec<Option<ArrayRef>>,
    /// `None`: all.
    rows: Option<Vec<u32>>,
}

/// How much the conditions drop, over all readers.
#[derive(Default)]
pub(super) struct Dropped {
    asked: AtomicU64,
    passed: AtomicU64,
}

impl Dropped {
    /// Whether it is worth asking them first.
    fn much(&self) -> bool {
        let (asked, passed) = (self.asked.load(Ordering::Relaxed), self.passed.load(Ordering::Relaxed));
        passed <= asked / 4 * 3
    }

    fn add(&self, asked: usize, passed: usize) {
        self.asked.fetch_add(asked as u64, Ordering::Relaxed);
        self.passed.fetch_add(passed as u64, Ordering::Relaxed);
    }
}

/// Where a row group stands.
pub(super) struct GroupOf<'s> {
    /// The file, as the user would name it.
    pub(super) name: &'s Arc<str>,
    pub(super) metadata: &'s ArrowReaderMetadata,
    pub(super) columns: &'s Columns,
    pub(super) group: usize,
    /// Number of its first row in the file, from 1.
    pub(super) first_row: u64,
    pub(super) dropped: &'s Dropped,
}

/// Reads one.
pub(super) struct GroupRows {
    pieces: Pieces,
    /// Rows that are still to be begun, numbers from 0, ascending.
    left: VecDeque<Range<u64>>,
    state: State,
}

enum State {
    /// All columns at once: the rows that it reads, as far as they don't all follow one another.
    Whole(ParquetRecordBatchReader),
    /// Nothing is open.
    Windows,
    /// Behind the conditions: the rest of the columns.
    Window(Window),
}

struct Window {
    reader: ParquetRecordBatchReader,
    /// The columns that the conditions read, of all rows that passed.
    columns: Vec<Option<ArrayRef>>,
    /// These rows' numbers from the group's first.
    rows: Vec<u32>,
    /// Those that were given.
    given: usize,
}

/// What a step gives.
pub(super) struct Step {
    /// `seq` isn't set.
    pub(super) batch: Option<Batch>,
    /// Rows that were looked at.
    pub(super) rows: u64,
    /// Rows that didn't pass and have no error.
    pub(super) left_out: u64,
}

impl GroupRows {
    /// For these rows of it, runs ascending and apart, numbers from 0.
    pub(super) fn open(of: &GroupOf, pieces: Pieces, runs: Vec<Range<u64>>) -> Result<GroupRows, ConnectError> {
        let columns = of.columns;
        let asks = !columns.conditions.is_empty() && !columns.rest.columns.is_empty();
        let asks = asks && (of.dropped.much() || of.group.is_multiple_of(AGAIN));
        let mut group = GroupRows { pieces, left: runs.into(), state: State::Windows };
        if !asks {
            let runs: Vec<Range<u64>> = group.left.iter().cloned().collect();
            group.state = State::Whole(group.reader(of, &columns.all.mask, &runs)?);
        }
        Ok(group)
    }

    fn reader(
        &self,
        of: &GroupOf,
        mask: &ProjectionMask,
        runs: &[Range<u64>],
    ) -> Result<ParquetRecordBatchReader, ConnectError> {
        let broken = |why: String| ConnectError::new("R0212", format!("`{}`: {why}", of.name));
        let rows = of.metadata.metadata().row_group(of.group).num_rows().max(0) as u64;
        let all = matches!(runs, [run] if run.start == 0 && run.end == rows);
        guarded(|| {
            let mut builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(self.pieces.clone(), of.metadata.clone())
                    .with_row_groups(vec![of.group])
                    .with_projection(mask.clone())
                    .with_batch_size(BATCH);
            if !all {
                let runs = runs.iter().map(|run| run.start as usize..run.end as usize);
                builder = builder.with_row_selection(RowSelection::from_consecutive_ranges(runs, rows as usize));
            }
            builder.build()
        })
        .map_err(broken)?
        .map_err(|e| broken(e.to_string()))
    }

    /// The number of its next row, from 0, where all before it have been dealt with and there is one.
    pub(super) fn reached(&self) -> Option<u64> {
        match self.state {
            // Rows behind it were looked at, too.
            State::Window(_) => None,
            State::Whole(_) | State::Windows => self.left.front().map(|run| run.start),
        }
    }

    /// Reads on. `None`: there is nothing more.
    pub(super) fn next(&mut self, of: &GroupOf, errors: &mut Vec<RowError>) -> Result<Option<Step>, ConnectError> {
        match &mut self.state {
            State::Whole(reader) => {
                let runs = taken(&mut self.left, BATCH as u64);
                let rows: u64 = runs.iter().map(|run| run.end - run.start).sum();
                if rows == 0 {
                    return Ok(None);
                }
                let batch = read(reader, of, rows as usize)?;
                Ok(Some(whole(of, &batch, &runs, errors)))
            }
            State::Window(window) => {
                let step = window.step(of, errors)?;
                if window.given == window.rows.len() {
                    self.state = State::Windows;
                }
                Ok(Some(step))
            }
            State::Windows => {
                let runs = taken(&mut self.left, WINDOW);
                if runs.is_empty() {
                    return Ok(None);
                }
                self.ask(of, runs, errors).map(Some)
            }
        }
    }

    /// Asks the conditions of the next rows.
    fn ask(&mut self, of: &GroupOf, runs: Vec<Range<u64>>, errors: &mut Vec<RowError>) -> Result<Step, ConnectError> {
        let columns = of.columns;
        let mut reader = self.reader(of, &columns.asked.mask, &runs)?;
        let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::new(); columns.fields.len()];
        let mut step = Step { batch: None, rows: 0, left_out: 0 };
        let mut rows: Vec<u32> = Vec::new();
        let mut left: VecDeque<Range<u64>> = runs.into();
        loop {
            let runs = taken(&mut left, BATCH as u64);
            let numbers = numbers(&runs);
            if numbers.is_empty() {
                break;
            }
            let batch = read(&mut reader, of, numbers.len())?;
            let mut faults = Faults::default();
            let passed = columns.ask(&columns.asked.raw(&batch, columns.fields.len()), numbers.len(), &mut faults);
            let before = rows.len();
            match &passed.rows {
                Some(passed) => rows.extend(passed.iter().map(|&row| numbers[row as usize])),
                None => rows.extend(&numbers),
            }
            for (column, pieces) in passed.columns.into_iter().zip(&mut pieces) {
                pieces.extend(column);
            }
            step.rows += numbers.len() as u64;
            step.left_out += (numbers.len() - (rows.len() - before)) as u64;
            if !faults.is_empty() {
                let told = errors.len();
                let mut of_group = Faults::default();
                of_group.extend(faults, Some(&numbers));
                // None of these rows has passed.
                of_group.leave_out_of(Vec::new(), &[], 0, of.locate(0), errors);
                step.left_out -= (errors.len() - told) as u64;
            }
        }
        of.dropped.add(step.rows as usize, rows.len());
        if rows.is_empty() {
            return Ok(step);
        }
        let runs = runs_of(&rows);
        let reader = self.reader(of, &columns.rest.mask, &runs)?;
        let joined = pieces.into_iter().map(|pieces| match &pieces[..] {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            more => {
                let more: Vec<&dyn arrow_array::Array> = more.iter().map(|piece| &**piece).collect();
                arrow_select::concat::concat(&more).map(Some)
            }
        });
        let columns = joined
            .collect::<Result<_, _>>()
            .map_err(|e| ConnectError::new("R0499", format!("columns of `{}` can't be joined: {e}", of.name)))?;
        self.state = State::Window(Window { reader, columns, rows, given: 0 });
        Ok(step)
    }
}

impl Window {
    fn step(&mut self, of: &GroupOf, errors: &mut Vec<RowError>) -> Result<Step, ConnectError> {
        let columns = of.columns;
        let from = self.given;
        let some = (self.rows.len() - from).min(BATCH);
        let batch = read(&mut self.reader, of, some)?;
        self.given += some;
        let rows = &self.rows[from..self.given];
        let mut faults = Faults::default();
        let raw = columns.rest.raw(&batch, columns.fields.len());
        let read = self.columns.iter().zip(&raw).enumerate().map(|(position, (asked, raw))| match (asked, raw) {
            (Some(asked), _) => asked.slice(from, some),
            (None, Some(raw)) => columns.convert(raw, position, &mut faults),
            (None, None) => new_empty_array(&arrow_type(&columns.fields[position].ty.ty)),
        });
        let read: Vec<ArrayRef> = read.collect();
        let locate = of.locate(0);
        let batch = match faults.is_empty() {
            true => columns.batch(read, some, Some(Origin { locate, rows: Some(rows.into()) })),
            false => {
                let mut of_group = Faults::default();
                of_group.extend(faults, Some(rows));
                of_group.leave_out_of(read, rows, 0, locate, errors)
            }
        };
        Ok(Step { batch: Some(batch), rows: 0, left_out: 0 })
    }
}

/// Of columns that were read all at once.
fn whole(of: &GroupOf, batch: &RecordBatch, runs: &[Range<u64>], errors: &mut Vec<RowError>) -> Step {
    let columns = of.columns;
    let raw = columns.all.raw(batch, columns.fields.len());
    let rows = batch.num_rows();
    let mut step = Step { batch: None, rows: rows as u64, left_out: 0 };
    // Rows that follow one another need no list.
    let (first, numbers) = match runs {
        [run] => (run.start, None),
        _ => (0, Some(numbers(runs))),
    };
    let locate = of.locate(first);
    let mut faults = Faults::default();
    let of_raw = |position: usize, raw: &Option<ArrayRef>, faults: &mut Faults| match raw {
        Some(raw) => columns.convert(raw, position, faults),
        None => new_empty_array(&arrow_type(&columns.fields[position].ty.ty)),
    };
    let read: Vec<ArrayRef> = raw.iter().enumerate().map(|(at, raw)| of_raw(at, raw, &mut faults)).collect();
    if faults.is_empty() {
        let origin = Origin { locate, rows: numbers.map(Into::into) };
        step.batch = Some(columns.batch(read, rows, Some(origin)));
        return step;
    }
    let mut faults = Faults::default();
    let Passed { columns: asked, rows: passed } = columns.ask(&raw, rows, &mut faults);
    let read = asked.into_iter().zip(&raw).enumerate().map(|(at, (asked, raw))| match (asked, raw) {
        (Some(asked), _) => asked,
        (None, Some(raw)) => columns.convert_some(raw, at, passed.as_deref(), &mut faults),
        (None, None) => new_empty_array(&arrow_type(&columns.fields[at].ty.ty)),
    });
    let read: Vec<ArrayRef> = read.collect();
    let mut of_these = Faults::default();
    of_these.extend(faults, numbers.as_deref());
    let number = |row: u32| numbers.as_ref().map_or(row, |numbers| numbers[row as usize]);
    let passed: Vec<u32> = match passed {
        Some(passed) => passed.into_iter().map(number).collect(),
        None => (0..rows as u32).map(number).collect(),
    };
    let told = errors.len();
    let batch = of_these.leave_out_of(read, &passed, 0, locate, errors);
    // Each row that isn't in the batch has an error, or was left out.
    step.left_out = (rows - batch.rows - (errors.len() - told)) as u64;
    step.batch = Some(batch);
    step
}

impl Part {
    /// For each projected field its column in a batch, if it is in this part.
    fn raw(&self, batch: &RecordBatch, fields: usize) -> Vec<Option<ArrayRef>> {
        let mut raw = vec![None; fields];
        for &(position, column) in &self.columns {
            raw[position] = Some(batch.column(column).clone());
        }
        raw
    }
}

impl GroupOf<'_> {
    /// Finds rows by their number from this one of the group.
    fn locate(&self, first: u64) -> Arc<NumberedRows> {
        Arc::new(NumberedRows { source: self.name.clone(), first: self.first_row.saturating_add(first) })
    }
}

/// The next batch of a reader, which must have so many rows.
fn read(reader: &mut ParquetRecordBatchReader, of: &GroupOf, rows: usize) -> Result<RecordBatch, ConnectError> {
    let broken = |why: String| ConnectError::new("R0212", format!("`{}`: row group {}: {why}", of.name, of.group));
    let batch = guarded(|| reader.next())
        .map_err(broken)?
        .ok_or_else(|| broken("it has fewer rows than it says".into()))?
        .map_err(|e| broken(e.to_string()))?;
    match batch.num_rows() == rows {
        true => Ok(batch),
        false => Err(broken(format!("{} rows where {rows} are expected", batch.num_rows()))),
    }
}

/// Takes the first `most` rows of runs.
fn taken(runs: &mut VecDeque<Range<u64>>, mut most: u64) -> Vec<Range<u64>> {
    let mut taken = Vec::new();
    while most > 0
        && let Some(run) = runs.front_mut()
    {
        let some = (run.end - run.start).min(most);
        taken.push(run.start..run.start + some);
        most -= some;
        run.start += some;
        if run.start == run.end {
            runs.pop_front();
        }
    }
    taken
}

/// The rows of runs; a row group has fewer than 2³² rows.
fn numbers(runs: &[Range<u64>]) -> Vec<u32> {
    runs.iter().flat_map(|run| run.start as u32..run.end as u32).collect()
}

/// The runs of rows, which ascend.
fn runs_of(rows: &[u32]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for &row in rows {
        let row = u64::from(row);
        match runs.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => runs.push(row..row + 1),
        }
    }
    runs
}
