//! The JSON lines source: objects to columns of the projected fields.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::{Buffer, NullBuffer};
use dfc_batch::{Batch, ColumnBuilder, Origin, RowError, arrow_fields};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{DataType, Field, Type, Value};

use super::line::{self, value};
use super::places::{Part, Places, Shape};
use crate::chunks::{Format, Piece, TextFiles, TextOptions, Turn, Watch, Whole};
use crate::files::{COMPRESSIONS, Encoding};
use crate::locate::{Chunk, ChunkRows};
use crate::options::OptionReader;
use crate::rows::Faults;
use crate::text::cells::Cells;
use crate::text::columns::{self, ColumnContext};
use crate::text::pattern::Patterns;
use crate::text::value::unexpected_null;
use crate::{ConnectError, Next, OpenContext, Positions, Reader, Source, SourceCounters};

/// Opens a JSON lines source.
pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    open_with_chunk(spec, cx, None)
}

/// With chunks of a fixed size, for tests.
pub(crate) fn open_with_chunk(
    spec: &SourceSpec,
    cx: &OpenContext,
    chunk: Option<usize>,
) -> Result<Box<dyn Source>, ConnectError> {
    let options = OptionReader::new("jsonl", &spec.options);
    let fields = spec.projected().fields;
    let keys = fields.iter().enumerate().map(|(i, f)| (f.external_name().to_string(), i)).collect();
    let text = TextOptions {
        compression: options.choice("compression", &COMPRESSIONS)?,
        encoding: Encoding::Utf8,
        chunk,
        watch: Watch::read(&options)?,
    };
    let files = TextFiles::open(Lines { fields, keys }, options.required("path")?, text, cx)?;
    Ok(Box::new(JsonSource { files: Arc::new(files) }))
}

/// The fields that are read, and their keys.
pub(super) struct Lines {
    pub(super) fields: Vec<Field>,
    pub(super) keys: HashMap<String, usize>,
}

impl Format for Lines {
    type Layout = ();
    type Found = ();

    fn start(&self, _: &[u8], _: bool, _: &str) -> Result<Option<(usize, ())>, ConnectError> {
        Ok(Some((0, ())))
    }

    fn cut(&self, data: &[u8]) -> Option<Whole> {
        memchr::memrchr(b'\n', data).map(|n| Whole::counted(data, n + 1))
    }

    fn find(&self, data: &[u8], all: bool, _: &mut ()) -> Option<Whole> {
        if all { Some(Whole::counted(data, data.len())) } else { self.cut(data) }
    }

    fn count(&self, data: &[u8], _: &(), max: u64) -> (u64, usize) {
        let mut rows = 0;
        for (start, end) in lines(data) {
            if !is_blank(&data[start..end]) {
                rows += 1;
                if rows == max {
                    return (rows, (end + 1).min(data.len()));
                }
            }
        }
        (rows, data.len())
    }
}

/// Start and end of each line, without its line feed.
fn lines(data: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = memchr::memchr_iter(b'\n', data);
    let last = if data.last().is_none_or(|b| *b == b'\n') { None } else { Some(data.len()) };
    ends.chain(last).scan(0, |start, end| Some((std::mem::replace(start, end + 1), end)))
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'))
}

struct JsonSource {
    files: Arc<TextFiles<Lines>>,
}

impl Source for JsonSource {
    fn reader(&self, _task: usize) -> Result<Box<dyn Reader>, ConnectError> {
        let places = Places::new(&self.files.format.fields);
        Ok(Box::new(JsonReader { files: self.files.clone(), turn: Turn::default(), places }))
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

struct JsonReader {
    files: Arc<TextFiles<Lines>>,
    turn: Turn,
    places: Places,
}

impl Reader for JsonReader {
    fn next(&mut self, errors: &mut Vec<RowError>) -> Result<Next, ConnectError> {
        match self.files.take(&mut self.turn, &mut ())? {
            Piece::Chunk(chunk, _) => Ok(Next::Batch(self.parse(chunk, errors))),
            Piece::Other(next) => Ok(next),
        }
    }
}

impl JsonReader {
    fn parse(&mut self, chunk: Chunk, errors: &mut Vec<RowError>) -> Batch {
        let before = errors.len();
        let batch = batch(&self.files.format, &mut self.places, chunk, errors);
        let rejected = errors.len() - before;
        self.files.counters.rows.fetch_add((batch.rows + rejected) as u64, Ordering::Relaxed);
        batch
    }
}

/// The rows of a chunk's lines; those that are none are told as errors, in their order.
pub(super) fn batch(format: &Lines, places: &mut Places, chunk: Chunk, errors: &mut Vec<RowError>) -> Batch {
    let data = chunk.text.as_slice();
    let room = memchr::memchr_iter(b'\n', data).count() + 1;
    let (mut lines, mut hard) = (Vec::with_capacity(room), Vec::new());
    let is_text = std::str::from_utf8(data).is_ok();
    places.clear(room);
    let mut at = 0;
    while at < data.len() {
        let easy = if is_text { places.line(data, at, lines.len() - hard.len()) } else { None };
        let end = easy.unwrap_or_else(|| memchr::memchr(b'\n', &data[at..]).map_or(data.len(), |n| at + n));
        if easy.is_some() || !is_blank(&data[at..end]) {
            if easy.is_none() {
                hard.push(lines.len());
            }
            lines.push((at, end));
        }
        at = end + 1;
    }
    let mut faults = Faults::default();
    let easy = lines.len() - hard.len();
    let mut columns = Columns { text: &places.text(&chunk.text), places, lines: easy, faults: &mut faults };
    let columns: Vec<ArrayRef> =
        format.fields.iter().zip(&places.shapes).map(|(field, shape)| columns.of(field, shape, false)).collect();
    let (columns, starts) = if hard.is_empty() && faults.is_empty() {
        (columns, lines.iter().map(|(start, _)| *start as u32).collect())
    } else {
        with_hard_lines(format, &chunk, (columns, faults.rows()), (&lines, &hard), errors)
    };
    let rows = starts.len();
    let row_end = |data: &[u8], start: usize| memchr::memchr(b'\n', &data[start..]).map_or(data.len(), |n| start + n);
    let seq = chunk.seq;
    let locate = Arc::new(ChunkRows { chunk, starts, row_end });
    Batch { columns, rows, seq, origin: Some(Origin { locate, rows: None }) }
}

/// Makes columns out of lines that were walked over with ease. Rows in `faults` are to be read anew, alone.
struct Columns<'a> {
    text: &'a Buffer,
    places: &'a Places,
    lines: usize,
    faults: &'a mut Faults,
}

impl Columns<'_> {
    /// A field's values; of one that is `inside` a record, a null under a type that is never null is for the record to judge.
    fn of(&mut self, field: &Field, shape: &Shape, inside: bool) -> ArrayRef {
        let ty = &field.ty;
        if let Type::Record(fields) = &ty.ty {
            return self.record(ty, fields, shape, inside);
        }
        if Part::of(&ty.ty) == Part::Whole {
            return self.values(ty, shape.column, inside);
        }
        let optional;
        let field = match inside {
            true => {
                optional = Field { ty: ty.with_nullable(true), ..field.clone() };
                &optional
            }
            false => field,
        };
        let (starts, ends) = self.places.column(shape.column, self.lines);
        let patterns = Patterns::default();
        let cx = ColumnContext { text: self.text, utf8: true, nulls: None, patterns: &patterns, field, position: 0 };
        columns::parse(&Cells::bare(self.text, starts, ends), &cx, self.faults)
    }

    /// One value after the other.
    fn values(&mut self, ty: &DataType, column: usize, inside: bool) -> ArrayRef {
        // What is told as an error leaves a hole, which goes with its row.
        let mut builder = ColumnBuilder::new(&ty.with_nullable(true), self.lines);
        let (starts, ends) = self.places.column(column, self.lines);
        for (row, (start, end)) in starts.iter().zip(ends).enumerate() {
            let text = self.text.get(*start as usize..*end as usize).and_then(|text| std::str::from_utf8(text).ok());
            let text = text.unwrap_or("null");
            // In a record there is a JSON `null` beside that which is none.
            let read = if inside { line::in_record(text, &ty.ty) } else { value(text, &ty.ty) };
            let fault = match read {
                Ok(value) if !value.is_null() => {
                    builder.push(&value);
                    continue;
                }
                Ok(_) if ty.nullable || inside => None,
                Ok(_) => Some(unexpected_null(&ty.ty)),
                Err(fault) => Some(fault),
            };
            fault.into_iter().for_each(|fault| self.faults.push(row, 0, None, fault));
            builder.push_null();
        }
        builder.finish()
    }

    /// A record's fields, each a column.
    fn record(&mut self, ty: &DataType, fields: &[Field], shape: &Shape, inside: bool) -> ArrayRef {
        let arrays: Vec<ArrayRef> =
            fields.iter().zip(&shape.fields).map(|(field, shape)| self.of(field, shape, true)).collect();
        let (starts, ends) = self.places.column(shape.column, self.lines);
        let mut there: Vec<bool> = starts.iter().zip(ends).map(|(start, end)| start <= end).collect();
        for (row, there) in there.iter_mut().enumerate() {
            let lacks = |(field, array): (&Field, &ArrayRef)| !field.ty.nullable && array.is_null(row);
            if *there && fields.iter().zip(&arrays).any(lacks) || !*there && !ty.nullable && !inside {
                self.faults.push(row, 0, None, unexpected_null(&ty.ty));
                *there = false;
            }
        }
        let valid = Some(NullBuffer::from(there)).filter(|valid| valid.null_count() > 0);
        Arc::new(match arrays.is_empty() {
            true => StructArray::new_empty_fields(self.lines, valid),
            false => StructArray::new(arrow_fields(fields), arrays, valid),
        })
    }
}

/// Puts the lines in between that have to be read alone: the hard ones, and those at which the easy reading has found a fault. The columns,
/// and where their rows start.
fn with_hard_lines(
    format: &Lines,
    chunk: &Chunk,
    (easy, faulty): (Vec<ArrayRef>, Vec<u32>),
    (lines, hard): (&[(usize, usize)], &[usize]),
    errors: &mut Vec<RowError>,
) -> (Vec<ArrayRef>, Vec<u32>) {
    let data = chunk.text.as_slice();
    let alone = hard.len() + faulty.len();
    let mut builders: Vec<ColumnBuilder> = format.fields.iter().map(|f| ColumnBuilder::new(&f.ty, alone)).collect();
    let mut texts: Vec<Option<&str>> = vec![None; format.fields.len()];
    let mut values: Vec<Value> = Vec::with_capacity(format.fields.len());
    let (mut order, mut starts) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
    let (mut hard, mut faulty) = (hard.iter().peekable(), faulty.iter().peekable());
    let (mut row, mut read_alone) = (0, 0);
    for (number, &(start, end)) in lines.iter().enumerate() {
        if hard.next_if_eq(&&number).is_none() {
            row += 1;
            if faulty.next_if_eq(&&(row as u32 - 1)).is_none() {
                order.push((0, row - 1));
                starts.push(start as u32);
                continue;
            }
        }
        values.clear();
        match line::row(&data[start..end], format, &mut texts, &mut values) {
            Ok(()) => {
                order.push((1, read_alone));
                read_alone += 1;
                starts.push(start as u32);
                builders.iter_mut().zip(&values).for_each(|(builder, value)| builder.push(value));
            }
            Err((field, fault)) => errors.push(RowError {
                place: Some(chunk.place(start)),
                raw: Some(chunk.raw(start, end)),
                field: field.map(str::to_string),
                value: fault.value,
                ..RowError::new(fault.code, fault.rule)
            }),
        }
    }
    let alone = builders.into_iter().map(ColumnBuilder::finish);
    let together = |(easy, alone): (ArrayRef, ArrayRef)| dfc_batch::interleave(&[&easy, &alone], &order);
    (easy.into_iter().zip(alone).map(together).collect(), starts)
}

/// All lines read alone, for tests: the columns, and where their rows start.
#[cfg(test)]
pub(super) fn line_by_line(format: &Lines, chunk: &Chunk, errors: &mut Vec<RowError>) -> (Vec<ArrayRef>, Vec<u32>) {
    let data = chunk.text.as_slice();
    let lines: Vec<(usize, usize)> = lines(data).filter(|(start, end)| !is_blank(&data[*start..*end])).collect();
    let none = format.fields.iter().map(|f| ColumnBuilder::new(&f.ty, 0).finish()).collect();
    let hard: Vec<usize> = (0..lines.len()).collect();
    with_hard_lines(format, chunk, (none, Vec::new()), (&lines, &hard), errors)
}
