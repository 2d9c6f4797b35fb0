//! What text sinks share: encoders make bytes in the tasks, the sink appends them to its output. It may not know the format.

use std::sync::{Mutex, PoisonError};

use crate::files::{Begin, FileOutput, OutputOptions, open_output};
use crate::{ConnectError, Encoded, Encoder, OpenContext, Residue, Sealed, Sink, SinkSummary};

/// Makes an encoder for a task.
pub(crate) type MakeEncoder = Box<dyn Fn() -> Box<dyn Encoder> + Send + Sync>;

/// A sink that writes bytes one after another.
pub(crate) struct TextSink {
    make: MakeEncoder,
    /// Why it can't take rows back, if it can't.
    forgets: Option<String>,
    state: Mutex<State>,
}

struct State {
    output: Option<FileOutput>,
    rows: u64,
}

impl TextSink {
    /// Opens the output; `begin` says what comes before the rows.
    ///
    /// # Errors
    /// When it can't be opened, or what `begin` says.
    pub(crate) fn open(
        options: &OutputOptions,
        cx: &OpenContext,
        begin: Begin,
        make: MakeEncoder,
    ) -> Result<Self, ConnectError> {
        let output = open_output(options, cx.epochs.as_ref(), begin)?;
        let forgets = match &output {
            FileOutput::Plain(output) if !output.is_file() => {
                Some(format!("rows that were written to `{}` can't be taken back", output.name()))
            }
            _ => None,
        };
        Ok(TextSink { make, forgets, state: Mutex::new(State { output: Some(output), rows: 0 }) })
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
                    Encoded::Rows(_) | Encoded::Parts(_) => return Err(closed()),
                }
            }
            Encoded::Parts(_) => return Err(closed()),
        };
        let mut state = self.state();
        match state.output.as_mut().ok_or_else(closed)? {
            FileOutput::Plain(output) => output.put(&bytes)?,
            FileOutput::Growing(output) => output.put(&bytes, rows)?,
        }
        state.rows += rows;
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let mut state = self.state();
        if let Some(FileOutput::Growing(output)) = &mut state.output {
            let (rows, bytes) = output.finish()?;
            return Ok(SinkSummary { target: Some(output.name().to_string()), rows, bytes });
        }
        let Some(FileOutput::Plain(output)) = state.output.take() else { return Err(closed()) };
        let target = Some(output.name().to_string());
        let bytes = output.finish()?;
        Ok(SinkSummary { target, rows: state.rows, bytes })
    }

    fn abort(&self) {
        // Dropping an unfinished output removes it.
        if let Some(FileOutput::Growing(mut output)) = self.state().output.take() {
            output.abort();
        }
    }

    fn epochs(&self) -> Result<(), String> {
        self.forgets.clone().map_or(Ok(()), Err)
    }

    fn residue(&self) -> Residue {
        match &self.state().output {
            Some(FileOutput::Growing(output)) => output.residue,
            _ => Residue::default(),
        }
    }

    fn open_bytes(&self) -> u64 {
        match &self.state().output {
            Some(FileOutput::Growing(output)) => output.open_bytes(),
            _ => 0,
        }
    }

    fn seal(&self, number: u64) -> Result<Sealed, ConnectError> {
        match &mut self.state().output {
            Some(FileOutput::Growing(output)) => output.seal(number),
            _ => Err(closed()),
        }
    }

    fn apply(&self, _sealed: &Sealed) -> Result<(), ConnectError> {
        // The file appears at the end, whole.
        Ok(())
    }

    fn visible_at_end(&self) -> bool {
        matches!(&self.state().output, Some(FileOutput::Growing(_)))
    }
}
