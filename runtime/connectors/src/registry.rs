//! The connectors by name.

use dfc_ir::Schema;
use dfc_ir::plan::{SinkSpec, SourceSpec};

use crate::{ConnectError, OpenContext, Sink, Source};

pub(crate) fn open_source(spec: &SourceSpec, _cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    Err(unknown(&spec.connector))
}

pub(crate) fn open_sink(spec: &SinkSpec, _schema: &Schema, _cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    Err(unknown(&spec.connector))
}

fn unknown(connector: &str) -> ConnectError {
    ConnectError { code: "R0201", message: format!("this build has no connector `{connector}`"), help: None }
}
