//! The CSV sink: columns straight to bytes. A field is quoted only where it must be: it holds the delimiter, a quote or a line
//! break, or it would be read as null.

use std::io::Read;
use std::sync::Arc;

use arrow_array::Array;
use dfc_batch::{Batch, RowError};
use dfc_ir::plan::SinkSpec;
use dfc_ir::{Schema, Type};

use super::lines::{LineColumn, LineStyle, lines};
use super::{exact, header};
use crate::files::{
    COMPRESSIONS, ENCODINGS, Encoding, FolderSink, InputFile, MODES, OutputOptions, encode, io_error, open_input,
    refuse_folder_options, text_folder, text_parts,
};
use crate::options::OptionReader;
use crate::rows::shown;
use crate::text::dialect::Dialect;
use crate::text::format::{WriteText, writer};
use crate::text::pattern::Patterns;
use crate::text::sink::TextSink;
use crate::{ConnectError, Encoded, Encoder, OpenContext, Sink};

/// A header is looked for in so many bytes of a file that is added to.
const MAX_HEADER: u64 = 1 << 20;

/// Code of a value or a column's name that can't be written.
const UNWRITABLE: &str = "R0310";

/// How rows are written.
pub(crate) struct CsvStyle {
    dialect: Dialect,
    nulls: Vec<u8>,
    quote_all: bool,
    line_end: &'static [u8],
    encoding: Encoding,
    patterns: Patterns,
    header: bool,
    /// A number or a date may hold the delimiter or be the null text.
    guard_all: bool,
}

/// Opens a CSV sink.
pub(crate) fn open_sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    let options = OptionReader::new("csv", &spec.options);
    let style = CsvStyle::read(&options)?;
    let output = OutputOptions {
        path: options.required("path")?.to_string(),
        mode: options.choice("mode", &MODES)?,
        compression: options.choice("compression", &COMPRESSIONS)?,
    };
    if output.path.ends_with('/') {
        let (folder, by, rest) = text_folder(&options, &output, "csv", schema)?;
        let begin = if style.header { style.header_line(&rest)? } else { Vec::new() };
        let (style, rest) = (Arc::new(style), Arc::new(rest));
        let make = move || {
            let encoder = Box::new(CsvEncoder::new(style.clone(), rest.clone()));
            match &by {
                Some(by) => by.encoder(encoder),
                None => encoder as Box<dyn Encoder>,
            }
        };
        let parts = text_parts(&output.path, begin, output.compression);
        return Ok(Box::new(FolderSink::open(folder, cx, Box::new(make), parts)?));
    }
    refuse_folder_options(&options, &output.path)?;
    style.open(output, schema, cx)
}

impl CsvStyle {
    /// From a sink's arguments.
    ///
    /// # Errors
    /// Arguments that contradict each other.
    pub(crate) fn read(options: &OptionReader) -> Result<Self, ConnectError> {
        let dialect = Dialect::read(options)?;
        let nulls = options.text("nulls")?.unwrap_or("");
        // What stands behind it could make a whole delimiter of its first character.
        let delimiter = options.text("delimiter")?.unwrap_or(",").chars().next();
        let breaks = |c: char| matches!(c, '\n' | '\r') || dialect.quote.map(char::from) == Some(c);
        if nulls.contains(breaks) || delimiter.is_some_and(|first| nulls.contains(first)) {
            return Err(ConnectError::new("R0202", "`nulls` can't hold the delimiter, a quote or a line break")
                .help("a null is written as `nulls` without quotes, so that it differs from every text"));
        }
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"+-.: ".contains(b);
        let guard_all = !nulls.is_empty() || dialect.delimiter.iter().any(plain);
        Ok(CsvStyle {
            nulls: nulls.as_bytes().to_vec(),
            quote_all: options.flag("quote_all", false)?,
            line_end: options.choice("line_ending", &[("lf", &b"\n"[..]), ("crlf", &b"\r\n"[..])])?,
            encoding: options.choice("encoding", &ENCODINGS)?,
            patterns: Patterns::read(options)?,
            header: options.flag("header", true)?,
            dialect,
            guard_all,
        })
    }

    /// Opens the output and writes the header, unless rows are there already.
    ///
    /// # Errors
    /// When the output can't be opened, the header not be written in the encoding, or the file that is added to has other columns.
    fn open(self, options: OutputOptions, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
        let (style, types) = (Arc::new(self), Arc::new(schema.clone()));
        let begin = {
            let (style, types, options) = (style.clone(), types.clone(), options.clone());
            move |continues: bool| match (style.header, continues) {
                (false, _) => Ok(Vec::new()),
                (true, true) => style.same_columns(&options, &types).map(|()| Vec::new()),
                (true, false) => style.header_line(&types),
            }
        };
        let make = move || Box::new(CsvEncoder::new(style.clone(), types.clone())) as Box<dyn Encoder>;
        Ok(Box::new(TextSink::open(&options, cx, Box::new(begin), Box::new(make))?))
    }

    /// Compares the header of the file that is added to: rows under other names would be silently wrong.
    fn same_columns(&self, options: &OutputOptions, schema: &Schema) -> Result<(), ConnectError> {
        let name = &options.path;
        let file = InputFile { path: Some(name.into()), name: name.as_str().into(), size: Some(0) };
        let input = open_input(&file, options.compression, self.encoding, &Arc::default(), &Arc::default())?;
        let mut start = Vec::new();
        input.take(MAX_HEADER).read_to_end(&mut start).map_err(|e| io_error("read", name, &e))?;
        let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&start);
        let (end, _) = exact::row_end(start, 0, &self.dialect);
        let present = header::names(&start[..end], &self.dialect, name)?;
        if present.iter().map(String::as_str).eq(schema.fields.iter().map(|field| field.external_name())) {
            return Ok(());
        }
        let list = |names: Vec<&str>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let present = list(present.iter().map(String::as_str).collect());
        let ours = list(schema.fields.iter().map(|field| field.external_name()).collect());
        Err(ConnectError::new("R0210", format!("`{name}` has the columns {present}, and {ours} would be added to it"))
            .help("`mode: append` adds rows of the same columns in the same order: bring them into it with `select(…)`, or name another file"))
    }

    /// The line with the columns' names.
    ///
    /// # Errors
    /// A name that can't be written in this style.
    pub(crate) fn header_line(&self, schema: &Schema) -> Result<Vec<u8>, ConnectError> {
        let mut line = Vec::new();
        for (i, field) in schema.fields.iter().enumerate() {
            if i > 0 {
                line.extend_from_slice(&self.dialect.delimiter);
            }
            self.push_text(&mut line, field.external_name().as_bytes())
                .map_err(|why| unwritable(format!("the column name `{}` {why}", field.external_name())))?;
        }
        line.extend_from_slice(self.line_end);
        self.encoded(line).map_err(|why| unwritable(format!("the header {why}")))
    }

    /// Appends a text, quoted where it must be.
    fn push_text(&self, out: &mut Vec<u8>, text: &[u8]) -> Result<(), &'static str> {
        let Some(quote) = self.dialect.quote else {
            if self.must_quote(text) {
                return Err("holds the delimiter or a line break, or is the null text, and `quote` is empty");
            }
            out.extend_from_slice(text);
            return Ok(());
        };
        if !self.quote_all && !self.must_quote(text) {
            out.extend_from_slice(text);
            return Ok(());
        }
        out.push(quote);
        let mut rest = text;
        while let Some(at) = memchr::memchr2(quote, self.dialect.escape, rest) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(&[self.dialect.escape, rest[at]]);
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
        out.push(quote);
        Ok(())
    }

    fn must_quote(&self, text: &[u8]) -> bool {
        if text == self.nulls {
            return true;
        }
        // A text's end could make a delimiter with what follows it, so its first byte counts as much as the whole.
        let delimiter = self.dialect.delimiter[0];
        let quote = self.dialect.quote.unwrap_or(b'\n');
        if text.len() < 64 {
            // Most texts are short: one look at each byte beats the set-up of a search.
            return text.iter().any(|&b| (b == delimiter) | (b == quote) | (b == b'\n') | (b == b'\r'));
        }
        memchr::memchr3(quote, b'\n', b'\r', text).is_some() || memchr::memchr(delimiter, text).is_some()
    }

    fn encoded(&self, utf8: Vec<u8>) -> Result<Vec<u8>, String> {
        if self.encoding == Encoding::Utf8 {
            return Ok(utf8);
        }
        encode(&String::from_utf8_lossy(&utf8), self.encoding)
            .map_err(|c| format!("has the character `{c}`, which the file's encoding doesn't have"))
    }
}

/// The error of a header that can't be written.
fn unwritable(message: String) -> ConnectError {
    ConnectError::new(UNWRITABLE, message).help(
        "write the file in UTF-8 and with quotes, give the field another name with `rename`, or write `header: false`",
    )
}

/// Turns batches into lines.
pub(crate) struct CsvEncoder {
    style: Arc<CsvStyle>,
    schema: Arc<Schema>,
    /// Bytes of a row, about: those of the batch before.
    row_bytes: usize,
}

impl CsvEncoder {
    /// For rows of these fields.
    pub(crate) fn new(style: Arc<CsvStyle>, schema: Arc<Schema>) -> Self {
        let row_bytes = schema.fields.len() * 8 + 2;
        CsvEncoder { style, schema, row_bytes }
    }

    /// All rows as lines, where the style is the usual one, in which every row can be written.
    pub(super) fn usual_lines(&mut self, batch: &Batch) -> Option<Vec<u8>> {
        let CsvStyle { dialect, quote_all, line_end, encoding, patterns, guard_all, .. } = &*self.style;
        let (&[delimiter], Some(quote)) = (dialect.delimiter.as_slice(), dialect.quote) else { return None };
        let fields = &self.schema.fields;
        // (Where nothing is guarded, a null is written as nothing.)
        let usual = !quote_all && !guard_all && *encoding == Encoding::Utf8;
        if !usual || fields.iter().any(|field| patterns.of(&field.ty.ty).is_some()) {
            return None;
        }
        let columns = fields.iter().zip(&batch.columns);
        let columns: Vec<LineColumn> =
            columns.map(|(field, array)| LineColumn::new(array, &field.ty.ty, !is_plain(&field.ty.ty))).collect();
        let style = LineStyle { delimiter, quote, escape: dialect.escape, line_end };
        let quoted = |text: &[u8], out: &mut Vec<u8>| {
            // Never fails: with quotes every text can be written.
            let _ = self.style.push_text(out, text);
        };
        let lines = lines(&style, &columns, batch.rows, batch.rows * self.row_bytes, &quoted);
        self.row_bytes = lines.len().div_ceil(batch.rows.max(1)) + 1;
        Some(lines)
    }
}

/// Whether a type's text never holds what has to be quoted in the usual styles.
fn is_plain(ty: &Type) -> bool {
    ty.is_temporal() || matches!(ty, Type::Int(_) | Type::Decimal(..) | Type::Float32 | Type::Float64 | Type::Bool)
}

enum Kind<'a> {
    /// Never needs quotes unless all fields are guarded.
    Plain,
    /// Text.
    Text,
    /// A date or time in the user's form.
    Pattern(&'a crate::text::pattern::Pattern),
}

struct Column<'a> {
    name: &'a str,
    ty: &'a Type,
    array: &'a arrow_array::ArrayRef,
    nulls: Option<&'a arrow_buffer::NullBuffer>,
    kind: Kind<'a>,
    write: WriteText<'a>,
}

impl Encoder for CsvEncoder {
    fn encode(&mut self, batch: Batch, errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        if let Some(lines) = self.usual_lines(&batch) {
            return Ok((Encoded::Bytes(lines), batch.rows as u64));
        }
        let (bytes, written) = self.any_lines(&batch, errors);
        Ok((Encoded::Bytes(bytes), written))
    }
}

impl CsvEncoder {
    /// The rows that can be written as lines of any style, and their number.
    pub(super) fn any_lines(&self, batch: &Batch, errors: &mut Vec<RowError>) -> (Vec<u8>, u64) {
        let style = &*self.style;
        let columns: Vec<Column> = self
            .schema
            .fields
            .iter()
            .zip(&batch.columns)
            .map(|(field, array)| {
                let ty = &field.ty.ty;
                let kind = match style.patterns.of(ty) {
                    Some(pattern) => Kind::Pattern(pattern),
                    None if style.guard_all || style.quote_all => Kind::Text,
                    None if is_plain(ty) => Kind::Plain,
                    None => Kind::Text,
                };
                Column { name: field.external_name(), ty, array, nulls: array.nulls(), kind, write: writer(array, ty) }
            })
            .collect();
        let mut out = Vec::with_capacity(batch.rows * (columns.len() * 8 + 2));
        let (mut scratch, mut written) = (Vec::new(), 0);
        for row in 0..batch.rows {
            let start = out.len();
            match write_row(style, &columns, row, &mut out, &mut scratch) {
                Ok(()) => written += 1,
                Err((column, why)) => {
                    out.truncate(start);
                    scratch.clear();
                    if let Some(column) = column
                        && column.array.is_valid(row)
                    {
                        (column.write)(row, &mut scratch);
                    }
                    errors.push(RowError {
                        place: batch.origin.as_ref().map(|o| o.place(row)),
                        raw: batch.origin.as_ref().and_then(|o| o.raw(row)),
                        field: column.map(|c| c.name.to_string()),
                        value: column.map(|_| shown(&scratch)),
                        ..RowError::new(UNWRITABLE, why)
                    });
                }
            }
        }
        (out, written)
    }
}

/// Appends a row; on failure the column and the rule.
fn write_row<'c, 'a>(
    style: &CsvStyle,
    columns: &'c [Column<'a>],
    row: usize,
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
) -> Result<(), (Option<&'c Column<'a>>, String)> {
    let start = out.len();
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(&style.dialect.delimiter);
        }
        if column.nulls.is_some_and(|n| n.is_null(row)) {
            out.extend_from_slice(&style.nulls);
            continue;
        }
        match &column.kind {
            Kind::Plain => (column.write)(row, out),
            Kind::Text => {
                scratch.clear();
                (column.write)(row, scratch);
                style.push_text(out, scratch).map_err(|why| (Some(column), format!("the value {why}")))?;
            }
            Kind::Pattern(pattern) => {
                let mut text = String::new();
                pattern
                    .write(&dfc_batch::value_at(column.array, column.ty, row), &mut text)
                    .map_err(|why| (Some(column), why))?;
                style.push_text(out, text.as_bytes()).map_err(|why| (Some(column), format!("the value {why}")))?;
            }
        }
    }
    out.extend_from_slice(style.line_end);
    if style.encoding != Encoding::Utf8 {
        let encoded = style.encoded(out.split_off(start)).map_err(|why| (None, format!("the row {why}")))?;
        out.extend_from_slice(&encoded);
    }
    Ok(())
}
