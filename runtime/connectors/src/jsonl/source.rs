//! The JSON lines source: objects to columns of the projected fields.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dfc_batch::{Batch, ColumnBuilder, Origin, RowError};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Field, Type, Value};

use super::scan;
use crate::chunks::{Format, Piece, TextFiles, TextOptions, Turn, Watch, Whole};
use crate::files::{COMPRESSIONS, Encoding};
use crate::locate::{Chunk, ChunkRows};
use crate::options::OptionReader;
use crate::rows::{Fault, shown};
use crate::text::value::{DAMAGED, MISFIT, bad_encoding, read, unexpected_null};
use crate::text::{number, time};
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

struct Lines {
    fields: Vec<Field>,
    keys: HashMap<String, usize>,
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
        Ok(Box::new(JsonReader { files: self.files.clone(), turn: Turn::default() }))
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
    fn parse(&self, chunk: Chunk, errors: &mut Vec<RowError>) -> Batch {
        let format = &self.files.format;
        let data = chunk.text.as_slice();
        let guess = memchr::memchr_iter(b'\n', data).count() + 1;
        let mut builders: Vec<ColumnBuilder> = format.fields.iter().map(|f| ColumnBuilder::new(&f.ty, guess)).collect();
        let mut starts = Vec::with_capacity(guess);
        let mut rejected = 0;
        let mut texts: Vec<Option<&str>> = vec![None; format.fields.len()];
        let mut values: Vec<Value> = Vec::with_capacity(format.fields.len());
        for (start, end) in lines(data) {
            let line = &data[start..end];
            if is_blank(line) {
                continue;
            }
            values.clear();
            match row(line, format, &mut texts, &mut values) {
                Ok(()) => {
                    starts.push(start as u32);
                    builders.iter_mut().zip(&values).for_each(|(builder, value)| builder.push(value));
                }
                Err((field, fault)) => {
                    rejected += 1;
                    errors.push(RowError {
                        place: Some(chunk.place(start)),
                        raw: Some(chunk.raw(start, end)),
                        field: field.map(str::to_string),
                        value: fault.value,
                        ..RowError::new(fault.code, fault.rule)
                    });
                }
            }
        }
        let rows = starts.len();
        self.files.counters.rows.fetch_add((rows + rejected) as u64, Ordering::Relaxed);
        let columns = builders.into_iter().map(ColumnBuilder::finish).collect();
        let (seq, locate) = (
            chunk.seq,
            Arc::new(ChunkRows {
                chunk: chunk.clone(),
                starts,
                row_end: |data: &[u8], start: usize| {
                    memchr::memchr(b'\n', &data[start..]).map_or(data.len(), |n| start + n)
                },
            }),
        );
        Batch { columns, rows, seq, origin: Some(Origin { locate, rows: None }) }
    }
}

/// The values of one line; on failure the field's outside name and what is wrong.
fn row<'a, 'f>(
    line: &'a [u8],
    format: &'f Lines,
    texts: &mut Vec<Option<&'a str>>,
    values: &mut Vec<Value<'a>>,
) -> Result<(), (Option<&'f str>, Fault)> {
    let Ok(line) = std::str::from_utf8(line) else {
        let fault = bad_encoding(line);
        return Err((None, Fault { rule: "the line is no UTF-8 text, which JSON must be".into(), ..fault }));
    };
    texts.iter_mut().for_each(|text| *text = None);
    let count = format.fields.len();
    // Lines mostly have the same keys in the same order.
    let mut next = 0;
    let walked = scan::object(line, |key, value| {
        let inner = &key[1..key.len() - 1];
        let found = if next < count && inner == format.fields[next].external_name() {
            Some(next)
        } else if inner.contains('\\') {
            serde_json::from_str::<String>(key).ok().and_then(|key| format.keys.get(&key).copied())
        } else {
            format.keys.get(inner).copied()
        };
        if let Some(at) = found {
            // Of equal keys the last one counts.
            texts[at] = Some(value);
            next = at + 1;
        }
    });
    if let Err(error) = walked {
        let rule = format!("the line is no JSON object: byte {}: {}", error.at + 1, error.why);
        return Err((
            None,
            Fault {
                code: DAMAGED,
                rule,
                value: Some(shown(&line.as_bytes()[error.at.min(line.len())..])).filter(|v| !v.is_empty()),
            },
        ));
    }
    for (field, text) in format.fields.iter().zip(texts.iter()) {
        let value = value(text.unwrap_or("null"), &field.ty.ty).and_then(|value| {
            if value.is_null() && !field.ty.nullable {
                let mut fault = unexpected_null(&field.ty.ty);
                if text.is_none() {
                    fault.rule = format!("the key is missing, and {} is never null; `{0}?` takes nulls", field.ty.ty);
                }
                return Err(fault);
            }
            Ok(value)
        });
        values.push(value.map_err(|fault| (Some(field.external_name()), fault))?);
    }
    Ok(())
}

/// The value of a JSON text, which is well formed. The rules are those of `dfc_eval`'s JSON; the common forms are read here directly.
fn value<'a>(json: &'a str, ty: &Type) -> Result<Value<'a>, Fault> {
    if json == "null" {
        return Ok(Value::Null);
    }
    if matches!(ty, Type::Json) {
        return Ok(Value::str(json));
    }
    if matches!(ty, Type::List(_) | Type::Record(_)) {
        return read(json.as_bytes(), ty, None);
    }
    let text = match json.as_bytes().first() {
        Some(b'"') if !json.contains('\\') => Cow::Borrowed(&json[1..json.len() - 1]),
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => Cow::Owned(text),
            Err(_) => {
                let rule = "the string holds half of a surrogate pair, which is no character".to_string();
                return Err(Fault { code: MISFIT, rule, value: Some(shown(json.as_bytes())) });
            }
        },
        Some(b'{' | b'[') if !matches!(ty, Type::String) => {
            let rule = format!("`{}` is no {ty}: a single value is expected", shown(json.as_bytes()));
            return Err(Fault { code: MISFIT, rule, value: Some(shown(json.as_bytes())) });
        }
        Some(b't' | b'f') if matches!(ty, Type::Bool) => return Ok(Value::Bool(json == "true")),
        // A number or a word: only numbers, bools and texts can be made of it.
        _ if ty.is_numeric() || matches!(ty, Type::String) => Cow::Borrowed(json),
        _ => {
            let wanted = if matches!(ty, Type::Bool) { "`true` or `false`" } else { "a string" };
            let rule = format!("`{json}` is no {ty}: {wanted} is expected");
            return Err(Fault { code: MISFIT, rule, value: Some(shown(json.as_bytes())) });
        }
    };
    let bytes = text.as_bytes();
    let fast = match ty {
        Type::String => return Ok(Value::Str(text)),
        Type::Int(int) => {
            number::int64(bytes).map(i128::from).filter(|n| ((*int).min()..=(*int).max()).contains(n)).map(Value::Int)
        }
        Type::Float64 => number::float64(bytes).map(Value::Float),
        Type::Decimal(p, s) => number::wide_decimal(bytes, *s, 10i128.pow(u32::from(*p))).map(Value::Decimal),
        Type::Date => time::date(bytes).map(Value::Date),
        Type::DateTime => time::datetime(bytes).map(Value::DateTime),
        Type::Timestamp => time::timestamp(bytes).map(Value::Timestamp),
        _ => None,
    };
    match fast {
        Some(value) => Ok(value),
        None => read(bytes, ty, None),
    }
}
