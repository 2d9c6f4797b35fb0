//! Where the engine gets its connectors from.

use dfc_connect::{ConnectError, OpenContext, Sink, Source};
use dfc_ir::Schema;
use dfc_ir::plan::{SinkSpec, SourceSpec};

/// Opens sources and sinks. [`Builtin`] has those of this build; an embedding program may bring its own.
pub trait ConnectorSet: Send + Sync {
    /// Opens a source.
    ///
    /// # Errors
    /// Unknown connector, or what the connector says.
    fn open_source(&self, spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError>;

    /// Opens a sink for rows of this schema.
    ///
    /// # Errors
    /// Unknown connector, or what the connector says.
    fn open_sink(&self, spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError>;

    /// Whether a sink can work in epochs, as far as that is known before it is opened. `Err`: why not, as the end of a sentence.
    fn takes_epochs(&self, spec: &SinkSpec) -> Result<(), String> {
        let _ = spec;
        Ok(())
    }
}

/// The connectors of `dfc-connect`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Builtin;

impl ConnectorSet for Builtin {
    fn open_source(&self, spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
        dfc_connect::open_source(spec, cx)
    }

    fn open_sink(&self, spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
        dfc_connect::open_sink(spec, schema, cx)
    }

    fn takes_epochs(&self, spec: &SinkSpec) -> Result<(), String> {
        dfc_connect::takes_epochs(spec)
    }
}
