//! The fields that a source has outside, for pipelines that don't declare them: one plug-in a connector, in one table.
//!
//! What is found is deterministic: the same files give the same fields. Of text a sample of bounded size is read. A pipe or the
//! standard input is never read: what is taken from it would be missing in the run.

use std::io::Read;
use std::sync::Arc;

use dfc_ir::plan::{Options, SourceSpec};
use dfc_ir::{DataType, Field, Schema};

use crate::ConnectError;
use crate::files::{Compression, Encoding, InputFile, expand, io_error, open_input};
use crate::options::OptionReader;

/// Bytes of text that are read of a file.
const SAMPLE: usize = 1 << 20;
/// The most fields that are found in a text file.
const MAX_FIELDS: usize = 10_000;

/// Where a connector looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Files of this machine.
    Files,
    /// A service on the network.
    Network,
}

/// How a connector finds its fields.
pub(crate) struct Finder {
    /// The connector's name.
    pub connector: &'static str,
    /// Where it looks.
    pub reach: Reach,
    /// The fields, in the order they have outside.
    pub fields: fn(&OptionReader) -> Result<Schema, ConnectError>,
    /// The names of the columns alone, where these are known without a look at the rows.
    pub names: Option<fn(&OptionReader) -> Result<Vec<String>, ConnectError>>,
}

/// What can be asked for its fields. A connector to a database reads its catalogue here.
const FINDERS: &[Finder] = &[
    Finder {
        connector: "csv",
        reach: Reach::Files,
        fields: crate::csv::find_fields,
        names: Some(crate::csv::find_names),
    },
    Finder { connector: "jsonl", reach: Reach::Files, fields: crate::jsonl::find_fields, names: None },
    Finder {
        connector: "parquet",
        reach: Reach::Files,
        fields: crate::parquet::find_fields,
        names: Some(crate::parquet::find_names),
    },
    Finder {
        connector: "sqlite",
        reach: Reach::Files,
        fields: crate::sqlite::find_fields,
        names: Some(crate::sqlite::find_names),
    },
    Finder {
        connector: "postgres",
        reach: Reach::Network,
        fields: crate::postgres::find_fields,
        names: Some(crate::postgres::find_names),
    },
];

/// Where the fields of a connector are looked up; `None` where it has none of its own.
pub fn schema_reach(connector: &str) -> Option<Reach> {
    finder(connector).map(|finder| finder.reach)
}

/// The fields of a source as they are outside now, given its constant arguments.
///
/// # Errors
/// The connector has no fields of its own, or what it says.
pub fn find_schema(connector: &str, options: &Options) -> Result<Schema, ConnectError> {
    let Some(finder) = finder(connector) else {
        return Err(ConnectError::new("R0201", format!("`{connector}` has no fields of its own"))
            .help("declare them: `schema: record { id: int64, … }`"));
    };
    let schema = (finder.fields)(&OptionReader::new(connector, options))?;
    if schema.fields.len() > MAX_FIELDS {
        return Err(ConnectError::new("R0214", format!("{} fields are more than {MAX_FIELDS}", schema.fields.len()))
            .help("declare those that are needed: `schema: record { id: int64, … }`"));
    }
    Ok(schema)
}

/// The columns outside that a source's schema doesn't have: they are left out. Empty where that isn't known without a look at
/// the rows.
///
/// # Errors
/// What the connector says.
pub fn added_columns(spec: &SourceSpec) -> Result<Vec<String>, ConnectError> {
    let Some(names) = finder(&spec.connector).and_then(|finder| finder.names) else { return Ok(Vec::new()) };
    let mut names = names(&OptionReader::new(&spec.connector, &spec.options))?;
    names.retain(|name| spec.schema.fields.iter().all(|field| field.external_name() != name));
    Ok(names)
}

fn finder(connector: &str) -> Option<&'static Finder> {
    FINDERS.iter().find(|finder| finder.connector == connector)
}

/// The files whose start is looked at: the first, and the last where there are several. (Names often hold a date: then these are
/// the oldest and the newest.)
///
/// # Errors
/// There are none, or one can't be read twice.
pub(crate) fn sampled(path: &str) -> Result<Vec<InputFile>, ConnectError> {
    let mut files = expand(path)?;
    let last = if files.len() > 1 { files.pop() } else { None };
    files.truncate(1);
    files.extend(last);
    match files.iter().find(|file| file.size.is_none()) {
        Some(file) => Err(ConnectError::new("R0214", format!("{} can be read only once", file.name))
            .help("declare the fields: `schema: record { id: int64, … }`")),
        None => Ok(files),
    }
}

/// The start of a file as text, without a byte order mark, and whether that is all of it.
///
/// # Errors
/// When it can't be read.
pub(crate) fn sample(
    file: &InputFile,
    compression: Compression,
    encoding: Encoding,
) -> Result<(Vec<u8>, bool), ConnectError> {
    let input = open_input(file, compression, encoding, &Arc::default(), &Arc::default())?;
    let mut bytes = Vec::new();
    input.take(SAMPLE as u64 + 1).read_to_end(&mut bytes).map_err(|e| io_error("read", &file.name, &e))?;
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err(ConnectError::new("R0209", format!("`{}` is written in UTF-16", file.name))
            .help("convert it to UTF-8 first: `iconv -f UTF-16 -t UTF-8`"));
    }
    let whole = bytes.len() <= SAMPLE;
    bytes.truncate(SAMPLE);
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
    }
    Ok((bytes, whole))
}

/// A field named as outside. A name that the language can't write has a number instead, and its own as the outside name.
pub(crate) fn field(position: usize, outside: &str, ty: DataType) -> Field {
    let writable = !outside.is_empty() && !outside.contains(|c: char| c == '`' || c.is_control());
    match writable {
        true => Field::new(outside, ty),
        false => Field { external: Some(outside.into()), ..Field::new(format!("column_{}", position + 1), ty) },
    }
}
