//! The PostgreSQL sink: the spool holds the lines of `COPY … FROM STDIN`, and an epoch is one `COPY` in one transaction with the
//! ledger's entry. `upsert` copies into a temporary table first.

use std::sync::Arc;

use dfc_ir::plan::SinkSpec;
use dfc_ir::types::IntType;
use dfc_ir::{Field, Schema, Type};

use super::address::Address;
use super::catalogue::{missing, parts, table};
use super::session::Session;
use super::text::{Lines, WriteColumn};
use crate::database::{
    self, CONSTRAINT, Class, DatabaseSink, Fit, LedgerRow, Load, Loaded, MODES, Mode, Owner, REFUSED, Target,
    TargetOptions, VALUE, delete_mark, fits, listed, match_columns, quoted, unmarked,
};
use crate::options::OptionReader;
use crate::{ConnectError, Encoder, OpenContext, Sink};

/// The temporary table's column of rows that say that theirs is to be removed.
const MARK: &str = "_dfc_delete";

/// Opens it.
pub(crate) fn open_sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    let options = OptionReader::new("postgres", &spec.options);
    let address = Address::parse(&options.secret("url")?)?;
    let name = options.required("table")?;
    let mode = options.choice("mode", &MODES)?;
    let create = options.choice("create", &[("never", false), ("if_missing", true)])?;
    let key = database::upsert_key(&options, mode, schema)?;
    let mark = delete_mark(&options, mode, schema, &key)?;
    let spooled = schema;
    let schema = &unmarked(schema, mark);
    let lanes = options.count("connections")?.unwrap_or(1).clamp(1, 64) as u32;
    if lanes > 1 && mode == Mode::Upsert {
        return Err(ConnectError::new(
            "R0202",
            "`mode: upsert` takes one connection: rows of the same key must keep their order",
        )
        .help("leave `connections` out"));
    }
    for field in &schema.fields {
        quoted(field.external_name())?;
    }
    let session = Session::open(&address, true)?;
    let what = format!("the table `{name}` in {}", address.shown);
    let found = table(&session, name)?;
    let (classes, sql, own_schema): (Vec<Class>, String, String) = match &found {
        Some(table) => {
            let columns: Vec<_> = table.columns.iter().map(|c| c.column.clone()).collect();
            let at = match_columns(&what, schema, &columns)?;
            if !table.logged && cx.epochs.is_some() {
                return Err(ConnectError::new(REFUSED, format!("{what} is UNLOGGED: a crash of the server would empty it, and the ledger would say that the rows are there"))
                    .help("`ALTER TABLE … SET LOGGED`, or write `checkpoint: off`"));
            }
            let as_set = |names: &[String]| names.iter().cloned().collect::<std::collections::BTreeSet<_>>();
            if mode == Mode::Upsert && !table.unique.iter().any(|unique| as_set(unique) == as_set(&key)) {
                return Err(ConnectError::new(REFUSED, format!("no unique key of {what} is {}", listed(&key)))
                    .help("`CREATE UNIQUE INDEX` over these columns, or name the fields of the key that is there"));
            }
            (at.iter().map(|at| columns[*at].class.clone()).collect(), table.sql.clone(), table.schema.clone())
        }
        None if create => {
            let (schema_name, table_name) = parts(name)?;
            let schema_name = match schema_name {
                Some(schema) => schema,
                None => current_schema(&session, &address)?,
            };
            let own = quoted(&schema_name)?;
            let classes = schema.fields.iter().map(|field| made(&field.ty.ty).1).collect();
            (classes, format!("{own}.{}", quoted(&table_name)?), own)
        }
        None => return Err(missing(&session, &address.shown, name)),
    };
    let ledger_schema = match options.text("ledger_schema")? {
        Some(schema) => quoted(schema)?,
        None => own_schema.clone(),
    };
    let columns = schema.fields.iter().zip(classes).map(|(field, class)| {
        let checked = fits(&field.ty.ty, &class) == Fit::Checked;
        WriteColumn { class, checked }
    });
    // In the spool the mark is the last column.
    let marks = mark.map(|at| (spooled.fields[at].clone(), WriteColumn { class: Class::Bool, checked: false }));
    let mut lines = schema.clone();
    lines.fields.extend(marks.iter().map(|(field, _)| field.clone()));
    let table = Arc::new(Table {
        name: name.to_string(),
        ledger: format!("{ledger_schema}._dfc_ledger"),
        schema_sql: own_schema,
        sql,
        columns: columns.chain(marks.into_iter().map(|(_, column)| column)).collect(),
        lines: Arc::new(lines),
        mark,
        schema: Arc::new(schema.clone()),
        mode,
        key,
        create: create && found.is_none(),
        address,
    });
    let options = TargetOptions {
        mode,
        create: table.create,
        lanes: if cx.epochs.is_some() { lanes } else { 1 },
        rate: options.count("rate")?,
    };
    let writing = Writing { session, table: table.clone() };
    Ok(Box::new(DatabaseSink::open(Box::new(Server { table }), Box::new(writing), options, cx)?))
}

fn current_schema(session: &Session, address: &Address) -> Result<String, ConnectError> {
    let found = session.ask("SELECT current_schema()::text", &[])?;
    found.first().and_then(|row| row.get::<_, Option<String>>(0)).ok_or_else(|| {
        ConnectError::new(
            REFUSED,
            format!("the user has no schema in {} in which a table could be made", address.shown),
        )
        .help("name one: `table: \"sales.orders\"`")
    })
}

/// The type of a column that is made for a type of ours, and its kind.
fn made(ty: &Type) -> (String, Class) {
    let (name, class) = match ty {
        Type::Bool => ("boolean", Class::Bool),
        Type::Int(IntType::I8 | IntType::I16 | IntType::U8) => ("smallint", Class::Int(16)),
        Type::Int(IntType::I32 | IntType::U16) => ("integer", Class::Int(32)),
        Type::Int(IntType::I64 | IntType::U32) => ("bigint", Class::Int(64)),
        Type::Int(IntType::U64) => ("numeric(20, 0)", Class::Decimal(Some((20, 0)))),
        Type::Float32 => ("real", Class::Float32),
        Type::Float64 => ("double precision", Class::Float64),
        Type::Decimal(p, s) => return (format!("numeric({p}, {s})"), Class::Decimal(Some((*p, *s)))),
        Type::Bytes => ("bytea", Class::Bytes),
        Type::Date => ("date", Class::Date),
        Type::Time => ("time", Class::Time),
        Type::DateTime => ("timestamp", Class::DateTime),
        Type::Timestamp => ("timestamptz", Class::Timestamp),
        Type::Duration => ("interval", Class::Duration),
        Type::List(item) => match made(&item.ty) {
            // Arrays of arrays have one length here, and may have many there.
            (_, Class::Json | Class::List(_)) => ("json", Class::Json),
            (name, class) => return (format!("{name}[]"), Class::List(Box::new(class))),
        },
        // `json` keeps the text as it is.
        Type::Json | Type::Record(_) => ("json", Class::Json),
        Type::String | Type::Secret | Type::Null => ("text", Class::Text(None)),
    };
    (name.into(), class)
}

/// The table that is written.
struct Table {
    address: Address,
    /// As the pipeline calls it.
    name: String,
    /// `"schema"."table"`
    sql: String,
    /// `"schema"`
    schema_sql: String,
    /// `"schema"._dfc_ledger`
    ledger: String,
    schema: Arc<Schema>,
    /// What is spooled: the columns, then the mark.
    lines: Arc<Schema>,
    columns: Arc<[WriteColumn]>,
    /// Where the field stands that says which rows are removed.
    mark: Option<usize>,
    mode: Mode,
    /// Columns.
    key: Vec<String>,
    /// It has to be made.
    create: bool,
}

impl Table {
    fn quote(name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn names(&self) -> String {
        let names = self.schema.fields.iter().map(|field| Table::quote(field.external_name()));
        names.collect::<Vec<_>>().join(", ")
    }

    fn definition(&self) -> String {
        let column = |field: &Field| {
            let null = if field.ty.nullable { "" } else { " NOT NULL" };
            format!("{} {}{null}", Table::quote(field.external_name()), made(&field.ty.ty).0)
        };
        let mut parts: Vec<String> = self.schema.fields.iter().map(column).collect();
        if !self.key.is_empty() {
            let key: Vec<String> = self.key.iter().map(|name| Table::quote(name)).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        format!("CREATE TABLE IF NOT EXISTS {} ({})", self.sql, parts.join(", "))
    }

    /// From the temporary table into the target: of several rows of a key the last, which may say that there shall be none.
    fn merge(&self) -> String {
        let names = self.names();
        let key: Vec<String> = self.key.iter().map(|name| Table::quote(name)).collect();
        let fields = self.schema.fields.iter().map(|field| Table::quote(field.external_name()));
        let others: Vec<String> = fields.filter(|c| !key.contains(c)).map(|c| format!("{c} = EXCLUDED.{c}")).collect();
        let action = if others.is_empty() { "NOTHING".into() } else { format!("UPDATE SET {}", others.join(", ")) };
        let same: Vec<String> = key.iter().map(|column| format!("t.{column} = q.{column}")).collect();
        let key = key.join(", ");
        let last = format!("(SELECT DISTINCT ON ({key}) * FROM pg_temp._dfc_rows ORDER BY {key}, _dfc_n DESC) q");
        let (remove, kept) = match self.mark {
            Some(_) => {
                let remove =
                    format!("DELETE FROM {} t USING {last} WHERE q.{MARK} AND {};", self.sql, same.join(" AND "));
                (remove, format!("WHERE q.{MARK} IS NOT TRUE"))
            }
            None => Default::default(),
        };
        format!(
            "{remove} INSERT INTO {} ({names}) SELECT {names} FROM {last} {kept} ON CONFLICT ({key}) DO {action}",
            self.sql
        )
    }

    fn staging(&self, name: &str) -> String {
        format!("{}.{}", self.schema_sql, Table::quote(name))
    }
}

struct Server {
    table: Arc<Table>,
}

impl Target for Server {
    fn describe(&self) -> String {
        format!("{} in {}", self.table.name, self.table.address.shown.replace('`', ""))
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        let Table { lines, columns, mark, .. } = &*self.table;
        Box::new(Lines { schema: lines.clone(), columns: columns.clone(), mark: *mark })
    }

    fn connect(&self) -> Result<Box<dyn database::Session>, ConnectError> {
        let session = Session::open(&self.table.address, true)?;
        Ok(Box::new(Writing { session, table: self.table.clone() }))
    }
}

struct Writing {
    session: Session,
    table: Arc<Table>,
}

impl Writing {
    fn exists(&self, sql: &str) -> Result<bool, ConnectError> {
        let found = self.session.ask("SELECT to_regclass($1::text) IS NOT NULL", &[&sql])?;
        Ok(found.first().is_some_and(|row| row.get(0)))
    }

    fn stage(&self, staging: &str) -> Result<(), ConnectError> {
        let staging = self.table.staging(staging);
        if self.exists(&staging)? {
            return Ok(());
        }
        self.session.run(&format!(
            "CREATE TABLE {staging} AS SELECT {} FROM {} WITH NO DATA",
            self.table.names(),
            self.table.sql
        ))
    }

    /// Does something in a transaction. After a failure the session is of no use.
    fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<Option<T>, ConnectError>,
    ) -> Result<Option<T>, ConnectError> {
        self.session.run("BEGIN")?;
        let done = work(self);
        match done {
            Ok(Some(done)) => self.session.run("COMMIT").map(|()| Some(done)),
            Ok(None) => self.session.run("ROLLBACK").map(|()| None),
            Err(error) => {
                // The server ends it with the session, whatever becomes of this.
                let _ = self.session.run("ROLLBACK");
                Err(error)
            }
        }
    }

    fn copy(&self, load: &mut Load, into: &str) -> Result<(), ConnectError> {
        let names = self.table.names();
        let upsert = self.table.mode == Mode::Upsert;
        if upsert {
            let sql = &self.table.sql;
            self.session.run(&format!(
                "CREATE TEMPORARY TABLE _dfc_rows ON COMMIT DROP AS SELECT {names} FROM {sql} WITH NO DATA;
                 ALTER TABLE pg_temp._dfc_rows ADD COLUMN _dfc_n bigint GENERATED ALWAYS AS IDENTITY, ADD COLUMN {MARK} boolean"
            ))?;
        }
        let mark = if self.table.mark.is_some() { format!(", {MARK}") } else { String::new() };
        let target = if upsert { "pg_temp._dfc_rows" } else { into };
        let (rows, throttle) = (&mut load.rows, &mut load.throttle);
        self.session.copy_in(&format!("COPY {target} ({names}{mark}) FROM STDIN"), |piece| {
            rows.piece(piece)?;
            throttle.pass(memchr::memchr_iter(b'\n', piece).count() as u64);
            Ok(())
        })?;
        if upsert {
            self.session.run(&self.table.merge())?;
        }
        Ok(())
    }
}

/// The help for a row that the target refuses.
fn refused(error: ConnectError, load: &Load) -> ConnectError {
    if error.code != CONSTRAINT && error.code != VALUE {
        return error;
    }
    let epoch = load.ledger.as_ref().map(|step| format!("epoch {}: ", step.to)).unwrap_or_default();
    ConnectError { message: format!("{epoch}{}", error.message), ..error }
        .help("the rows of this epoch are kept, and nothing of them is in the table: correct the table or the constraint and run the job again, or leave such rows out before the sink")
}

impl database::Session for Writing {
    fn entries(&mut self, owner: &Owner) -> Result<Vec<LedgerRow>, ConnectError> {
        if !self.exists(&self.table.ledger)? {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT lineage, lane, n, row_count, finished FROM {}
             WHERE sink = $1 AND (lineage = $2 OR job = $3 AND target = $4) ORDER BY lineage, lane",
            self.table.ledger
        );
        let rows = self.session.ask(&sql, &[&owner.sink, &owner.lineage, &owner.job, &self.table.name])?;
        let row = |row: &tokio_postgres::Row| LedgerRow {
            lineage: row.get(0),
            lane: row.get::<_, i32>(1).unsigned_abs(),
            n: row.get::<_, i64>(2).unsigned_abs(),
            rows: row.get::<_, i64>(3).unsigned_abs(),
            finished: row.get(4),
        };
        Ok(rows.iter().map(row).collect())
    }

    fn prepare(&mut self, owner: &Owner, lanes: u32) -> Result<(), ConnectError> {
        if self.table.create {
            self.session.run(&self.table.definition())?;
        }
        let ledger = &self.table.ledger;
        if !self.exists(ledger)? {
            let made = self.session.run(&format!(
                "CREATE TABLE {ledger} (lineage text NOT NULL, sink text NOT NULL, lane integer NOT NULL, job text NOT NULL,
                   target text NOT NULL, n bigint NOT NULL, row_count bigint NOT NULL, finished boolean NOT NULL,
                   changed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (lineage, sink, lane))"
            ));
            // Another job may have been quicker.
            if let Err(error) = made
                && !self.exists(ledger)?
            {
                return Err(
                    error.help("grant the right to create a table there, or name another schema: `ledger_schema:`")
                );
            }
        }
        if let Some(staging) = &owner.staging {
            self.stage(staging)?;
        }
        self.transaction(|this| {
            let sql = format!(
                "INSERT INTO {} (lineage, sink, lane, job, target, n, row_count, finished) VALUES ($1, $2, $3, $4, $5, 0, 0, false)",
                this.table.ledger
            );
            for lane in 0..lanes as i32 {
                this.session.change(&sql, &[&owner.lineage, &owner.sink, &lane, &owner.job, &this.table.name])?;
            }
            Ok(Some(()))
        })
        .map(drop)
    }

    fn load(&mut self, mut load: Load) -> Result<Loaded, ConnectError> {
        let done = self.transaction(|this| {
            if load.create {
                this.session.run(&this.table.definition())?;
            }
            let mut into = this.table.sql.clone();
            if let Some(step) = load.ledger {
                // Waits for a commit of this entry that is still on its way, and then sees it.
                let sql = format!(
                    "UPDATE {} SET n = $1, row_count = row_count + $2, finished = false, changed_at = now()
                     WHERE lineage = $3 AND sink = $4 AND lane = $5 AND n = $6",
                    this.table.ledger
                );
                let (to, rows, lane, from) = (step.to as i64, step.rows as i64, step.lane as i32, step.from as i64);
                let moved =
                    this.session.change(&sql, &[&to, &rows, &step.owner.lineage, &step.owner.sink, &lane, &from])?;
                if moved != 1 {
                    return Ok(None);
                }
                if let Some(staging) = &step.owner.staging {
                    this.stage(staging)?;
                    into = this.table.staging(staging);
                }
            }
            if load.clear {
                let clear = if this.table.mode == Mode::Truncate { "TRUNCATE" } else { "DELETE FROM" };
                this.session.run(&format!("{clear} {}", this.table.sql))?;
            }
            this.copy(&mut load, &into).map_err(|error| refused(error, &load))?;
            Ok(Some(()))
        })?;
        Ok(if done.is_some() { Loaded::Done } else { Loaded::Elsewhere })
    }

    fn finish(&mut self, owner: &Owner) -> Result<(), ConnectError> {
        self.transaction(|this| {
            if let Some(staging) = owner.staging.as_ref().map(|name| this.table.staging(name))
                && this.exists(&staging)?
            {
                let (names, sql) = (this.table.names(), &this.table.sql);
                this.session.run(&format!(
                    "DELETE FROM {sql}; INSERT INTO {sql} ({names}) SELECT {names} FROM {staging}; DROP TABLE {staging}"
                ))?;
            }
            let sql = format!(
                "UPDATE {} SET finished = true, changed_at = now() WHERE lineage = $1 AND sink = $2",
                this.table.ledger
            );
            this.session.change(&sql, &[&owner.lineage, &owner.sink])?;
            Ok(Some(()))
        })
        .map(drop)
    }

    fn forget(&mut self, owner: &Owner) -> Result<(), ConnectError> {
        self.transaction(|this| {
            if this.exists(&this.table.ledger)? {
                let sql = format!("DELETE FROM {} WHERE lineage = $1 AND sink = $2", this.table.ledger);
                this.session.change(&sql, &[&owner.lineage, &owner.sink])?;
            }
            if let Some(staging) = &owner.staging {
                this.session.run(&format!("DROP TABLE IF EXISTS {}", this.table.staging(staging)))?;
            }
            Ok(Some(()))
        })
        .map(drop)
    }
}
