//! A single Parquet file of a job with checkpoints (D12, F7). Such a file can't grow: its end lists what is in it. So each epoch is a file
//! of its own, hidden beside the target; at the end their row groups are copied, as they are, into one. It appears whole or not at all.
//!
//! The end has several steps, and any of them may be the last of a process: the note `….end` (length and check sum of the file that
//! appears) stands while the epochs' files are removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dfc_ir::Schema;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use serde::{Deserialize, Serialize};

use super::guard::guarded;
use super::lanes::Lanes;
use super::sink::{PassOn, failed, parts};
use crate::files::{
    Checked, Claim, Mode, Part, Spool, exists, folder_of, hidden_beside, holds, io_error, names_of, publish, remove,
    where_they_were,
};
use crate::text::sink::closed;
use crate::{ConnectError, Encoded, Encoder, Residue, Sealed, Sink, SinkEpochs, SinkSummary, SpoolFile};

/// Rows that a checkpoint holds are gone or damaged.
const LOST: &str = "R0218";

/// The sink.
pub(super) struct JoinedSink {
    name: String,
    target: PathBuf,
    mode: Mode,
    properties: WriterProperties,
    /// The names of hidden files begin so.
    prefix: String,
    note: PathBuf,
    whole: PathBuf,
    lanes: Arc<Lanes>,
    state: Mutex<State>,
    _claim: Claim,
}

struct State {
    spool: Option<Spool>,
    /// Closed parts in order.
    parts: Vec<Part>,
    life: Life,
    /// Rows of the open epoch.
    rows: u64,
}

/// What a checkpoint keeps beside the parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Life {
    /// The how manieth file of this lineage it is: after the end another run may go on and begin anew.
    number: u64,
    /// It has its final name.
    ended: bool,
    rows: u64,
    bytes: u64,
}

/// The file that appears.
#[derive(Serialize, Deserialize)]
struct End {
    bytes: u64,
    crc: u32,
    life: u64,
}

impl JoinedSink {
    /// Opens the file where the checkpoint has left it.
    pub(super) fn open(
        name: &str,
        mode: Mode,
        (target, claim): (PathBuf, Claim),
        schema: &Schema,
        properties: WriterProperties,
        epochs: &SinkEpochs,
        tasks: usize,
    ) -> Result<Self, ConnectError> {
        let fail = |e: io::Error| io_error("write", name, &e);
        let lineage: String = epochs.lineage.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
        let hidden = |more: &str| hidden_beside(&target, &format!("{lineage}{more}")).map_err(fail);
        let (note, whole) = (hidden(".end")?, hidden(".whole")?);
        let prefix = hidden("-")?.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sealed = epochs.resume.iter().flat_map(|resume| &resume.sealed);
        let mut lives = Vec::new();
        for sealed in sealed.clone() {
            let life: Life = serde_json::from_value(sealed.state.clone()).map_err(|_| {
                ConnectError::new(
                    LOST,
                    format!("rows for `{name}` are described in a way that this version doesn't know"),
                )
            })?;
            lives.push((life, sealed));
        }
        let life = lives.last().map(|(life, _)| life.clone()).unwrap_or_default();
        if lives.is_empty() && mode == Mode::Fail && target.exists() {
            return Err(exists(name));
        }
        let ours = lives.iter().filter(|(other, _)| other.number == life.number && !life.ended);
        let files: Vec<&SpoolFile> = ours.flat_map(|(_, sealed)| &sealed.files).collect();
        let keep = names_of(files.iter().copied());
        let lanes = Lanes::new(name, schema.len(), tasks);
        let make = parts(name, schema, properties.clone(), &lanes, None);
        let folder = folder_of(&target).to_path_buf();
        let spool = Spool::new(name, folder.clone(), prefix.clone(), u64::MAX, make, &keep)?;
        remove(&whole).map_err(fail)?;
        let part = |(file, name): (&&SpoolFile, &String)| {
            let path = folder.join(name);
            Part { partition: String::new(), path, bytes: file.to, crc: file.crc }
        };
        let parts = files.iter().zip(&keep).map(part).collect();
        let this = JoinedSink {
            name: name.into(),
            target,
            mode,
            properties,
            prefix,
            note,
            whole,
            lanes,
            state: Mutex::new(State { spool: Some(spool), parts, life, rows: 0 }),
            _claim: claim,
        };
        this.find_end(!lives.is_empty())?;
        Ok(this)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A task that panicked while writing ends the job: what is left is to abort.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self) -> impl Fn(io::Error) -> ConnectError + use<> {
        let name = self.name.clone();
        move |e| io_error("write", &name, &e)
    }

    fn lost(&self, why: &str) -> ConnectError {
        let beside = self.target.with_file_name(&self.prefix);
        ConnectError::new(LOST, format!("rows for `{}` that the checkpoint holds are {why}", self.name))
            .help(where_they_were(&format!("{}…", beside.display()), &self.target, &self.name))
    }

    /// Looks whether another process came to the end, or nearly.
    fn find_end(&self, resumed: bool) -> Result<(), ConnectError> {
        let fail = self.fail();
        let mut state = self.state();
        let noted: Option<End> = match fs::read(&self.note) {
            Ok(text) => serde_json::from_slice(&text).ok(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(fail(e)),
        };
        let missing = state.parts.iter().any(|part| !part.path.exists());
        // Without rows no part can be missing. That nothing stood there before was looked at when the job began.
        let empty = resumed && state.parts.is_empty() && self.mode == Mode::Fail;
        let ended = match &noted {
            Some(end) if end.life == state.life.number && !state.life.ended => {
                same_bytes(&self.target, end.bytes, end.crc).map_err(&fail)?
            }
            // All was removed, the note last.
            None if missing || empty => {
                let counted = state.life.rows;
                self.target.exists() && rows_in(&self.target).is_ok_and(|rows| rows == counted)
            }
            _ => false,
        };
        if ended {
            state.life.ended = true;
            self.clean(&mut state)?;
        } else if missing {
            return Err(self.lost("gone"));
        } else {
            for part in &state.parts {
                if fs::metadata(&part.path).map_err(&fail)?.len() != part.bytes {
                    return Err(self.lost("cut off"));
                }
                if !same_bytes(&part.path, part.bytes, part.crc).map_err(&fail)? {
                    return Err(self.lost("damaged"));
                }
            }
            remove(&self.note).map_err(&fail)?;
            if self.mode == Mode::Fail && !state.life.ended && self.target.exists() {
                return Err(exists(&self.name));
            }
        }
        Ok(())
    }

    /// Removes what is no longer needed after the end.
    fn clean(&self, state: &mut State) -> Result<(), ConnectError> {
        let fail = self.fail();
        for part in state.parts.drain(..) {
            remove(&part.path).map_err(&fail)?;
        }
        remove(&self.whole).and_then(|()| remove(&self.note)).map_err(fail)
    }

    /// Copies the row groups of all parts into one file. Gives its length and check sum.
    fn join(&self, parts: &[Part]) -> Result<(u64, u32), ConnectError> {
        let fail = self.fail();
        remove(&self.whole).map_err(&fail)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&self.whole).map_err(&fail)?;
        let copied = guarded(|| copy(parts, Checked::new(file, 0), &self.properties))
            .map_err(|why| ConnectError::new("R0205", format!("can't write `{}`: {why}", self.name)))?;
        let mut checked = copied.map_err(|e| failed(&self.name, e))?;
        let crc = checked.seal().map_err(&fail)?;
        Ok((checked.at(), crc))
    }
}

fn copy(parts: &[Part], out: Checked, properties: &WriterProperties) -> parquet::errors::Result<Checked> {
    let open = |path: &Path| -> parquet::errors::Result<(File, ArrowReaderMetadata)> {
        let file = File::open(path)?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        Ok((file, metadata))
    };
    // At least one: a file without rows has an empty part.
    let (_, first) = open(parts.first().map(|part| part.path.as_path()).unwrap_or(Path::new("")))?;
    let first = first.metadata().file_metadata();
    let properties = properties.clone().into_builder().set_key_value_metadata(first.key_value_metadata().cloned());
    let root = first.schema_descr().root_schema_ptr();
    let mut writer = SerializedFileWriter::new(out, root, Arc::new(properties.build()))?;
    for part in parts {
        let (file, metadata) = open(&part.path)?;
        for group in metadata.metadata().row_groups() {
            let mut copied = writer.next_row_group()?;
            for column in group.columns() {
                let close = ColumnCloseResult {
                    bytes_written: column.compressed_size().max(0) as u64,
                    rows_written: group.num_rows().max(0) as u64,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                copied.append_column(&file, close)?;
            }
            copied.close()?;
        }
    }
    writer.into_inner()
}

fn same_bytes(path: &Path, bytes: u64, crc: u32) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(meta) if meta.len() == bytes => holds(path, [(0, bytes, crc)]),
        Ok(_) => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn rows_in(path: &Path) -> Result<u64, ConnectError> {
    let file = crate::files::input_file(path)?;
    Ok(super::source::footer(&file)?.metadata().file_metadata().num_rows().max(0) as u64)
}

impl Sink for JoinedSink {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok(Box::new(PassOn(self.lanes.clone())))
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        if rows == 0 {
            return Ok(());
        }
        let mut state = self.state();
        if state.life.ended {
            if self.mode == Mode::Fail {
                return Err(exists(&self.name));
            }
            state.life = Life { number: state.life.number + 1, ..Life::default() };
        }
        state.spool.as_mut().ok_or_else(closed)?.write("", encoded)?;
        state.rows += rows;
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let fail = self.fail();
        let mut state = self.state();
        if !state.life.ended {
            let spool = state.spool.as_mut().ok_or_else(closed)?;
            let mut late = spool.seal()?;
            if late.is_empty() && state.parts.is_empty() {
                let spool = state.spool.as_mut().ok_or_else(closed)?;
                spool.empty()?;
                late = spool.seal()?;
            }
            state.parts.extend(late);
            state.life.rows += std::mem::take(&mut state.rows);
            let (from, (bytes, crc)) = match state.parts.as_slice() {
                [only] => (only.path.clone(), (only.bytes, only.crc)),
                parts => (self.whole.clone(), self.join(parts)?),
            };
            // Numbers under fixed names are always JSON.
            let note = serde_json::to_vec(&End { bytes, crc, life: state.life.number }).unwrap_or_default();
            let written = File::create(&self.note).and_then(|mut file| {
                file.write_all(&note)?;
                file.sync_all()
            });
            written.and_then(|()| publish(&from, &self.target, self.mode)).map_err(&fail)?;
            state.life.ended = true;
            state.life.bytes = bytes;
            self.clean(&mut state)?;
        }
        Ok(SinkSummary { target: Some(self.name.clone()), rows: state.life.rows, bytes: state.life.bytes })
    }

    fn abort(&self) {
        let mut state = self.state();
        if let Some(mut spool) = state.spool.take() {
            spool.abort();
        }
        // Nobody is left to be told.
        let _ = self.clean(&mut state);
    }

    fn epochs(&self) -> Result<(), String> {
        Ok(())
    }

    fn visible_at_end(&self) -> bool {
        true
    }

    fn residue(&self) -> Residue {
        self.state().spool.as_ref().map_or_else(Residue::default, |spool| spool.residue)
    }

    fn open_bytes(&self) -> u64 {
        self.state().spool.as_ref().map_or(0, Spool::bytes)
    }

    fn seal(&self, number: u64) -> Result<Sealed, ConnectError> {
        let mut state = self.state();
        let parts = state.spool.as_mut().ok_or_else(closed)?.seal()?;
        let rows = std::mem::take(&mut state.rows);
        let bytes = parts.iter().map(|part| part.bytes).sum();
        state.life.rows += rows;
        let file =
            |part: &Part| SpoolFile { path: part.path.display().to_string(), from: 0, to: part.bytes, crc: part.crc };
        let files = parts.iter().map(file).collect();
        state.parts.extend(parts);
        // Numbers under fixed names are always JSON.
        let life = serde_json::to_value(&state.life).unwrap_or_default();
        Ok(Sealed { number, rows, bytes, files, state: life })
    }

    fn apply(&self, _sealed: &Sealed) -> Result<(), ConnectError> {
        // The file appears at the end, whole.
        Ok(())
    }
}
