//! A single file of a job with checkpoints (D12, F7): it grows under a hidden name beside its final one, `.NAME.dfc-LINEAGE.part`; a
//! checkpoint makes it durable and notes its length; whoever goes on compares it with what was noted and cuts it back to that. At the end it
//! is renamed: it appears whole or not at all. It may not know what is written.
//!
//! After the end another run of the same lineage may go on with new rows (`rerun: continue`, with `append`). For the file that is another
//! life, behind what the last one has left. Lives are numbered; what is sealed says to which it belongs. A file that each run replaces is
//! taken back when a run goes back to a checkpoint from before its end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checked::{Checked, holds};
use super::compressor::Compressor;
use super::output::{Mode, OutputOptions};
use super::paths::io_error;
use super::place::{Claim, copy_old, exists, folder_of, hidden_beside, publish, sync_folder};
use super::position::Identity;
use crate::{ConnectError, Residue, Sealed, SinkEpochs, SinkResume, SpoolFile};

/// Rows that a checkpoint holds are gone or damaged.
const LOST: &str = "R0218";

/// Gives what a file begins with, knowing whether there is content before.
pub(crate) type Begin = Box<dyn Fn(bool) -> Result<Vec<u8>, ConnectError> + Send + Sync>;

/// The file.
pub(crate) struct Growing {
    options: OutputOptions,
    target: PathBuf,
    part: PathBuf,
    begin: Begin,
    life: Life,
    writer: Option<Compressor<Checked>>,
    /// Where the open epoch begins, and its rows.
    sealed: u64,
    rows: u64,
    /// What was cut off when it was opened.
    pub(crate) residue: Residue,
    _claim: Claim,
}

/// What became of taking a target back.
enum Back {
    /// What was sealed stands under the hidden name again.
    Taken,
    /// The target is what was sealed, and stays.
    Whole,
    /// The target is another, or there is none.
    Gone,
}

/// What a checkpoint keeps of the file beside its length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Life {
    /// Its number.
    number: u64,
    /// It has come to its end: the file has its final name.
    ended: bool,
    /// Rows in all.
    rows: u64,
    /// What was there before and is added to.
    before: Option<Identity>,
}

impl Growing {
    /// Opens the file where the checkpoint has left it.
    pub(super) fn open(
        options: &OutputOptions,
        (target, claim): (PathBuf, Claim),
        epochs: &SinkEpochs,
        begin: Begin,
    ) -> Result<Self, ConnectError> {
        let lineage: String = epochs.lineage.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
        let part = hidden_beside(&target, &format!("{lineage}.part"));
        let mut this = Growing {
            part: part.map_err(|e| io_error("write", &options.path, &e))?,
            options: options.clone(),
            target,
            begin,
            life: Life::default(),
            writer: None,
            sealed: 0,
            rows: 0,
            residue: Residue::default(),
            _claim: claim,
        };
        match epochs.resume.as_ref().filter(|resume| !resume.sealed.is_empty()) {
            Some(resume) => this.go_on(resume)?,
            None => this.start()?,
        }
        Ok(this)
    }

    fn fail(&self) -> impl Fn(io::Error) -> ConnectError + use<> {
        let name = self.options.path.clone();
        move |e| io_error("write", &name, &e)
    }

    fn lost(&self, why: &str) -> ConnectError {
        ConnectError::new(LOST, format!("rows for `{}` that the checkpoint holds are {why}", self.options.path))
            .help(where_they_were(&self.part.display().to_string(), &self.target, &self.options.path))
    }

    /// Begins a life. Leaves nothing where that fails.
    fn start(&mut self) -> Result<(), ConnectError> {
        let started = self.try_start();
        if started.is_err() {
            // The first failure is the one to tell.
            let _ = remove(&self.part);
        }
        started
    }

    fn try_start(&mut self) -> Result<(), ConnectError> {
        let fail = self.fail();
        let name = &self.options.path;
        let compression = self.options.compression.resolve(name);
        let present = match fs::metadata(&self.target) {
            Ok(meta) => Some(meta),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(fail(e)),
        };
        if present.is_some() && self.options.mode == Mode::Fail {
            return Err(exists(name));
        }
        let adds = self.options.mode == Mode::Append && present.as_ref().is_some_and(|meta| meta.len() > 0);
        let start = (self.begin)(adds)?;
        // What lies there is this lineage's, and no checkpoint names it.
        remove(&self.part).map_err(&fail)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&self.part).map_err(&fail)?;
        let mut checked = Checked::new(file, 0);
        self.life = Life { number: self.life.number, ..Life::default() };
        if let Some(meta) = present {
            fs::set_permissions(&self.part, meta.permissions()).map_err(&fail)?;
            if adds {
                self.life.before = Some(Identity::of(&self.target).map_err(&fail)?);
                copy_old(&self.target, &mut checked, compression).map_err(&fail)?;
            }
        }
        let mut writer = Compressor::new(checked, compression);
        writer.write_all(&start).map_err(&fail)?;
        sync_folder(folder_of(&self.target)).map_err(&fail)?;
        (self.sealed, self.rows, self.writer) = (0, 0, Some(writer));
        Ok(())
    }

    /// Goes on where a checkpoint was.
    fn go_on(&mut self, resume: &SinkResume) -> Result<(), ConnectError> {
        let fail = self.fail();
        let life = |sealed: &Sealed| serde_json::from_value::<Life>(sealed.state.clone()).ok();
        let lives: Option<Vec<Life>> = resume.sealed.iter().map(life).collect();
        let Some((lives, last)) = lives.and_then(|lives| Some((lives.clone(), lives.last()?.clone()))) else {
            return Err(self.lost("described in a way that this version doesn't know"));
        };
        self.life = last;
        let ours = resume.sealed.iter().zip(&lives).filter(|(_, life)| life.number == self.life.number);
        let written: Vec<SpoolFile> = ours.flat_map(|(sealed, _)| sealed.files.clone()).collect();
        let mut end = 0;
        for file in &written {
            if file.from != end || file.to < file.from {
                return Err(self.lost("not told in order"));
            }
            end = file.to;
        }
        self.sealed = end;
        if self.life.ended {
            return remove(&self.part).map_err(fail);
        }
        let length = match fs::metadata(&self.part) {
            Ok(meta) => meta.len(),
            // The process died between the renaming and its end; or the job has come to its end since, and goes back.
            Err(e) if e.kind() == io::ErrorKind::NotFound => match self.take_back(&written).map_err(&fail)? {
                Back::Taken => end,
                Back::Whole => {
                    self.life.ended = true;
                    return Ok(());
                }
                Back::Gone => return Err(self.lost("gone")),
            },
            Err(e) => return Err(fail(e)),
        };
        if self.options.mode == Mode::Fail && self.target.exists() {
            if !same_file(&self.part, &self.target).map_err(&fail)? {
                return Err(exists(&self.options.path));
            }
            // It died between the link and the removal of the hidden name.
            self.life.ended = true;
            return remove(&self.part).map_err(fail);
        }
        if length < end {
            return Err(self.lost(&format!("cut off: {length} bytes are there of {end}")));
        }
        if !holds(&self.part, ranges(&written)).map_err(&fail)? {
            return Err(self.lost("damaged"));
        }
        let mut file = OpenOptions::new().write(true).open(&self.part).map_err(&fail)?;
        file.set_len(end).and_then(|()| file.sync_all()).map_err(&fail)?;
        if length > end {
            self.residue.add(length - end);
        }
        file.seek(SeekFrom::Start(end)).map_err(&fail)?;
        let compression = self.options.compression.resolve(&self.options.path);
        self.writer = Some(Compressor::new(Checked::new(file, end), compression));
        Ok(())
    }

    /// Takes the target back under the hidden name, as far as it was sealed. Only where each run replaces it: rows that are added stand
    /// behind those of others, which may have added more since.
    fn take_back(&self, written: &[SpoolFile]) -> io::Result<Back> {
        let length = match fs::metadata(&self.target) {
            Ok(meta) => meta.len(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Back::Gone),
            Err(e) => return Err(e),
        };
        if length < self.sealed || !holds(&self.target, ranges(written))? {
            return Ok(Back::Gone);
        }
        if self.options.mode != Mode::Overwrite {
            return Ok(if length == self.sealed { Back::Whole } else { Back::Gone });
        }
        // Under a third name first: what has the hidden one is complete.
        let copy = self.part.with_extension("back");
        let mut file = File::create(&copy)?;
        io::copy(&mut File::open(&self.target)?.take(self.sealed), &mut file)?;
        file.set_permissions(fs::metadata(&self.target)?.permissions())?;
        file.sync_all()?;
        fs::rename(&copy, &self.part)?;
        sync_folder(folder_of(&self.target))?;
        Ok(Back::Taken)
    }

    fn writer(&mut self) -> Result<&mut Compressor<Checked>, ConnectError> {
        if self.life.ended {
            self.life.number += 1;
            self.start()?;
        }
        // Only an ended life has no writer.
        self.writer.as_mut().ok_or_else(crate::text::sink::closed)
    }

    /// Writes rows.
    ///
    /// # Errors
    /// When they can't be written.
    pub(crate) fn put(&mut self, bytes: &[u8], rows: u64) -> Result<(), ConnectError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let fail = self.fail();
        self.writer()?.write_all(bytes).map_err(fail)?;
        self.rows += rows;
        Ok(())
    }

    /// Where the result will be, as the user would name it.
    pub(crate) fn name(&self) -> &str {
        &self.options.path
    }

    /// Bytes in the open epoch.
    pub(crate) fn open_bytes(&self) -> u64 {
        let checked = self.writer.as_ref().and_then(Compressor::get);
        checked.map_or(0, |checked| checked.at() - self.sealed)
    }

    /// Closes the open epoch.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn seal(&mut self, number: u64) -> Result<Sealed, ConnectError> {
        let fail = self.fail();
        let mut sealed =
            Sealed { number, rows: self.rows, bytes: 0, files: Vec::new(), state: serde_json::Value::Null };
        if let Some(writer) = &mut self.writer {
            let checked = writer.close(false).map_err(&fail)?;
            let crc = checked.seal().map_err(&fail)?;
            let (from, to) = (self.sealed, checked.at());
            sealed.bytes = to - from;
            sealed.files.push(SpoolFile { path: self.part.display().to_string(), from, to, crc });
            self.sealed = to;
        }
        self.life.rows += std::mem::take(&mut self.rows);
        // Numbers and texts under fixed names are always JSON.
        sealed.state = serde_json::to_value(&self.life).unwrap_or_default();
        Ok(sealed)
    }

    /// Gives the file its final name. Rows and bytes of it, without what was there before.
    ///
    /// # Errors
    /// When that can't be done; the final name is as it was before.
    pub(crate) fn finish(&mut self) -> Result<(u64, u64), ConnectError> {
        let fail = self.fail();
        let before = self.life.before.as_ref().map_or(0, |before| before.size);
        if let Some(writer) = &mut self.writer {
            let empty = writer.inner().map_err(&fail)?.at() == 0;
            let checked = writer.close(empty).map_err(&fail)?;
            checked.seal().map_err(&fail)?;
            self.sealed = checked.at();
            self.life.rows += std::mem::take(&mut self.rows);
            let changed = match &self.life.before {
                Some(before) => {
                    let now = Identity::of(&self.target).map_err(&fail)?;
                    (now.size, &now.start) != (before.size, &before.start)
                }
                // There was nothing that rows could be added to.
                None => {
                    self.options.mode == Mode::Append && fs::metadata(&self.target).is_ok_and(|meta| meta.len() > 0)
                }
            };
            if changed {
                return Err(ConnectError::new(
                    "R0219",
                    format!("`{}` was changed by another while rows were added to it", self.options.path),
                )
                .help("one job at a time can add to a file: give each its own, or start anew with `--fresh`"));
            }
            publish(&self.part, &self.target, self.options.mode).map_err(&fail)?;
            self.writer = None;
            self.life.ended = true;
        }
        Ok((self.life.rows, self.sealed.saturating_sub(before)))
    }

    /// Removes what isn't visible.
    pub(crate) fn abort(&mut self) {
        self.writer = None;
        self.life.ended = true;
        // Nobody is left to be told.
        let _ = remove(&self.part).and_then(|()| remove(&self.part.with_extension("back")));
    }
}

/// What to do about lost rows of a file.
pub(crate) fn where_they_were(hidden: &str, target: &Path, name: &str) -> String {
    let finished = match Path::new(hidden).exists() || !target.exists() {
        true => String::new(),
        false => format!(" (if `{name}` was finished since, there is no way back to this checkpoint)"),
    };
    format!("they were in `{hidden}`: bring it back{finished}, or start anew with `--fresh`")
}

fn ranges(files: &[SpoolFile]) -> impl Iterator<Item = (u64, u64, u32)> + '_ {
    files.iter().map(|file| (file.from, file.to, file.crc))
}

/// Removes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn same_file(a: &Path, b: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let node = |path| File::open(path)?.metadata().map(|meta| (meta.dev(), meta.ino()));
    Ok(node(a)? == node(b)?)
}

#[cfg(not(unix))]
fn same_file(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}
