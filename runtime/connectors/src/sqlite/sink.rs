//! The SQLite sink: rows are spooled as values and inserted by one prepared statement in one transaction an epoch.

use std::sync::Arc;

use dfc_batch::{Batch, RowError, value_at};
use dfc_ir::plan::SinkSpec;
use dfc_ir::{Field, Schema, Type, Value};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, TransactionBehavior};

use super::catalogue::{self, identifier, table};
use super::{Access, failed, open, rows};
use crate::database::{
    CONSTRAINT, Class, DatabaseSink, Fit, LedgerRow, Load, Loaded, MODES, Mode, Owner, REFUSED, Session, Target,
    TargetOptions, UNFIT, VALUE, check, delete_mark, fits, mark_last, match_columns, quoted, unmarked, upsert_key,
};
use crate::options::OptionReader;
use crate::rows::shown;
use crate::{ConnectError, Encoded, Encoder, OpenContext, Sink};

/// Digits that a number column keeps.
const DIGITS: u32 = 15;

/// The ledger.
const LEDGER: &str = "CREATE TABLE IF NOT EXISTS _dfc_ledger (
    lineage TEXT NOT NULL, sink TEXT NOT NULL, lane INTEGER NOT NULL, job TEXT NOT NULL, target TEXT NOT NULL,
    n INTEGER NOT NULL, row_count INTEGER NOT NULL, finished BOOLEAN NOT NULL, PRIMARY KEY (lineage, sink, lane))";

/// Opens it.
pub(crate) fn open_sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    let options = OptionReader::new("sqlite", &spec.options);
    let path = options.required("path")?.to_string();
    let name = options.required("table")?.to_string();
    let mode = options.choice("mode", &MODES)?;
    let create = options.choice("create", &[("never", false), ("if_missing", true)])?;
    let key = upsert_key(&options, mode, schema)?;
    let mark = delete_mark(&options, mode, schema, &key)?;
    let schema = &unmarked(schema, mark);
    quoted(&name)?;
    for field in &schema.fields {
        quoted(field.external_name())?;
    }
    let connection = open(&path, if create { Access::Create } else { Access::Write })?;
    let found = table(&connection, &path, &name)?;
    let checks = match &found {
        Some(table) => {
            let at = match_columns(&format!("the table `{name}` in `{path}`"), schema, &table.columns)?;
            at.iter().zip(&schema.fields).map(|(at, field)| checked(&field.ty.ty, &table.columns[*at].class)).collect()
        }
        None if create => schema.fields.iter().map(|field| checked(&field.ty.ty, &made(&field.ty.ty).1)).collect(),
        None => {
            return Err(ConnectError::new(REFUSED, format!("`{path}` has no table `{name}`"))
                .help("create it, or write `create: if_missing`"));
        }
    };
    let table = Arc::new(Table {
        path,
        name,
        schema: schema.clone(),
        mode,
        key,
        mark,
        create: create && found.is_none(),
        checks,
    });
    let session = Writing { connection, table: table.clone() };
    if found.is_some() {
        // A statement that can't be prepared is refused now: a key without a unique index, say.
        let sql = table.insert(&table.name);
        session.connection.prepare(&sql).map_err(|error| session.refused(&error))?;
    }
    let options = TargetOptions { mode, create: table.create, lanes: 1, rate: options.count("rate")? };
    Ok(Box::new(DatabaseSink::open(Box::new(File { table }), Box::new(session), options, cx)?))
}

/// The columns' kinds whose values are looked at one by one.
fn checked(ty: &Type, class: &Class) -> Option<Class> {
    let digits = matches!((ty, class), (Type::Decimal(p, _), Class::Decimal(_)) if u32::from(*p) > DIGITS);
    let unsigned = matches!((ty, class), (Type::Int(int), Class::Any) if (*int).max() > i64::MAX.into());
    match fits(ty, class) {
        _ if unsigned => Some(Class::Int(64)),
        Fit::Exact if !digits => None,
        _ => Some(class.clone()),
    }
}

/// The declared type of a column that is made for a type, and its kind.
fn made(ty: &Type) -> (String, Class) {
    let declared = match ty {
        Type::Bool => "BOOLEAN".into(),
        Type::Int(_) => "INTEGER".into(),
        Type::Float32 | Type::Float64 => "REAL".into(),
        Type::Decimal(p, s) if u32::from(*p) <= DIGITS => format!("DECIMAL({p}, {s})"),
        Type::Bytes => "BLOB".into(),
        Type::Date => "DATE".into(),
        Type::Time => "TIME".into(),
        Type::DateTime => "DATETIME".into(),
        Type::Timestamp => "TIMESTAMP".into(),
        // A word of text in it, so that `5` stays a text.
        Type::Json | Type::List(_) | Type::Record(_) => "JSON TEXT".into(),
        _ => "TEXT".into(),
    };
    let class = catalogue::class(&declared);
    (declared, class)
}

/// The table that is written.
struct Table {
    path: String,
    name: String,
    schema: Schema,
    mode: Mode,
    /// Columns.
    key: Vec<String>,
    /// Where the field stands that says which rows are removed; in the spool it is the last one.
    mark: Option<usize>,
    /// It has to be made.
    create: bool,
    checks: Vec<Option<Class>>,
}

impl Table {
    fn columns(&self) -> Vec<String> {
        self.schema.fields.iter().map(|field| identifier(field.external_name())).collect()
    }

    fn insert(&self, into: &str) -> String {
        let columns = self.columns();
        let marks = vec!["?"; columns.len()].join(", ");
        let mut sql = format!("INSERT INTO {} ({}) VALUES ({marks})", identifier(into), columns.join(", "));
        if self.mode == Mode::Upsert {
            let key: Vec<String> = self.key.iter().map(|name| identifier(name)).collect();
            let others: Vec<String> =
                columns.iter().filter(|c| !key.contains(c)).map(|c| format!("{c} = excluded.{c}")).collect();
            let action = if others.is_empty() { "NOTHING".into() } else { format!("UPDATE SET {}", others.join(", ")) };
            sql.push_str(&format!(" ON CONFLICT ({}) DO {action}", key.join(", ")));
        }
        sql
    }

    /// Removes the row of a key.
    fn removal(&self) -> String {
        let key: Vec<String> = self.key.iter().map(|name| format!("{} = ?", identifier(name))).collect();
        format!("DELETE FROM {} WHERE {}", identifier(&self.name), key.join(" AND "))
    }

    fn definition(&self) -> String {
        let column = |field: &Field| {
            let null = if field.ty.nullable { "" } else { " NOT NULL" };
            format!("{} {}{null}", identifier(field.external_name()), made(&field.ty.ty).0)
        };
        let mut parts: Vec<String> = self.schema.fields.iter().map(column).collect();
        if !self.key.is_empty() {
            let key: Vec<String> = self.key.iter().map(|name| identifier(name)).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        format!("CREATE TABLE IF NOT EXISTS {} ({})", identifier(&self.name), parts.join(", "))
    }
}

struct File {
    table: Arc<Table>,
}

impl Target for File {
    fn describe(&self) -> String {
        format!("{} (table {})", self.table.path, self.table.name)
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Spooling { table: self.table.clone() })
    }

    fn connect(&self) -> Result<Box<dyn Session>, ConnectError> {
        let connection = open(&self.table.path, Access::Write)?;
        Ok(Box::new(Writing { connection, table: self.table.clone() }))
    }
}

struct Spooling {
    table: Arc<Table>,
}

impl Encoder for Spooling {
    fn encode(&mut self, batch: Batch, errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let fields = &self.table.schema.fields;
        let batch = mark_last(batch, self.table.mark);
        let marks = self.table.mark.and(batch.columns.last());
        let mut out = Vec::with_capacity(batch.rows * (fields.len() * 9));
        let mut written = 0;
        'rows: for row in 0..batch.rows {
            let start = out.len();
            for ((field, array), class) in fields.iter().zip(&batch.columns).zip(&self.table.checks) {
                let ty = &field.ty.ty;
                let value = value_at(array, ty, row);
                if let Some(class) = class
                    && let Err(rule) = takes(&value, ty, class)
                {
                    out.truncate(start);
                    errors.push(RowError {
                        place: batch.origin.as_ref().map(|origin| origin.place(row)),
                        raw: batch.origin.as_ref().and_then(|origin| origin.raw(row)),
                        field: Some(field.external_name().to_string()),
                        value: Some(shown(dfc_eval::format_value(&value, ty).as_bytes())),
                        ..RowError::new(UNFIT, rule)
                    });
                    continue 'rows;
                }
                rows::push(&mut out, &value, ty);
            }
            if let Some(marks) = marks {
                rows::push(&mut out, &value_at(marks, &Type::Bool, row), &Type::Bool);
            }
            written += 1;
        }
        Ok((Encoded::Bytes(out), written))
    }
}

fn takes(value: &Value, ty: &Type, class: &Class) -> Result<(), String> {
    check(value, ty, class)?;
    match (value, class) {
        (Value::Decimal(mantissa), Class::Decimal(_)) if mantissa.unsigned_abs() >= 10u128.pow(DIGITS) => {
            Err(format!("SQLite keeps {DIGITS} digits of a number; a column of the type TEXT keeps all"))
        }
        _ => Ok(()),
    }
}

struct Writing {
    connection: Connection,
    table: Arc<Table>,
}

impl Writing {
    fn refused(&self, error: &rusqlite::Error) -> ConnectError {
        let failed = failed(&self.table.path, error);
        match failed.message.contains("ON CONFLICT clause does not match") {
            true => ConnectError::new(
                REFUSED,
                format!(
                    "no unique key of `{}` in `{}` is {}",
                    self.table.name,
                    self.table.path,
                    crate::database::listed(&self.table.key)
                ),
            )
            .help("`CREATE UNIQUE INDEX` over these columns, or name the fields of the key that is there"),
            false => failed,
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> ConnectError {
        failed(&self.table.path, error)
    }

    /// A row that the table doesn't take.
    fn row_refused(&self, error: &rusqlite::Error, load: &Load, row: u64, values: &[ValueRef]) -> ConnectError {
        let plain = failed(&self.table.path, error);
        if plain.code != CONSTRAINT && plain.code != VALUE {
            return plain;
        }
        let text = match error {
            rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
            other => other.to_string(),
        };
        let show = |value: &ValueRef| match value {
            ValueRef::Null => "null".to_string(),
            ValueRef::Integer(n) => n.to_string(),
            ValueRef::Real(x) => x.to_string(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => format!("`{}`", shown(bytes)),
        };
        // SQLite names the columns after a colon; otherwise the first ones tell the row.
        let named = |name: &str| {
            text.split_once(": ")
                .is_some_and(|(_, list)| list.split(", ").any(|column| column.rsplit('.').next() == Some(name)))
        };
        let names = self.table.schema.fields.iter().map(|field| field.external_name()).zip(values);
        let mut key: Vec<String> =
            names.clone().filter(|(name, _)| named(name)).map(|(name, v)| format!("{name} = {}", show(v))).collect();
        if key.is_empty() {
            key = names.take(3).map(|(name, v)| format!("{name} = {}", show(v))).collect();
        }
        let epoch = load.ledger.as_ref().map(|step| format!(" of epoch {}", step.to)).unwrap_or_default();
        ConnectError::new(
            plain.code,
            format!("`{}` in `{}` refuses row {row}{epoch} ({}): {text}", self.table.name, self.table.path, key.join(", ")),
        )
        .help("the rows of this epoch are kept, and nothing of them is in the table: correct the table or the constraint and run the job again, or leave such rows out before the sink")
    }

    fn insert(&self, load: &mut Load, into: &str) -> Result<(), ConnectError> {
        let columns = self.table.schema.len();
        let width = columns + usize::from(self.table.mark.is_some());
        let mut insert = self.connection.prepare(&self.table.insert(into)).map_err(|error| self.refused(&error))?;
        let mut remove = match self.table.mark {
            Some(_) => Some(self.connection.prepare(&self.table.removal()).map_err(|error| self.failed(&error))?),
            None => None,
        };
        let of_key = |name: &String| self.table.schema.fields.iter().position(|field| field.external_name() == name);
        let key: Vec<usize> = self.table.key.iter().filter_map(of_key).collect();
        let (mut piece, mut bytes): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut row = 0;
        loop {
            load.rows.piece(&mut piece)?;
            if piece.is_empty() {
                break;
            }
            bytes.extend_from_slice(&piece);
            let mut rest = bytes.as_slice();
            let before = row;
            let mut values = Vec::with_capacity(width);
            let mut given: Vec<ValueRef> = Vec::with_capacity(width);
            loop {
                let start = rest;
                values.clear();
                values.extend((0..width).map_while(|_| rows::take(&mut rest)));
                if values.len() < width || start.is_empty() {
                    rest = start;
                    break;
                }
                row += 1;
                let marked = values.get(columns).is_some_and(|mark| matches!(mark, ValueRef::Integer(1)));
                given.clear();
                let statement = match remove.as_mut().filter(|_| marked) {
                    Some(remove) => {
                        given.extend(key.iter().map(|at| values[*at]));
                        remove
                    }
                    None => {
                        given.extend_from_slice(&values[..columns]);
                        &mut insert
                    }
                };
                for (at, value) in given.iter().enumerate() {
                    statement
                        .raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(*value))
                        .map_err(|error| self.failed(&error))?;
                }
                if let Err(error) = statement.raw_execute() {
                    return Err(self.row_refused(&error, load, row, &values));
                }
            }
            let left = rest.len();
            drop((values, given));
            bytes.drain(..bytes.len() - left);
            load.throttle.pass(row - before);
        }
        match bytes.is_empty() {
            true => Ok(()),
            false => Err(ConnectError::new(crate::database::SPOOL, "the spool ends in the middle of a row")),
        }
    }

    /// Does something in a transaction that holds the file's write lock from its start.
    fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<Option<T>, ConnectError>,
    ) -> Result<Option<T>, ConnectError> {
        self.connection.set_transaction_behavior(TransactionBehavior::Immediate);
        self.run("BEGIN IMMEDIATE")?;
        match work(self) {
            Ok(Some(done)) => match self.run("COMMIT") {
                Ok(()) => Ok(Some(done)),
                Err(error) => {
                    let _ = self.run("ROLLBACK");
                    Err(error)
                }
            },
            other => {
                // A failure of the work is told; that the transaction is gone already is no news.
                let _ = self.run("ROLLBACK");
                other
            }
        }
    }

    fn run(&self, sql: &str) -> Result<(), ConnectError> {
        self.connection.execute_batch(sql).map_err(|error| self.failed(&error))
    }

    fn has(&self, table: &str) -> Result<bool, ConnectError> {
        self.connection
            .query_row("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1)", [table], |row| row.get(0))
            .map_err(|error| self.failed(&error))
    }

    fn stage(&self, staging: &str) -> Result<(), ConnectError> {
        let (columns, name) = (self.table.columns().join(", "), identifier(&self.table.name));
        self.run(&format!("CREATE TABLE IF NOT EXISTS {} AS SELECT {columns} FROM {name} WHERE 0", identifier(staging)))
    }
}

impl Session for Writing {
    fn entries(&mut self, owner: &Owner) -> Result<Vec<LedgerRow>, ConnectError> {
        if !self.has("_dfc_ledger")? {
            return Ok(Vec::new());
        }
        let ask = || -> rusqlite::Result<Vec<LedgerRow>> {
            let sql = "SELECT lineage, lane, n, row_count, finished FROM _dfc_ledger
                WHERE sink = ?1 AND (lineage = ?2 OR job = ?3 AND target = ?4) ORDER BY lineage, lane";
            let row = |row: &rusqlite::Row| {
                Ok(LedgerRow {
                    lineage: row.get(0)?,
                    lane: row.get(1)?,
                    n: row.get::<_, i64>(2)?.unsigned_abs(),
                    rows: row.get::<_, i64>(3)?.unsigned_abs(),
                    finished: row.get(4)?,
                })
            };
            let who = (&owner.sink, &owner.lineage, &owner.job, &self.table.name);
            self.connection.prepare(sql)?.query_map(who, row)?.collect()
        };
        ask().map_err(|error| self.failed(&error))
    }

    fn prepare(&mut self, owner: &Owner, lanes: u32) -> Result<(), ConnectError> {
        self.transaction(|this| {
            if this.table.create {
                this.run(&this.table.definition())?;
            }
            this.run(LEDGER)?;
            for lane in 0..lanes {
                let entry = (&owner.lineage, &owner.sink, lane, &owner.job, &this.table.name);
                let sql = "INSERT INTO _dfc_ledger VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, FALSE)";
                this.connection.execute(sql, entry).map_err(|error| this.failed(&error))?;
            }
            if let Some(staging) = &owner.staging {
                this.stage(staging)?;
            }
            Ok(Some(()))
        })
        .map(drop)
    }

    fn load(&mut self, mut load: Load) -> Result<Loaded, ConnectError> {
        let done = self.transaction(|this| {
            if load.create {
                this.run(&this.table.definition())?;
            }
            let mut into = this.table.name.clone();
            if let Some(step) = load.ledger {
                let sql = "UPDATE _dfc_ledger SET n = ?1, row_count = row_count + ?2, finished = FALSE
                    WHERE lineage = ?3 AND sink = ?4 AND lane = ?5 AND n = ?6";
                let who = (
                    step.to as i64,
                    step.rows as i64,
                    &step.owner.lineage,
                    &step.owner.sink,
                    step.lane,
                    step.from as i64,
                );
                let moved = this.connection.execute(sql, who).map_err(|error| this.failed(&error))?;
                if moved != 1 {
                    return Ok(None);
                }
                if let Some(staging) = &step.owner.staging {
                    this.stage(staging)?;
                    into.clone_from(staging);
                }
            }
            if load.clear {
                this.run(&format!("DELETE FROM {}", identifier(&this.table.name)))?;
            }
            this.insert(&mut load, &into)?;
            Ok(Some(()))
        })?;
        Ok(if done.is_some() { Loaded::Done } else { Loaded::Elsewhere })
    }

    fn finish(&mut self, owner: &Owner) -> Result<(), ConnectError> {
        self.transaction(|this| {
            if let Some(staging) = owner.staging.as_ref()
                && this.has(staging)?
            {
                let (columns, name, staging) =
                    (this.table.columns().join(", "), identifier(&this.table.name), identifier(staging));
                this.run(&format!(
                    "DELETE FROM {name}; INSERT INTO {name} ({columns}) SELECT {columns} FROM {staging}; DROP TABLE {staging}"
                ))?;
            }
            let sql = "UPDATE _dfc_ledger SET finished = TRUE WHERE lineage = ?1 AND sink = ?2";
            this.connection.execute(sql, (&owner.lineage, &owner.sink)).map_err(|error| this.failed(&error))?;
            Ok(Some(()))
        })
        .map(drop)
    }

    fn forget(&mut self, owner: &Owner) -> Result<(), ConnectError> {
        self.transaction(|this| {
            if this.has("_dfc_ledger")? {
                let sql = "DELETE FROM _dfc_ledger WHERE lineage = ?1 AND sink = ?2";
                this.connection.execute(sql, (&owner.lineage, &owner.sink)).map_err(|error| this.failed(&error))?;
            }
            if let Some(staging) = &owner.staging {
                this.run(&format!("DROP TABLE IF EXISTS {}", identifier(staging)))?;
            }
            Ok(Some(()))
        })
        .map(drop)
    }
}
