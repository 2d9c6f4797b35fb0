//! What text sinks share: encoders make bytes in the tasks, the sink appends them to its output. It may not know the format.

use std::sync::{Mutex, PoisonError};

use crate::files::Output;
use crate::{ConnectError, Encoded, Encoder, Sink, SinkSummary};

/// Makes an encoder for a task.
pub(crate) type MakeEncoder = Box<dyn Fn() -> Box<dyn Encoder> + Send + Sync>;

/// A sink that writes bytes one after another.
pub(crate) struct TextSink {
    make: MakeEncoder,
    state: Mutex<State>,
}

struct State {
    output: Option<Output>,
    rows: u64,
}

impl TextSink {
    /// Over an opened output, what comes before the rows already written.
    pub(crate) fn new(output: Output, make: MakeEncoder) -> Self {
        TextSink { make, state: Mutex::new(State { output: Some(output), rows: 0 }) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A task that panicked while writing ends the job: what is left is to abort.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a sink that is used after its end: a defect of the caller, said rather than hidden.
pub(crate) fn closed() -> ConnectError {
    ConnectError::new("R0499", "the sink is closed already")
        .help("this is a mistake in dfc, not in your pipeline: please report it")
}

impl Sink for TextSink {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok((self.make)())
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        let bytes = match encoded {
            Encoded::Bytes(bytes) => bytes,
            Encoded::Rows(batch) => {
                let mut errors = Vec::new();
                match (self.make)().encode(batch, &mut errors)?.0 {
                    Encoded::Bytes(bytes) => bytes,
                    Encoded::Rows(_) => return Err(closed()),
                }
            }
        };
        let mut state = self.state();
        state.output.as_mut().ok_or_else(closed)?.put(&bytes)?;
        state.rows += rows;
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let mut state = self.state();
        let output = state.output.take().ok_or_else(closed)?;
        let target = Some(output.name().to_string());
        let bytes = output.finish()?;
        Ok(SinkSummary { target, rows: state.rows, bytes })
    }

    fn abort(&self) {
        // Dropping an unfinished output removes it.
        self.state().output = None;
    }
}
