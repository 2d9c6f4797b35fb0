//! A folder of parts (D12, F7): parts are written in a hidden folder of the target, `.dfc-LINEAGE`, and moved into place, epoch by epoch;
//! the file `applied` there says how far. Moving what has been moved changes nothing, so an epoch can be applied again. It may not know the
//! format of the parts.
//!
//! The names of parts begin with the lineage, so that those of several jobs never meet in a folder: `part-0c3f9a51-0000000012-000.csv`.
//! `overwrite` removes the parts of others where the first part of this lineage appears: in the folder, or in a partition.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh64::xxh64;

use super::checked::holds;
use super::output::Mode;
use super::paths::{io_error, passing, refuse_nul};
use super::place::{Claim, make_folder, sync_folder};
use super::spool::{MakePart, Part, Spool, names_of};
use crate::text::sink::{MakeEncoder, closed};
use crate::{ConnectError, Encoded, Encoder, Ledger, OpenContext, Residue, Sealed, Sink, SinkSummary, SpoolFile};

/// Rows that a checkpoint holds are gone or damaged.
const LOST: &str = "R0218";
/// The file that says how far.
const MARKER: &str = "applied";

/// What is to be written where.
pub(crate) struct FolderOptions {
    /// The folder, as the user names it.
    pub path: String,
    /// What happens to parts that are there.
    pub mode: Mode,
    /// Bytes of a part, about.
    pub roll: u64,
    /// The end of the parts' names: `csv.gz`.
    pub extension: String,
    /// Whether rows lie in partitions.
    pub partitioned: bool,
}

/// The sink.
pub(crate) struct FolderSink {
    options: FolderOptions,
    folder: PathBuf,
    hidden: PathBuf,
    /// The first digits of the lineage.
    lineage: String,
    /// Without checkpoints everything is moved at the end, and nothing is left to go on from.
    epochs: bool,
    make: MakeEncoder,
    writing: Mutex<Writing>,
    /// Held while epochs are applied: beside writing.
    applying: Mutex<()>,
    _claim: Claim,
}

struct Writing {
    spool: Option<Spool>,
    rows: u64,
    /// Epochs that this process has sealed: their parts needn't be compared.
    own: BTreeSet<u64>,
    finished: Option<SinkSummary>,
}

/// How far epochs were applied.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Applied {
    number: u64,
    rows: u64,
    bytes: u64,
}

impl FolderSink {
    /// Opens the folder, which is made where it is missing.
    ///
    /// # Errors
    /// It can't be written, or holds what may not be replaced.
    pub(crate) fn open(
        options: FolderOptions,
        cx: &OpenContext,
        make: MakeEncoder,
        make_part: MakePart,
    ) -> Result<Self, ConnectError> {
        let fail = |e: io::Error| io_error("write", &options.path, &e);
        refuse_nul(&options.path)?;
        make_folder(options.path.as_ref()).map_err(fail)?;
        let folder = fs::canonicalize(&options.path).map_err(fail)?;
        let claim = Claim::new(&folder, &options.path)?;
        let resume = cx.epochs.as_ref().and_then(|epochs| epochs.resume.as_ref());
        if resume.is_none() {
            refuse_others(&options, &folder)?;
        }
        let lineage = match &cx.epochs {
            Some(epochs) => epochs.lineage.chars().filter(char::is_ascii_alphanumeric).take(12).collect(),
            None => made_up(&folder),
        };
        let hidden = folder.join(format!(".dfc-{lineage}"));
        let keep = names_of(resume.iter().flat_map(|resume| &resume.sealed).flat_map(|sealed| &sealed.files));
        make_folder(&hidden).map_err(fail)?;
        let spool = Spool::new(&options.path, hidden.clone(), String::new(), options.roll.max(1), make_part, &keep)?;
        let this = FolderSink {
            epochs: cx.epochs.is_some(),
            folder,
            hidden,
            lineage: lineage.chars().take(8).collect(),
            make,
            writing: Mutex::new(Writing { spool: Some(spool), rows: 0, own: BTreeSet::new(), finished: None }),
            applying: Mutex::new(()),
            _claim: claim,
            options,
        };
        if resume.is_none() {
            this.note(&Applied::default())?;
            sync_folder(&this.folder).map_err(this.fail())?;
        }
        Ok(this)
    }

    fn fail(&self) -> impl Fn(io::Error) -> ConnectError + use<> {
        let name = self.options.path.clone();
        move |e| io_error("write", &name, &e)
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        // A task that panicked while writing ends the job: what is left is to abort.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self, why: &str) -> ConnectError {
        ConnectError::new(LOST, format!("rows for `{}` that the checkpoint holds are {why}", self.options.path))
            .help(format!("they were in `{}`: bring it back, or start anew with `--fresh`", self.hidden.display()))
    }

    /// How far epochs were applied; `None`: nobody knows.
    fn applied(&self) -> Result<Option<Applied>, ConnectError> {
        match fs::read_to_string(self.hidden.join(MARKER)) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|_| self.lost("described in a damaged file")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.fail()(e)),
        }
    }

    fn note(&self, applied: &Applied) -> Result<(), ConnectError> {
        // Numbers under fixed names are always JSON.
        let text = serde_json::to_string(applied).unwrap_or_default();
        let (new, marker) = (self.hidden.join("applied.new"), self.hidden.join(MARKER));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &marker)?;
            sync_folder(&self.hidden)
        };
        write().map_err(self.fail())
    }

    /// Moves the parts of an epoch into place.
    fn place(&self, sealed: &Sealed, compare: bool) -> Result<(), ConnectError> {
        let fail = self.fail();
        let names: Vec<String> = serde_json::from_value(sealed.state["names"].clone()).unwrap_or_default();
        let sound = |name: &String| Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
        if names.len() != sealed.files.len() || !names.iter().all(sound) {
            return Err(self.lost("described in a way that this version doesn't know"));
        }
        let mut folders = BTreeSet::new();
        for ((file, spooled), name) in sealed.files.iter().zip(names_of(sealed.files.iter())).zip(&names) {
            let (from, to) = (self.hidden.join(spooled), self.folder.join(name));
            let folder = to.parent().unwrap_or(&self.folder).to_path_buf();
            make_folder(&folder).map_err(&fail)?;
            match fs::metadata(&from) {
                Ok(meta) if meta.len() != file.to => return Err(self.lost("cut off")),
                Ok(_) if compare && !holds(&from, [(file.from, file.to, file.crc)]).map_err(&fail)? => {
                    return Err(self.lost("damaged"));
                }
                Ok(_) => fs::rename(&from, &to).map_err(&fail)?,
                // It was moved before.
                Err(e) if e.kind() == io::ErrorKind::NotFound => match fs::metadata(&to) {
                    Ok(meta) if meta.len() == file.to => {}
                    _ => return Err(self.lost("gone")),
                },
                Err(e) => return Err(fail(e)),
            }
            folders.insert(folder);
        }
        for folder in &folders {
            if self.options.mode == Mode::Overwrite && !self.has_earlier(folder, sealed.number).map_err(&fail)? {
                self.remove_others(folder).map_err(&fail)?;
            }
            for folder in folder.ancestors().take_while(|folder| folder.starts_with(&self.folder)) {
                sync_folder(folder).map_err(&fail)?;
            }
        }
        Ok(())
    }

    /// Whether a folder has a part of this lineage from before an epoch.
    fn has_earlier(&self, folder: &Path, number: u64) -> io::Result<bool> {
        let ours = format!("part-{}-", self.lineage);
        let earlier = |name: &str| {
            let rest = name.strip_prefix(&ours)?;
            Some(rest.split('-').next()?.parse::<u64>().ok()? < number)
        };
        Ok(names_in(folder)?.iter().any(|name| earlier(name) == Some(true)))
    }

    /// Removes the parts of other lineages.
    fn remove_others(&self, folder: &Path) -> io::Result<()> {
        let ours = format!("part-{}-", self.lineage);
        for name in names_in(folder)?.iter().filter(|name| is_part(name) && !name.starts_with(&ours)) {
            super::growing::remove(&folder.join(name))?;
        }
        Ok(())
    }
}

/// A folder that is replaced, or must be empty, may not hold what somebody else has put there.
fn refuse_others(options: &FolderOptions, folder: &Path) -> Result<(), ConnectError> {
    let names = names_in(folder).map_err(|e| io_error("write", &options.path, &e))?;
    let mut visible = names.iter().filter(|name| !name.starts_with('.'));
    let found = match options.mode {
        Mode::Append => None,
        Mode::Fail => visible.next(),
        Mode::Overwrite => visible.find(|name| !(is_part(name) || options.partitioned && name.contains('='))),
    };
    let Some(found) = found else { return Ok(()) };
    let error = ConnectError::new("R0207", format!("`{}` holds `{found}` already", options.path));
    Err(match options.mode {
        Mode::Overwrite => {
            error.help("only parts that dfc has written are replaced: name another folder, or write `mode: append`")
        }
        _ => error.help("name another folder, or write `mode: overwrite` or `mode: append`"),
    })
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// `part-0c3f9a51-0000000012-000.csv`
fn is_part(name: &str) -> bool {
    let mut words = name.splitn(4, '-');
    let digits = |word: Option<&str>, least: usize| {
        word.is_some_and(|word| word.len() >= least && word.bytes().all(|b| b.is_ascii_digit()))
    };
    words.next() == Some("part")
        && words.next().is_some_and(|word| word.len() == 8 && word.bytes().all(|b| b.is_ascii_alphanumeric()))
        && digits(words.next(), 10)
        && digits(words.next().and_then(|rest| rest.split('.').next()), 3)
}

/// A lineage for a run that has none.
fn made_up(folder: &Path) -> String {
    let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let place = xxh64(folder.as_os_str().as_encoded_bytes(), u64::from(std::process::id()));
    format!("{:016x}", xxh64(&now.to_le_bytes(), place)).chars().take(12).collect()
}

impl Drop for FolderSink {
    fn drop(&mut self) {
        let writing = self.writing.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !self.epochs && writing.finished.is_none() {
            // Nobody is left to be told.
            let _ = fs::remove_dir_all(&self.hidden);
        }
    }
}

impl Sink for FolderSink {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok((self.make)())
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        let mut writing = self.writing();
        let spool = writing.spool.as_mut().ok_or_else(closed)?;
        match encoded {
            Encoded::Parts(parts) => {
                parts.into_iter().try_for_each(|(partition, encoded)| spool.write(&partition, encoded))?;
            }
            _ if rows == 0 => {}
            encoded => spool.write("", encoded)?,
        }
        writing.rows += rows;
        Ok(())
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        if let Some(summary) = &self.writing().finished {
            return Ok(summary.clone());
        }
        if !self.epochs {
            let sealed = self.seal(1)?;
            self.apply(&sealed)?;
        }
        let applied = self.applied()?.unwrap_or_default();
        let fail = self.fail();
        if self.options.mode == Mode::Overwrite && !self.options.partitioned {
            // Without a row there was no first part that replaced the others'.
            let ours = self.has_earlier(&self.folder, u64::MAX).map_err(&fail)?;
            if !ours {
                self.remove_others(&self.folder).map_err(&fail)?;
                sync_folder(&self.folder).map_err(&fail)?;
            }
        }
        if !self.epochs {
            fs::remove_dir_all(&self.hidden).map_err(&fail)?;
        }
        let summary = SinkSummary { target: Some(self.options.path.clone()), rows: applied.rows, bytes: applied.bytes };
        let mut writing = self.writing();
        if !self.epochs {
            writing.spool = None;
        }
        writing.finished = Some(summary.clone());
        Ok(summary)
    }

    fn abort(&self) {
        let mut writing = self.writing();
        if let Some(mut spool) = writing.spool.take() {
            spool.abort();
            // Nobody is left to be told.
            let _ = fs::remove_dir_all(&self.hidden);
        }
    }

    fn epochs(&self) -> Result<(), String> {
        Ok(())
    }

    fn residue(&self) -> Residue {
        self.writing().spool.as_ref().map_or_else(Residue::default, |spool| spool.residue)
    }

    fn open_bytes(&self) -> u64 {
        self.writing().spool.as_ref().map_or(0, Spool::bytes)
    }

    fn seal(&self, number: u64) -> Result<Sealed, ConnectError> {
        let mut writing = self.writing();
        let parts = writing.spool.as_mut().ok_or_else(closed)?.seal()?;
        let name = |(ordinal, part): (usize, &Part)| {
            let file = format!("part-{}-{number:010}-{ordinal:03}.{}", self.lineage, self.options.extension);
            if part.partition.is_empty() { file } else { format!("{}/{file}", part.partition) }
        };
        let names: Vec<String> = parts.iter().enumerate().map(name).collect();
        let file =
            |part: &Part| SpoolFile { path: part.path.display().to_string(), from: 0, to: part.bytes, crc: part.crc };
        writing.own.insert(number);
        Ok(Sealed {
            number,
            rows: std::mem::take(&mut writing.rows),
            bytes: parts.iter().map(|part| part.bytes).sum(),
            files: parts.iter().map(file).collect(),
            state: serde_json::json!({ "names": names }),
        })
    }

    fn apply(&self, sealed: &Sealed) -> Result<(), ConnectError> {
        // It protects nothing that could be half done.
        let _one = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the ledger is missing, whoever goes on has decided that nothing was applied.
        let applied = self.applied()?.unwrap_or_default();
        if applied.number >= sealed.number {
            return Ok(());
        }
        let own = self.writing().own.contains(&sealed.number);
        passing("parts-place")?;
        self.place(sealed, !own)?;
        passing("parts-placed")?;
        self.note(&Applied {
            number: sealed.number,
            rows: applied.rows + sealed.rows,
            bytes: applied.bytes + sealed.bytes,
        })
    }

    fn ledger(&self) -> Result<Ledger, ConnectError> {
        Ok(self.applied()?.map_or(Ledger::Missing, |applied| Ledger::Applied(applied.number)))
    }
}
