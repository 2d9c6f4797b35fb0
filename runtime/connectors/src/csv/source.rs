//! The CSV source: its arguments, its files, and the readers that parse their chunks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{ArrayRef, UInt32Array};
use dfc_batch::{Batch, Origin, RowError};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Schema, Type};

use super::exact;
use super::header::{self, Layout};
use super::index::{self, Index, Ragged};
use super::places::Places;
use crate::chunks::{Format, Piece, TextFiles, TextOptions, Turn, Watch, Whole};
use crate::files::{COMPRESSIONS, ENCODINGS};
use crate::locate::{Chunk, ChunkRows};
use crate::options::OptionReader;
use crate::rows::Faults;
use crate::text::cells::Cells;
use crate::text::columns::{self, ColumnContext};
use crate::text::dialect::Dialect;
use crate::text::pattern::Patterns;
use crate::text::value::{DAMAGED, RAGGED};
use crate::{Condition, ConnectError, Next, OpenContext, Positions, Reader, RowFilter, Source, SourceCounters};

/// Opens a CSV source.
pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    open_with_chunk(spec, cx, None)
}

/// Opens a CSV source with chunks of a fixed size, so that tests can have borders everywhere.
pub(crate) fn open_with_chunk(
    spec: &SourceSpec,
    cx: &OpenContext,
    chunk: Option<usize>,
) -> Result<Box<dyn Source>, ConnectError> {
    let options = OptionReader::new("csv", &spec.options);
    let format = Csv {
        dialect: Arc::new(Dialect::read(&options)?),
        header: options.flag("header", true)?,
        skip: options.count("skip")?.unwrap_or(0),
        ragged: options
            .choice("ragged", &[("error", Ragged::Error), ("pad", Ragged::Pad), ("truncate", Ragged::Truncate)])?,
        nulls: options.text("nulls")?.unwrap_or("").as_bytes().to_vec(),
        patterns: Patterns::read(&options)?,
        schema: spec.schema.clone(),
        projection: spec.projection.clone(),
        filter: cx.filter.clone().map_or_else(Vec::new, |RowFilter(conditions)| conditions),
        has_text: spec.projection.iter().any(|&i| matches!(spec.schema.fields[i].ty.ty, Type::String | Type::Json)),
    };
    let text = TextOptions {
        compression: options.choice("compression", &COMPRESSIONS)?,
        encoding: options.choice("encoding", &ENCODINGS)?,
        chunk,
        watch: Watch::read(&options)?,
    };
    let files = TextFiles::open(format, options.required("path")?, text, cx)?;
    Ok(Box::new(CsvSource { files: Arc::new(files) }))
}

/// What is declared about the files.
struct Csv {
    dialect: Arc<Dialect>,
    header: bool,
    skip: u64,
    ragged: Ragged,
    nulls: Vec<u8>,
    patterns: Patterns,
    schema: Schema,
    projection: Vec<usize>,
    /// Conditions that rows have to pass before their other fields are read.
    filter: Vec<Condition>,
    /// Whether a text is among the projected fields.
    has_text: bool,
}

impl Format for Csv {
    type Layout = Layout;
    type Found = Index;

    fn start(&self, data: &[u8], whole: bool, file: &str) -> Result<Option<(usize, Layout)>, ConnectError> {
        if !self.header {
            let start = header::skipped(data, self.skip, whole, None)?;
            return Ok(start.map(|at| (at, header::by_position(&self.schema, &self.projection))));
        }
        let Some(line) = header::find(data, self.skip, whole, &self.dialect, file)? else { return Ok(None) };
        let names = header::names(&data[line.clone()], &self.dialect, file)?;
        Ok(Some((line.end, header::by_name(&self.schema, &self.projection, &names, file)?)))
    }

    fn cut(&self, data: &[u8]) -> Option<Whole> {
        index::whole_rows(data, &self.dialect)
    }

    fn find(&self, data: &[u8], all: bool, found: &mut Index) -> Option<Whole> {
        found.find(data, &self.dialect, all)
    }

    fn count(&self, data: &[u8], layout: &Layout, max: u64) -> (u64, usize) {
        index::count_rows(data, &self.dialect, layout.width, max)
    }
}

struct CsvSource {
    files: Arc<TextFiles<Csv>>,
}

impl Source for CsvSource {
    fn reader(&self, _task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        Ok(Box::new(CsvReader {
            files: self.files.clone(),
            turn: Turn::default(),
            index: Index::default(),
            places: Places::default(),
            left_out: 0,
        }))
    }

    fn total_bytes(&self) -> Option<u64> {
        self.files.total_bytes()
    }

    fn max_tasks(&self) -> usize {
        self.files.max_tasks()
    }

    fn counters(&self) -> Arc<SourceCounters> {
        self.files.counters.clone()
    }

    fn resumable(&self) -> Result<(), String> {
        self.files.resumable()
    }

    fn mark(&self, number: u64) {
        self.files.mark(number);
    }

    fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        self.files.positions(number)
    }
}

/// Reads the columns of a chunk.
struct Fields<'a> {
    csv: &'a Csv,
    layout: &'a Layout,
    chunk: &'a Chunk,
    index: &'a Index,
    places: &'a mut Places,
    has_quotes: bool,
    utf8: bool,
    faults: Faults,
}

impl Fields<'_> {
    /// Reads the projected columns at these positions, those that haven't been yet: of the rows that have passed, if that isn't all.
    fn read(&mut self, positions: impl Iterator<Item = usize>, passed: Option<&[u32]>, to: &mut [Option<ArrayRef>]) {
        let mut unread: Vec<usize> = positions.filter(|&position| to[position].is_none()).collect();
        unread.sort_by_key(|&position| self.layout.columns[position]);
        let columns: Vec<usize> = unread.iter().map(|&position| self.layout.columns[position]).collect();
        let delimiter = self.csv.dialect.delimiter.len();
        let mut at = 0;
        while at < columns.len() {
            let end = at + Places::together(&columns[at..]);
            self.places.take(self.index, columns[at], columns[end - 1], passed, delimiter);
            for number in at..end {
                to[unread[number]] = Some(self.column(unread[number], columns[number], passed));
            }
            at = end;
        }
    }

    /// The projected column at this position, this one of the file, whose fields were taken out.
    fn column(&mut self, position: usize, column: usize, passed: Option<&[u32]>) -> ArrayRef {
        let csv = self.csv;
        let cx = ColumnContext {
            text: &self.chunk.text,
            utf8: self.utf8,
            nulls: Some(&csv.nulls),
            patterns: &csv.patterns,
            field: &csv.schema.fields[csv.projection[position]],
            position,
        };
        let data = self.chunk.text.as_slice();
        let cells = Cells::new(data, self.places.column(column), &csv.dialect, self.has_quotes).of(passed);
        columns::parse(&cells, &cx, &mut self.faults)
    }
}

struct CsvReader {
    files: Arc<TextFiles<Csv>>,
    turn: Turn,
    index: Index,
    places: Places,
    left_out: u64,
}

impl Reader for CsvReader {
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        match self.files.take(&mut self.turn, &mut self.index)? {
            Piece::Chunk(chunk, layout) => Ok(Next::Batch(self.parse(chunk, &layout, errors))),
            Piece::Other(next) => Ok(next),
        }
    }

    fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

impl CsvReader {
    fn parse(&mut self, chunk: Chunk, layout: &Layout, errors: &mut Vec<RowError>) -> Batch {
        let csv = &self.files.format;
        let data = chunk.text.as_slice();
        self.index.build(data, &csv.dialect, layout.width, csv.ragged);
        for misfit in &self.index.misfits {
            errors.push(self.misfit(misfit, &chunk, layout));
        }
        let rows = self.index.rows();
        self.files.counters.rows.fetch_add((rows + self.index.misfits.len()) as u64, Ordering::Relaxed);
        // Only texts have to be whole characters; what is no number is no number.
        let utf8 = csv.has_text && (self.index.ascii || std::str::from_utf8(data).is_ok());
        let (index, places, faults) = (&self.index, &mut self.places, Faults::default());
        let mut fields = Fields { csv, layout, chunk: &chunk, index, places, has_quotes: index.quotes, utf8, faults };
        let mut columns: Vec<Option<ArrayRef>> = vec![None; csv.projection.len()];
        // The rows that have passed so far; `None`: all.
        let mut passed: Option<Vec<u32>> = None;
        for condition in &csv.filter {
            fields.read(condition.columns.iter().copied(), passed.as_deref(), &mut columns);
            let read = condition.columns.iter().filter_map(|&position| columns[position].clone()).collect();
            let before = passed.as_ref().map_or(rows, Vec::len);
            let kept = (condition.pass)(read, before);
            // A value that doesn't fit is an error of its row, which passes nothing more.
            let Some(kept) = fields.faults.without(kept, passed.as_deref(), rows) else { continue };
            passed = Some(match &passed {
                Some(passed) => kept.iter().map(|&row| passed[row as usize]).collect(),
                None => kept.clone(),
            });
            let kept = UInt32Array::from(kept);
            columns.iter_mut().flatten().for_each(|column| *column = dfc_batch::take(column, &kept));
        }
        fields.read(0..csv.projection.len(), passed.as_deref(), &mut columns);
        let columns: Vec<ArrayRef> = columns.into_iter().flatten().collect();
        let faults = fields.faults;
        let (seq, dialect) = (chunk.seq, csv.dialect.clone());
        let starts = self.index.starts.clone();
        let locate = Arc::new(ChunkRows {
            chunk: chunk.clone(),
            starts,
            row_end: move |data: &[u8], start: usize| exact::row_end(data, start, &dialect).0,
        });
        self.left_out += passed.as_ref().map_or(0, |passed| rows - passed.len()) as u64;
        if faults.is_empty() {
            let rows = passed.as_ref().map_or(rows, Vec::len);
            return Batch { columns, rows, seq, origin: Some(Origin { locate, rows: passed.map(Into::into) }) };
        }
        let Some(passed) = passed else { return faults.leave_out(columns, rows, seq, locate, errors) };
        let before = errors.len();
        let batch = faults.leave_out_of(columns, &passed, seq, locate, errors);
        // A row that didn't pass and has a fault is told as an error.
        let told = (errors.len() - before) - (passed.len() - batch.rows);
        self.left_out -= told as u64;
        batch
    }

    fn misfit(&self, misfit: &index::Misfit, chunk: &Chunk, layout: &Layout) -> RowError {
        let start = misfit.start as usize;
        let (code, rule) = if misfit.unclosed {
            (
                DAMAGED,
                "a quote is opened in this row and never closed: the rest of the file was taken for the row"
                    .to_string(),
            )
        } else {
            let plural = |n: usize| if n == 1 { "" } else { "s" };
            let (fields, width) = (misfit.fields as usize, layout.width);
            let row = &chunk.text[start..exact::row_end(&chunk.text, start, &self.files.format.dialect).0];
            // What is read with a delimiter that it hasn't is one field: the header, or this row.
            let others = [(b';', ";"), (b'\t', "\\t"), (b'|', "|"), (b',', ",")];
            let other = others.into_iter().find(|(byte, _)| {
                let count = row.iter().filter(|in_row| *in_row == byte).count();
                if width == 1 { count > 0 && *byte != b',' } else { fields == 1 && count + 1 == width }
            });
            let cure = match other {
                Some((_, other)) => format!("if its fields stand apart by `{other}`: `delimiter: \"{other}\"`"),
                _ if fields < width => "`ragged: pad` fills missing fields with null".into(),
                _ => "`ragged: truncate` drops surplus fields".into(),
            };
            (RAGGED, format!("the row has {fields} field{}, {width} are expected; {cure}", plural(fields)))
        };
        RowError {
            place: Some(chunk.place(start)),
            raw: Some(chunk.raw(start, exact::row_end(&chunk.text, start, &self.files.format.dialect).0)),
            ..RowError::new(code, rule)
        }
    }
}
