//! The connectors by name.

use dfc_ir::Schema;
use dfc_ir::plan::{SinkSpec, SourceSpec};

use crate::{ConnectError, OpenContext, Sink, Source};

type OpenSource = fn(&SourceSpec, &OpenContext) -> Result<Box<dyn Source>, ConnectError>;
type OpenSink = fn(&SinkSpec, &Schema, &OpenContext) -> Result<Box<dyn Sink>, ConnectError>;

/// What can be read.
const SOURCES: &[(&str, OpenSource)] = &[
    ("csv", crate::csv::open_source),
    ("jsonl", crate::jsonl::open_source),
    ("parquet", crate::parquet::open_source),
    ("generate", crate::generate::open_source),
    ("sqlite", crate::sqlite::open_source),
    ("postgres", crate::postgres::open_source),
];

/// What can be written.
const SINKS: &[(&str, OpenSink)] = &[
    ("csv", crate::csv::open_sink),
    ("jsonl", crate::jsonl::open_sink),
    ("parquet", crate::parquet::open_sink),
    ("print", crate::print::open_sink),
    ("discard", crate::discard::open_sink),
    ("sqlite", crate::sqlite::open_sink),
    ("postgres", crate::postgres::open_sink),
];

pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    find(SOURCES, &spec.connector, "source")?(spec, cx)
}

pub(crate) fn open_sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    find(SINKS, &spec.connector, "sink")?(spec, schema, cx)
}

/// Whether a source looks at [`OpenContext::filter`].
pub fn filters(connector: &str) -> bool {
    matches!(connector, "csv" | "parquet")
}

fn find<T: Copy>(table: &[(&str, T)], name: &str, role: &str) -> Result<T, ConnectError> {
    table.iter().find(|(n, _)| *n == name).map(|(_, open)| *open).ok_or_else(|| {
        let names: Vec<String> = table.iter().map(|(n, _)| format!("`{n}`")).collect();
        ConnectError::new("R0201", format!("this build has no {role} `{name}`"))
            .help(format!("it has {}", names.join(", ")))
    })
}
