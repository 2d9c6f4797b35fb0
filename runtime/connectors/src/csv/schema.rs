//! The fields of delimited text: names from the header, types from a sample of the rows.

use dfc_ir::Schema;

use super::header;
use super::index::{self, Index, Ragged, has_quotes};
use super::places::Places;
use crate::ConnectError;
use crate::files::{COMPRESSIONS, ENCODINGS, InputFile};
use crate::infer::Guess;
use crate::options::OptionReader;
use crate::schema::{field, sample, sampled};
use crate::text::cells::{Cell, Cells};
use crate::text::dialect::Dialect;
use crate::text::pattern::Patterns;

/// The start of a file, cut into its header and rows.
struct Start {
    dialect: Dialect,
    /// The header's names, or made-up ones where there is no header.
    names: Vec<String>,
    data: Vec<u8>,
    /// Where the rows begin.
    rows: usize,
    whole: bool,
}

/// The names in the header; without one there are none to compare.
///
/// # Errors
/// What reading the file gives.
pub(crate) fn find_names(options: &OptionReader) -> Result<Vec<String>, ConnectError> {
    if !options.flag("header", true)? {
        return Ok(Vec::new());
    }
    let mut names: Vec<String> = Vec::new();
    for file in sampled(options.required("path")?)? {
        for name in start(&file, options)?.names {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// The fields: those of the first file's header, with types that its rows and those of the last file have.
///
/// # Errors
/// What reading the files gives; a header that has a name twice.
pub(crate) fn find_fields(options: &OptionReader) -> Result<Schema, ConnectError> {
    let patterns = Patterns::read(options)?;
    let nulls = options.text("nulls")?.unwrap_or("").as_bytes().to_vec();
    let mut names: Vec<String> = Vec::new();
    let mut guesses: Vec<Guess> = Vec::new();
    for (position, file) in sampled(options.required("path")?)?.into_iter().enumerate() {
        let start = start(&file, options)?;
        if position == 0 {
            distinct(&start.names, &file.name)?;
            names.clone_from(&start.names);
            guesses.resize_with(names.len(), Guess::default);
        }
        let columns: Vec<(usize, usize)> = names
            .iter()
            .enumerate()
            .filter_map(|(i, name)| Some((i, start.names.iter().position(|other| other == name)?)))
            .collect();
        start.look(&columns, &nulls, &patterns, &mut guesses);
    }
    let fields = names.iter().zip(&guesses).enumerate();
    Ok(Schema { fields: fields.map(|(i, (name, guess))| field(i, name, guess.ty(Some(&patterns)))).collect() })
}

fn start(file: &InputFile, options: &OptionReader) -> Result<Start, ConnectError> {
    let dialect = Dialect::read(options)?;
    let skip = options.count("skip")?.unwrap_or(0);
    let (data, whole) =
        sample(file, options.choice("compression", &COMPRESSIONS)?, options.choice("encoding", &ENCODINGS)?)?;
    let long = || {
        ConnectError::new("R0214", format!("`{}`: the fields can't be told from its first mebibyte", file.name))
            .help("declare them: `schema: record { id: int64, … }`")
    };
    if options.flag("header", true)? {
        let line = header::find(&data, skip, whole, &dialect, &file.name)?.ok_or_else(long)?;
        let names = header::names(&data[line.clone()], &dialect, &file.name)?;
        return Ok(Start { dialect, names, data, rows: line.end, whole });
    }
    let rows = header::skipped(&data, skip, whole, None)?.ok_or_else(long)?;
    let first = header::find(&data, skip, whole, &dialect, &file.name)?.ok_or_else(long)?;
    let width = header::width(&data[first], &dialect);
    let names = (1..=width).map(|n| format!("column_{n}")).collect();
    Ok(Start { dialect, names, data, rows, whole })
}

fn distinct(names: &[String], file: &str) -> Result<(), ConnectError> {
    let mut seen = std::collections::HashSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(ConnectError::new("R0211", format!("`{file}` has the column `{twice}` more than once"))
            .help("rename one of them in the file, or read it by position with `header: false, skip: 1`")),
        None => Ok(()),
    }
}

impl Start {
    /// Looks at the rows: `columns` pairs a guess with the file's column.
    fn look(&self, columns: &[(usize, usize)], nulls: &[u8], patterns: &Patterns, guesses: &mut [Guess]) {
        let rows = &self.data[self.rows..];
        // The last row of a sample may be cut off.
        let end =
            if self.whole { rows.len() } else { index::whole_rows(rows, &self.dialect).map_or(0, |whole| whole.end) };
        let rows = &rows[..end];
        let mut index = Index::default();
        index.build(rows, &self.dialect, self.names.len(), Ragged::Pad);
        let has_quotes = has_quotes(rows, &self.dialect);
        let mut places = Places::default();
        for &(guess, column) in columns {
            places.take(&index, column, column, None, self.dialect.delimiter.len());
            let cells = Cells::new(rows, places.column(column), &self.dialect, has_quotes);
            let guess = &mut guesses[guess];
            for row in 0..cells.len() {
                match cells.cell(row) {
                    Cell::Missing => guess.null = true,
                    Cell::Plain(text) if text == nulls => guess.null = true,
                    Cell::Plain(text) | Cell::Damaged(text) => {
                        guess.text(&String::from_utf8_lossy(text), Some(patterns))
                    }
                    Cell::Quoted(text) => guess.text(&String::from_utf8_lossy(&text), Some(patterns)),
                }
            }
        }
    }
}
