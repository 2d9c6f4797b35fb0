//! What can go wrong with checkpoints, each with its code, its place and what to do. It may not know how errors are shown.

use std::fmt;
use std::io;

/// A storage can't do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageError {
    /// What was given as storage isn't one, or can't be used as one.
    Location {
        /// As it was given.
        place: String,
        /// Why not: "it is a file".
        why: String,
        /// What would do.
        help: String,
    },
    /// There is no such object.
    Missing {
        /// Its place.
        place: String,
    },
    /// An object is larger than anything that belongs there.
    TooLarge {
        /// Its place.
        place: String,
        /// Most bytes that it may have.
        limit: u64,
    },
    /// There is no room left.
    Full {
        /// What couldn't be written.
        place: String,
        /// Why: "no space left on device", "quota …".
        why: String,
    },
    /// It can't create an object only if it is absent, so two runs could overwrite one another's checkpoints.
    NoCreate {
        /// The storage.
        place: String,
        /// What it said.
        why: String,
    },
    /// Anything else; it may pass.
    Failed {
        /// "can't write `…/parts/…`"
        doing: String,
        /// What the system or the service said.
        why: String,
    },
}

impl StorageError {
    /// An error of the file system, seen while `doing` something ("write", "read") with `place`.
    pub(crate) fn io(doing: &str, place: &std::path::Path, error: &io::Error) -> StorageError {
        let shown = place.display().to_string();
        let why = plain(error);
        match error.kind() {
            io::ErrorKind::NotFound => StorageError::Missing { place: shown },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StorageError::Full { place: shown, why }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotADirectory => {
                StorageError::Location {
                    place: shown,
                    why,
                    help: "name a folder that this user may write to, with `checkpoint { storage: \"…\" }`".into(),
                }
            }
            _ => StorageError::Failed { doing: format!("can't {doing} `{shown}`"), why },
        }
    }
}

/// What the system said, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Location { place, why, .. } => write!(f, "checkpoints can't be kept in `{place}`: {why}"),
            StorageError::Missing { place } => write!(f, "there is no `{place}`"),
            StorageError::TooLarge { place, limit } => {
                write!(f, "`{place}` is larger than the {limit} bytes that it may have")
            }
            StorageError::Full { place, why } => {
                write!(f, "there is no room for checkpoints: can't write `{place}`: {why}")
            }
            StorageError::NoCreate { place, why } => {
                write!(f, "`{place}` can't create an object only if it is absent: {why}")
            }
            StorageError::Failed { doing, why } => write!(f, "{doing}: {why}"),
        }
    }
}

impl std::error::Error for StorageError {}

/// Something that was stored isn't what was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The checkpoint's number, where it is known.
    pub number: Option<u64>,
    /// The file or object.
    pub place: String,
    /// What is wrong with it, with the bytes: "bytes 0 to 1,203 don't have the check sum of its last line".
    pub why: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "checkpoint {number} is damaged: `{}`: {}", self.place, self.why),
            None => write!(f, "`{}` is damaged: {}", self.place, self.why),
        }
    }
}

/// Why something with a job's checkpoints failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The storage.
    Storage(StorageError),
    /// The job is running already.
    Running {
        /// Its name.
        job: String,
        /// Who has it, if that could be read.
        holder: Option<crate::Holder>,
        /// The lock.
        place: String,
    },
    /// Something stored isn't what was stored.
    Damaged {
        /// What.
        damaged: Damaged,
        /// The newest older checkpoint whose manifest is whole.
        older: Option<u64>,
    },
    /// Another run has created the checkpoint of this number: this one must stop.
    Lost {
        /// The number.
        number: u64,
        /// The manifest that is there.
        place: String,
    },
    /// Written in a form that this version doesn't know.
    Newer {
        /// The file or object.
        place: String,
        /// Its version of the form.
        format: u64,
    },
    /// The checkpoints under this name are another job's.
    OtherJob {
        /// The file or object.
        place: String,
        /// Whose they are.
        theirs: String,
        /// Whose they should be.
        ours: String,
    },
    /// The job has come to its end with this checkpoint: there is nothing to go on with.
    Ended {
        /// The number.
        number: u64,
    },
    /// There is no such checkpoint.
    Unknown {
        /// The number.
        number: u64,
        /// Those that there are.
        known: Vec<u64>,
    },
}

impl Error {
    /// `R05xx`
    pub fn code(&self) -> &'static str {
        match self {
            Error::Storage(StorageError::Location { .. }) => "R0501",
            Error::Running { .. } => "R0502",
            Error::Damaged { .. } | Error::Storage(StorageError::TooLarge { .. }) => "R0503",
            Error::Lost { .. } => "R0504",
            Error::Storage(StorageError::Full { .. }) => "R0505",
            Error::Storage(StorageError::NoCreate { .. }) => "R0506",
            Error::Newer { .. } => "R0507",
            Error::OtherJob { .. } => "R0508",
            Error::Storage(StorageError::Failed { .. } | StorageError::Missing { .. }) => "R0509",
            Error::Unknown { .. } | Error::Ended { .. } => "R0510",
        }
    }

    /// What to do.
    pub fn help(&self) -> String {
        match self {
            Error::Storage(StorageError::Location { help, .. }) => help.clone(),
            Error::Running { .. } => "wait for it, or stop it; `dfc status FILE` shows how far it is".into(),
            Error::Damaged { older: Some(older), .. } => format!(
                "checkpoint {older} before it is whole: `dfc run FILE --allow-older` goes on from there where the targets allow it"
            ),
            Error::Damaged { .. } | Error::Storage(StorageError::TooLarge { .. }) => {
                "`dfc checkpoint verify FILE` looks at all of them; `dfc run FILE --fresh` starts without".into()
            }
            Error::Lost { .. } => "two runs of one job were going on, perhaps on two machines: this one has stopped, the other goes on".into(),
            Error::Storage(StorageError::Full { .. }) => {
                "make room, lower `retain`, raise `quota`, or remove savepoints with `dfc checkpoint prune FILE`; what is stored is whole".into()
            }
            Error::Storage(StorageError::NoCreate { .. }) => {
                "use a folder on a local disk, or an object store that honours `If-None-Match: *`".into()
            }
            Error::Newer { .. } => "use the dfc that wrote it, or a newer one".into(),
            Error::OtherJob { .. } => "give each job a name or a storage of its own".into(),
            Error::Storage(StorageError::Failed { .. } | StorageError::Missing { .. }) => {
                "see that the storage can be reached and that nobody else removes files in it, then run the job again".into()
            }
            Error::Ended { .. } => "run the job without `--from`: it is computed anew".into(),
            Error::Unknown { .. } => "`dfc checkpoint list FILE` shows those that there are".into(),
        }
    }

    /// Whether the same again may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Storage(StorageError::Failed { .. }))
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Error::Storage(error)
    }
}

impl From<Damaged> for Error {
    fn from(damaged: Damaged) -> Self {
        Error::Damaged { damaged, older: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Storage(error) => error.fmt(f),
            Error::Running { job, holder: Some(holder), .. } => {
                write!(f, "another run of job `{job}` is going on: process {} on {}", holder.pid, holder.host)
            }
            Error::Running { job, holder: None, place } => {
                write!(f, "another run of job `{job}` is going on: it has locked `{place}`")
            }
            Error::Damaged { damaged, .. } => damaged.fmt(f),
            Error::Lost { number, place } => {
                write!(f, "another run of this job has taken checkpoint {number}: `{place}` is there already")
            }
            Error::Newer { place, format } => {
                write!(
                    f,
                    "`{place}` was written by a newer dfc: its format is {format}, this one knows up to {}",
                    crate::manifest::FORMAT
                )
            }
            Error::OtherJob { place, theirs, ours } => {
                write!(f, "`{place}` is a checkpoint of job `{theirs}`, not of `{ours}`")
            }
            Error::Ended { number } => {
                write!(f, "the job has come to its end with checkpoint {number}: nothing is left to go on with")
            }
            Error::Unknown { number, known } if known.is_empty() => {
                write!(f, "there is no checkpoint {number}: the job has none")
            }
            Error::Unknown { number, known } => {
                let known: Vec<String> = known.iter().map(u64::to_string).collect();
                write!(f, "there is no checkpoint {number}; there are {}", known.join(", "))
            }
        }
    }
}

impl std::error::Error for Error {}
