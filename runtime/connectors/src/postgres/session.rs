//! A session with a PostgreSQL server, used by one thread: every call waits for its answer. It knows the protocol's failures, not what
//! is asked for.

use std::future::Future;
use std::pin::pin;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, NoTls, Row};

use super::address::Address;
use super::tls::Tls;
use crate::ConnectError;
use crate::database::{CONSTRAINT, REFUSED, UNREACHABLE, VALUE};

/// What every session is told: values come and go in one form, wherever the server is.
const SETTINGS: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; \
    SET standard_conforming_strings = on; SET bytea_output = 'hex'; SET extra_float_digits = 1; SET statement_timeout = 0; \
    SET idle_in_transaction_session_timeout = 0;";
/// Readers change nothing.
const READING: &str = "SET default_transaction_read_only = on";
/// A commit that is reported is on the disk; a lock is not waited for for ever.
const WRITING: &str =
    "SET synchronous_commit = on; SET lock_timeout = '60s'; SET default_transaction_isolation = 'read committed'";

/// An open session. The connection is driven by whoever waits for an answer.
pub(crate) struct Session {
    runtime: Runtime,
    client: Client,
    /// The database, for messages.
    shown: String,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// The server is away, or doesn't let us in.
    pub(crate) fn open(address: &Address, writes: bool) -> Result<Session, ConnectError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ConnectError::new("R0205", format!("the network can't be used: {error}")))?;
        let tls = match address.tls {
            true => Some(Tls::new(address.root_certificates.as_deref())?),
            false => None,
        };
        let client = runtime.block_on(async {
            // A connection that breaks is reported by the call that needs it.
            match tls {
                Some(tls) => address.config.connect(tls).await.map(|(client, connection)| {
                    tokio::spawn(async { drop(connection.await) });
                    client
                }),
                None => address.config.connect(NoTls).await.map(|(client, connection)| {
                    tokio::spawn(async { drop(connection.await) });
                    client
                }),
            }
        });
        let client = client.map_err(|error| failed(&address.shown, &error))?;
        let session = Session { runtime, client, shown: address.shown.clone() };
        session.run(&format!("{SETTINGS} {}", if writes { WRITING } else { READING }))?;
        Ok(session)
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, ConnectError> {
        self.runtime.block_on(answer).map_err(|error| failed(&self.shown, &error))
    }

    /// Runs statements that give nothing.
    ///
    /// # Errors
    /// What the server says.
    pub(crate) fn run(&self, sql: &str) -> Result<(), ConnectError> {
        self.wait(self.client.batch_execute(sql))
    }

    /// Runs a statement; the number of rows it changed.
    ///
    /// # Errors
    /// What the server says.
    pub(crate) fn change(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64, ConnectError> {
        self.wait(self.client.execute(sql, parameters))
    }

    /// Asks.
    ///
    /// # Errors
    /// What the server says.
    pub(crate) fn ask(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, ConnectError> {
        self.wait(self.client.query(sql, parameters))
    }

    /// The columns of a query: name, type, modifier.
    ///
    /// # Errors
    /// What the server says.
    pub(crate) fn describe(&self, sql: &str) -> Result<Vec<(String, u32, i32)>, ConnectError> {
        let statement = self.wait(self.client.prepare(sql))?;
        let columns = statement.columns().iter();
        Ok(columns.map(|c| (c.name().to_string(), c.type_().oid(), c.type_modifier())).collect())
    }

    /// Reads what `COPY … TO STDOUT` gives, piece by piece, until `take` says no.
    ///
    /// # Errors
    /// What the server or `take` says.
    pub(crate) fn copy_out(
        &self,
        sql: &str,
        mut take: impl FnMut(Bytes) -> Result<bool, ConnectError>,
    ) -> Result<(), ConnectError> {
        let mut stream = pin!(self.wait(self.client.copy_out(sql))?);
        // While `take` waits nothing is received, and the server waits too.
        self.runtime.block_on(async {
            while let Some(piece) = stream.next().await {
                if !take(piece.map_err(|error| failed(&self.shown, &error))?)? {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Gives what `give` makes to `COPY … FROM STDIN`; an empty piece ends it. The number of rows.
    ///
    /// # Errors
    /// What the server or `give` says; then nothing was copied.
    pub(crate) fn copy_in(
        &self,
        sql: &str,
        mut give: impl FnMut(&mut Vec<u8>) -> Result<(), ConnectError>,
    ) -> Result<u64, ConnectError> {
        let mut sink = pin!(self.wait(self.client.copy_in::<_, Bytes>(sql))?);
        let mut piece = Vec::new();
        loop {
            give(&mut piece)?;
            if piece.is_empty() {
                break;
            }
            self.wait(sink.send(Bytes::from(std::mem::take(&mut piece))))?;
        }
        self.wait(sink.finish())
    }
}

/// States of the server that pass: it starts, stops, is full, or has given us up for another.
const PASSING: &[&str] = &["08", "53", "57", "58", "40"];

/// What a server says, in our terms.
pub(crate) fn failed(shown: &str, error: &Error) -> ConnectError {
    let Some(server) = error.as_db_error() else {
        let mut cause = std::error::Error::source(error);
        let mut text = error.to_string();
        while let Some(inner) = cause {
            let more = inner.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = inner.source();
        }
        return ConnectError::new(UNREACHABLE, format!("the database {shown} can't be reached: {text}"))
            .help("is the server running, and can it be reached from here?");
    };
    let message = match server.detail() {
        Some(detail) => format!("{}: {detail}", server.message()),
        None => server.message().to_string(),
    };
    let state = server.code();
    let passing = PASSING.iter().any(|class| state.code().starts_with(class))
        || *state == SqlState::LOCK_NOT_AVAILABLE
        || *state == SqlState::OBJECT_IN_USE;
    let code = match &state.code()[..2] {
        "23" => CONSTRAINT,
        "22" => VALUE,
        _ if passing && *state != SqlState::QUERY_CANCELED => UNREACHABLE,
        _ => REFUSED,
    };
    let place = server.where_().and_then(|place| place.lines().next()).filter(|_| code == CONSTRAINT || code == VALUE);
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let constraint = match server.constraint() {
        Some(name) if !message.contains(name) => format!(" [constraint `{name}`]"),
        _ => String::new(),
    };
    let error = ConnectError::new(code, format!("the database {shown} says: {message}{constraint}{place}"));
    match state {
        state if *state == SqlState::INVALID_PASSWORD || *state == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            error.help("check user and password where the secret is kept")
        }
        state if *state == SqlState::INSUFFICIENT_PRIVILEGE => error.help("grant the right, or use another user"),
        _ => error,
    }
}
