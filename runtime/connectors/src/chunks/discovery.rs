//! Which files a text source reads: those that a path stands for and that are ready, by a declared rule; those of a checkpoint; and, where
//! a source follows, those that come later and what is added to known ones (F3, A1). It may not know what stands in them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{TextOptions, Tracked};
use crate::files::{FilePosition, Identity, InputFile, expand, glob_folder, input_file, io_error, other_file};
use crate::options::OptionReader;
use crate::{ConnectError, Positions};

/// How often is looked for more where nothing is said.
const POLL: Duration = Duration::from_secs(1);
/// How long a file must be left alone where nothing is said.
const AGE: Duration = Duration::from_secs(10);

/// When files may be read, and for how long is looked for more.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// It is looked for more, for ever, so often.
    pub follow: Option<Duration>,
    /// When a file may be read.
    pub ready: Ready,
}

/// When a file may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ready {
    /// At once: where it is followed, line by line as they are ended.
    AtOnce,
    /// When nobody has changed it for so long.
    Age(Duration),
    /// When a file of its name with this behind it is there.
    Marker(String),
    /// When its name doesn't end with this: whoever writes it renames it when it is whole.
    Suffix(String),
}

impl Watch {
    /// From a source's arguments.
    ///
    /// # Errors
    /// Arguments that don't belong together.
    pub(crate) fn read(options: &OptionReader) -> Result<Self, ConnectError> {
        let follow = options.flag("follow", false)?;
        let (poll, age) = (options.duration("poll")?, options.duration("age")?);
        let (marker, suffix) = (options.text("marker")?, options.text("suffix")?);
        let ready = match options.choice("ready", &[("any", 0), ("age", 1), ("marker", 2), ("suffix", 3)])? {
            1 => Ready::Age(age.unwrap_or(AGE)),
            2 => Ready::Marker(marker.unwrap_or(".done").to_string()),
            3 => Ready::Suffix(suffix.unwrap_or(".part").to_string()),
            _ => Ready::AtOnce,
        };
        let refuse = |message: &str, help: &str| Err(ConnectError::new("R0202", message).help(help));
        let is_no_end = |text: &str| text.is_empty() || text.contains(['/', '\0']);
        match &ready {
            Ready::AtOnce | Ready::Marker(_) | Ready::Suffix(_) if age.is_some() => {
                refuse("`age` says nothing here", "write `ready: age` too")
            }
            Ready::AtOnce | Ready::Age(_) | Ready::Suffix(_) if marker.is_some() => {
                refuse("`marker` says nothing here", "write `ready: marker` too")
            }
            Ready::AtOnce | Ready::Age(_) | Ready::Marker(_) if suffix.is_some() => {
                refuse("`suffix` says nothing here", "write `ready: suffix` too")
            }
            Ready::Marker(marker) if is_no_end(marker) => {
                refuse("`marker` is no end of a file's name", "write one such as `.done`")
            }
            Ready::Suffix(suffix) if is_no_end(suffix) => {
                refuse("`suffix` is no end of a file's name", "write one such as `.part`")
            }
            _ if poll.is_some() && !follow => refuse("`poll` says nothing here", "write `follow: true` too"),
            _ => Ok(Watch { follow: follow.then(|| poll.unwrap_or(POLL)), ready }),
        }
    }

    /// Whether lines are read as they are ended, though their file may grow.
    pub(super) fn by_lines(&self) -> bool {
        self.follow.is_some() && self.ready == Ready::AtOnce
    }

    /// The files that a path stands for now and that are ready.
    fn expand(&self, path: &str) -> Result<Vec<InputFile>, ConnectError> {
        let mut files = match expand(path) {
            // A folder that is watched may be empty yet.
            Err(error)
                if error.code == "R0203" && self.follow.is_some() && glob_folder(path).is_some_and(|f| f.is_dir()) =>
            {
                return Ok(Vec::new());
            }
            files => files?,
        };
        if self.follow.is_some()
            && let Some(pipe) = files.iter().find(|file| file.size.is_none())
        {
            return Err(ConnectError::new("R0202", format!("{} can't be followed", pipe.name))
                .help("it is read as it comes: leave `follow` out"));
        }
        files.retain(|file| self.is_ready(file));
        Ok(files)
    }

    fn is_ready(&self, file: &InputFile) -> bool {
        let (Some(path), Some(_)) = (&file.path, file.size) else { return true };
        match &self.ready {
            Ready::AtOnce => true,
            Ready::Age(age) => {
                let changed = std::fs::metadata(path).and_then(|meta| meta.modified());
                changed.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|since| since >= *age))
            }
            Ready::Marker(end) => {
                let mut marker = path.clone().into_os_string();
                marker.push(end);
                !file.name.ends_with(end.as_str()) && PathBuf::from(marker).exists()
            }
            Ready::Suffix(end) => !file.name.ends_with(end.as_str()),
        }
    }
}

/// The files of a source when it is opened.
///
/// # Errors
/// When one can't be read, or isn't the one that the checkpoint knows.
pub(super) fn first_files(
    path: &str,
    options: &TextOptions,
    positions: Option<&Positions>,
    continues: bool,
) -> Result<Vec<Tracked>, ConnectError> {
    let more = continues || options.watch.follow.is_some();
    let mut files = match positions {
        Some(positions) => known_files(positions, more)?,
        None => Vec::new(),
    };
    if more || positions.is_none() {
        add_new(&mut files, path, options)?;
    }
    Ok(files)
}

/// Adds the files that aren't known. `true`: there were some.
fn add_new(files: &mut Vec<Tracked>, path: &str, options: &TextOptions) -> Result<bool, ConnectError> {
    let known: HashSet<Arc<str>> = files.iter().map(|tracked| tracked.file.name.clone()).collect();
    let before = files.len();
    for file in options.watch.expand(path)?.into_iter().filter(|file| !known.contains(&file.name)) {
        if options.watch.by_lines() && !options.is_plain(&file) {
            return Err(ConnectError::new(
                "R0202",
                format!("`{}` can't be followed while it grows: it is compressed, or not in UTF-8", file.name),
            )
            .help("read it when it is whole: `ready: age` or `ready: marker`"));
        }
        let tracked = Tracked::found(file)?;
        let id = &tracked.at.file;
        if let Some(old) = files[..before].iter().find(|old| id.inode.is_some() && old.at.file.inode == id.inode)
            && old.at.file.start.bytes <= id.start.bytes
            && old.file.path.as_ref().is_none_or(|path| Identity::of(path).map_or(true, |now| now.inode != id.inode))
        {
            let why = format!("it was renamed to `{}`, and would be read twice", tracked.file.name);
            return Err(other_file(&old.file.name, &why));
        }
        files.push(tracked);
    }
    Ok(files.len() > before)
}

/// The files of a checkpoint, as far as they were read there; with `more` also what was added.
fn known_files(positions: &Positions, more: bool) -> Result<Vec<Tracked>, ConnectError> {
    let mut files = Vec::with_capacity(positions.splits.len());
    for split in &positions.splits {
        let at = FilePosition::from_value(&split.position, &split.split)?;
        let path = Path::new(&split.split);
        // What was read to its end and is gone by now isn't needed any more.
        if split.ended && !(more && path.exists()) {
            let file =
                InputFile { path: Some(path.into()), name: split.split.as_str().into(), size: Some(at.file.size) };
            files.push(Tracked { file, at, ended: true, looked: 0 });
            continue;
        }
        let mut file = input_file(path)?;
        let difference = at.file.difference(path).map_err(|e| io_error("read", &file.name, &e))?;
        if let Some(why) = difference {
            return Err(other_file(&file.name, &why));
        }
        if !more {
            file.size = Some(at.file.size);
        }
        let mut tracked = Tracked { file, at, ended: split.ended, looked: 0 };
        if more && tracked.file.size != Some(tracked.at.file.size) {
            tracked.grow()?;
        }
        files.push(tracked);
    }
    Ok(files)
}

/// Looks for new files, and for what was added to known ones. `true`: there is something.
///
/// # Errors
/// When one can't be read, or isn't the one that it was.
pub(super) fn look(files: &mut Vec<Tracked>, path: &str, options: &TextOptions) -> Result<bool, ConnectError> {
    let mut found = false;
    for tracked in files.iter_mut() {
        let Some(path) = tracked.file.path.clone() else { continue };
        // A file that is gone, perhaps for a moment, doesn't grow.
        let Ok(now) = Identity::of(&path) else { continue };
        let was = &tracked.at.file;
        if (now.size, now.inode, now.modified) == (was.size, was.inode, was.modified) {
            continue;
        }
        let name = tracked.file.name.clone();
        let difference = was.difference(&path).map_err(|e| io_error("read", &name, &e))?;
        if let Some(why) = difference {
            return Err(other_file(&name, &why));
        }
        if options.is_plain(&tracked.file) {
            tracked.at.text_before(&path, &name)?;
        }
        if now.size == was.size {
            tracked.at.file = now;
            continue;
        }
        let grown = InputFile { size: Some(now.size), ..tracked.file.clone() };
        if options.watch.is_ready(&grown) {
            tracked.file = grown;
            tracked.grow()?;
            found = true;
        }
    }
    Ok(add_new(files, path, options)? || found)
}

impl Tracked {
    /// A file that was found just now.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) fn found(file: InputFile) -> Result<Self, ConnectError> {
        let identity = match (&file.path, file.size) {
            // Whoever writes it may have gone on since its size was asked for.
            (Some(path), Some(size)) => Identity::of_first(path, size).map_err(|e| io_error("read", &file.name, &e))?,
            _ => Identity::default(),
        };
        let file = InputFile { size: file.size.map(|_| identity.size), ..file };
        let at = FilePosition { line: 1, file: identity, ..FilePosition::default() };
        Ok(Tracked { file, at, ended: false, looked: 0 })
    }

    /// Takes what was added to a file that was read before.
    fn grow(&mut self) -> Result<(), ConnectError> {
        let (Some(path), Some(size)) = (&self.file.path, self.file.size) else { return Ok(()) };
        self.at.file = Identity::of_first(path, size).map_err(|e| io_error("read", &self.file.name, &e))?;
        self.file.size = Some(self.at.file.size);
        self.ended = false;
        Ok(())
    }
}
