//! SQLite: tables and queries of a file as sources, tables as sinks.

mod catalogue;
mod rows;
mod scratch;
mod sink;
mod source;
#[cfg(test)]
mod tests;
mod value;

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub(crate) use catalogue::{find_fields, find_names};
pub(crate) use scratch::copy_file;
pub(crate) use sink::open_sink;
pub(crate) use source::open_source;

use crate::ConnectError;
use crate::database::{CONSTRAINT, REFUSED, ReadFailure, UNREACHABLE, VALUE};

/// How long another connection's lock is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Also if it isn't there.
    Create,
}

/// Opens a file. What is in it is data: nothing of it is run but what a table's own triggers and constraints ask for.
///
/// # Errors
/// There is no such file, or it is no SQLite file.
pub(crate) fn open(path: &str, access: Access) -> Result<Connection, ConnectError> {
    let flags = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Access::Create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    if path.contains('\0') {
        return Err(ConnectError::new("R0202", "`path` of `sqlite` can't hold a NUL character"));
    }
    if access != Access::Create && !Path::new(path).exists() {
        return Err(ConnectError::new("R0203", format!("can't open `{path}`: there is no such file"))
            .help("`create: if_missing` of a sink makes it"));
    }
    if Path::new(path).is_dir() {
        return Err(ConnectError::new("R0204", format!("can't open `{path}`: it is a folder")));
    }
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| failed(path, &error))?;
    let set = || -> rusqlite::Result<()> {
        connection.busy_timeout(PATIENCE)?;
        // A name in double quotes is a name, and an error where there is none of it; SQLite would take it for a text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
        connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")?;
        if access != Access::Read {
            connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
        }
        // The first look at the file's content.
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
    };
    set().map_err(|error| failed(path, &error))?;
    Ok(connection)
}

/// What SQLite says, in our terms.
pub(crate) fn failed(path: &str, error: &rusqlite::Error) -> ConnectError {
    let text = match error {
        rusqlite::Error::SqliteFailure(code, message) => message.clone().unwrap_or_else(|| code.to_string()),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            ConnectError::new(UNREACHABLE, format!("`{path}` is locked by another program"))
        }
        Some(ErrorCode::DiskFull) => {
            ConnectError::new("R0206", format!("can't write `{path}`: no space is left on the disk"))
                .help("make room, or write to another disk")
        }
        Some(ErrorCode::NotADatabase) => ConnectError::new(REFUSED, format!("`{path}` is no SQLite file")),
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            ConnectError::new("R0204", format!("can't write `{path}`: this user has no right to it"))
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            ConnectError::new("R0205", format!("can't read or write `{path}`: {text}"))
        }
        Some(ErrorCode::ConstraintViolation) => ConnectError::new(CONSTRAINT, format!("`{path}`: {text}")),
        Some(ErrorCode::TypeMismatch | ErrorCode::TooBig) => ConnectError::new(VALUE, format!("`{path}`: {text}")),
        _ => ConnectError::new(REFUSED, format!("`{path}`: {text}")),
    }
}

/// The same while reading: a lock passes.
pub(crate) fn read_failed(path: &str, error: &rusqlite::Error) -> ReadFailure {
    failure(failed(path, error))
}

/// Whether another connection may do.
pub(crate) fn failure(error: ConnectError) -> ReadFailure {
    match error.code {
        UNREACHABLE => ReadFailure::Lost(error),
        _ => ReadFailure::Fatal(error),
    }
}
