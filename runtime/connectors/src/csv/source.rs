//! The CSV source: its arguments, its files, and the readers that parse their chunks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dfc_batch::{Batch, Origin, RowError};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Schema, Type};

use super::cells::Cells;
use super::columns::{self, ColumnContext};
use super::dialect::Dialect;
use super::exact;
use super::header::{self, Layout};
use super::index::{self, Index, Ragged};
use crate::chunks::{Format, Piece, TextFiles, TextOptions, Turn, Watch};
use crate::files::{COMPRESSIONS, ENCODINGS};
use crate::locate::{Chunk, ChunkRows};
use crate::options::OptionReader;
use crate::rows::Faults;
use crate::text::pattern::Patterns;
use crate::text::value::{DAMAGED, RAGGED};
use crate::{ConnectError, Next, OpenContext, Positions, Reader, Source, SourceCounters};

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
    /// Whether a text is among the projected fields.
    has_text: bool,
}

impl Format for Csv {
    type Layout = Layout;

    fn start(&self, data: &[u8], whole: bool, file: &str) -> Result<Option<(usize, Layout)>, ConnectError> {
        if !self.header {
            let start = header::skipped(data, self.skip, whole, None)?;
            return Ok(start.map(|at| (at, header::by_position(&self.schema, &self.projection))));
        }
        let Some(line) = header::find(data, self.skip, whole, &self.dialect, file)? else { return Ok(None) };
        let names = header::names(&data[line.clone()], &self.dialect, file)?;
        Ok(Some((line.end, header::by_name(&self.schema, &self.projection, &names, file)?)))
    }

    fn cut(&self, data: &[u8]) -> Option<usize> {
        index::last_row_end(data, &self.dialect)
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
        Ok(Box::new(CsvReader { files: self.files.clone(), turn: Turn::default(), index: Index::default() }))
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

struct CsvReader {
    files: Arc<TextFiles<Csv>>,
    turn: Turn,
    index: Index,
}

impl Reader for CsvReader {
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        match self.files.take(&mut self.turn)? {
            Piece::Chunk(chunk, layout) => Ok(Next::Batch(self.parse(chunk, &layout, errors))),
            Piece::Other(next) => Ok(next),
        }
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
        let has_quotes = csv.dialect.quote.is_some_and(|q| memchr::memchr(q, data).is_some());
        // Only texts have to be whole characters; what is no number is no number.
        let utf8 = csv.has_text && std::str::from_utf8(data).is_ok();
        let mut faults = Faults::default();
        let mut arrays = Vec::with_capacity(csv.projection.len());
        for (position, (&field, &column)) in csv.projection.iter().zip(&layout.columns).enumerate() {
            let cx = ColumnContext {
                text: &chunk.text,
                utf8,
                nulls: &csv.nulls,
                patterns: &csv.patterns,
                field: &csv.schema.fields[field],
                position,
            };
            let cells = Cells::new(data, &self.index, column, &csv.dialect, has_quotes);
            arrays.push(columns::parse(&cells, &cx, &mut faults));
        }
        let (seq, dialect) = (chunk.seq, csv.dialect.clone());
        let starts = self.index.starts.clone();
        let locate = Arc::new(ChunkRows {
            chunk: chunk.clone(),
            starts,
            row_end: move |data: &[u8], start: usize| exact::row_end(data, start, &dialect).0,
        });
        if faults.is_empty() {
            return Batch { columns: arrays, rows, seq, origin: Some(Origin { locate, rows: None }) };
        }
        faults.leave_out(arrays, rows, seq, locate, errors)
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
            let cure = if fields < width {
                "`ragged: pad` fills missing fields with null"
            } else {
                "`ragged: truncate` drops surplus fields"
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
