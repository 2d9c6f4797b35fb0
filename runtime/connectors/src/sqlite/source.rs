//! The SQLite source: each page of rows is a query of its own that begins after the last row's key, so that the file is locked only
//! while a page is read.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::ArrayRef;
use dfc_batch::ColumnBuilder;
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Field, Schema};
use rusqlite::types::{Value as Raw, ValueRef};
use rusqlite::{Connection, Row, Rows, Transaction};

use super::{Access, catalogue, failure, open, read_failed, value};
use crate::database::{
    self, Began, COLUMNS, Cap, Chunk, DatabaseSource, From, Key, KeyValue, KeyedRows, Order, OrderOptions, ReadFailure,
    Settings, Span, Survey, Tail, listed,
};
use crate::options::OptionReader;
use crate::rows::{Fault, Faults};
use crate::text::value::{MISFIT, unexpected_null};
use crate::{ConnectError, OpenContext, Source};

/// Rows of a page, and of a batch.
const PAGE: u64 = 8192;

/// Opens it.
pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    let reader = OptionReader::new("sqlite", &spec.options);
    let path = reader.required("path")?.to_string();
    let options = OrderOptions::read("sqlite", spec)?;
    let connection = open(&path, Access::Read)?;
    let (catalogue, columns) = catalogue::of(&connection, &path, &options.from)?;
    for field in &spec.schema.fields {
        if !catalogue.columns.iter().any(|(name, _)| name == field.external_name()) {
            let message = format!("{} in `{path}` has no column `{}`", options.from.name(), field.external_name());
            return Err(ConnectError::new(COLUMNS, message)
                .help(format!("it has {}", listed(catalogue.columns.iter().map(|(name, _)| name)))));
        }
    }
    let order = Order::decide(&options, &catalogue)?;
    // In the order of texts new rows would stand before old ones.
    if let Some(name) = &options.increment {
        let field = spec.schema.fields.iter().find(|field| field.external_name() == name);
        let numeric = field.is_some_and(|field| field.ty.ty.is_numeric());
        let of_texts =
            |column: &&database::Column| column.name == *name && matches!(column.class, database::Class::Text(_));
        if let Some(column) = columns.iter().find(of_texts).filter(|_| numeric) {
            let message = format!(
                "`{name}` of {} in `{path}` is declared {}, so SQLite compares its numbers as texts: '10' stands before '9'",
                options.from.name(),
                column.declared
            );
            return Err(ConnectError::new(database::ORDER, message).help(format!(
                "name another field, or compare numbers: `query: \"SELECT …, CAST({name} AS INTEGER) AS {name} FROM …\"`"
            )));
        }
    }
    let what = format!("{} in `{path}`", options.from.name());
    let projected = spec.projected();
    let read = projected.fields.iter().map(Field::external_name).chain(order.columns.iter().map(String::as_str));
    let began = Began::new(&what, read, &columns);
    let plan = Arc::new(Plan::new(path, spec, &options, &order, began));
    Ok(Box::new(DatabaseSource::open(Box::new(File { plan }), Settings { options, order, what }, cx)?))
}

/// What is read, and how it is said.
struct Plan {
    path: String,
    origin: From,
    /// The columns that are read.
    began: Began,
    source: Arc<str>,
    schema: Schema,
    /// `FROM …`
    from: String,
    /// The columns of the order, quoted.
    order: Vec<String>,
    nulls: bool,
    /// `SELECT …`, the projected columns, then those of the order.
    select: String,
    /// For each order column that is projected its name and its place.
    shown: Vec<(String, usize)>,
    /// About how many rows there are, cheaply asked for.
    count: String,
}

impl Plan {
    fn new(path: String, spec: &SourceSpec, options: &OrderOptions, order: &Order, began: Began) -> Plan {
        let schema = spec.projected();
        let from = match &options.from {
            From::Table(table) => catalogue::identifier(table),
            From::Query(query) => format!("(\n{query}\n)"),
        };
        let names = schema.fields.iter().map(Field::external_name).chain(order.columns.iter().map(String::as_str));
        let columns: Vec<String> = names.map(catalogue::identifier).collect();
        let shown = order.columns.iter().filter_map(|name| {
            let at = schema.fields.iter().position(|field| field.external_name() == name)?;
            Some((name.clone(), at))
        });
        Plan {
            path,
            origin: options.from.clone(),
            began,
            source: options.from.short().into(),
            shown: shown.collect(),
            select: if columns.is_empty() { "1".into() } else { columns.join(", ") },
            order: order.columns.iter().map(|name| catalogue::identifier(name)).collect(),
            nulls: order.nulls,
            count: format!("SELECT count(*) FROM {from}"),
            schema,
            from,
        }
    }

    /// The query of a page, and its parameters.
    fn page(&self, span: &Span, limit: u64) -> (String, Vec<Raw>) {
        let (mut conditions, mut parameters) = (Vec::new(), Vec::new());
        let columns = &self.order[usize::from(span.split.nulls)..];
        if let Some(lead) = self.order.first() {
            let mut bound = |value: &KeyValue, operator: &str| {
                parameters.push(raw(value));
                conditions.push(format!("{lead} {operator} ?"));
            };
            if span.after.is_none()
                && let Some(above) = &span.split.above
            {
                bound(above, ">");
            }
            if let Some(up_to) = &span.split.up_to {
                bound(up_to, "<=");
            }
            if let Some(Cap { value, below }) = span.cap {
                bound(value, if *below { "<" } else { "<=" });
            }
            match span.split.nulls {
                true => conditions.push(format!("{lead} IS NULL")),
                false if self.nulls => conditions.push(format!("{lead} IS NOT NULL")),
                false => {}
            }
        }
        if let Some(after) = span.after.filter(|_| !columns.is_empty()) {
            let marks = vec!["?"; columns.len()].join(", ");
            conditions.push(format!("({}) > ({marks})", columns.join(", ")));
            parameters.extend(after.iter().map(raw));
        }
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let order = if columns.is_empty() { String::new() } else { format!(" ORDER BY {}", columns.join(", ")) };
        (format!("SELECT {} FROM {}{filter}{order} LIMIT {limit}", self.select, self.from), parameters)
    }

    fn failed(&self, error: &rusqlite::Error) -> ReadFailure {
        read_failed(&self.path, error)
    }
}

struct File {
    plan: Arc<Plan>,
}

impl database::Database for File {
    fn connect(&self) -> Result<Box<dyn database::Connection>, ReadFailure> {
        let connection = open(&self.plan.path, Access::Read).map_err(failure)?;
        Ok(Box::new(Reading { connection, plan: self.plan.clone(), compared: Cell::new(None) }))
    }

    fn in_pages(&self) -> bool {
        true
    }
}

struct Reading {
    connection: Connection,
    plan: Arc<Plan>,
    /// The number of the schema whose columns have been compared.
    compared: Cell<Option<i64>>,
}

impl Reading {
    fn lead(&self) -> &str {
        self.plan.order.first().map_or("NULL", String::as_str)
    }

    /// Begins to read: what is read until the end is of one state of the file, in which the columns are as they were when the job
    /// began.
    fn begin(&self) -> Result<Transaction<'_>, ReadFailure> {
        let plan = &self.plan;
        let transaction = self.connection.unchecked_transaction().map_err(|error| plan.failed(&error))?;
        let version = transaction.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
        let version = version.map_err(|error| plan.failed(&error))?;
        if self.compared.get() != Some(version) {
            let (_, now) = catalogue::of(&transaction, &plan.path, &plan.origin).map_err(failure)?;
            plan.began.compare(&now).map_err(ReadFailure::Fatal)?;
            self.compared.set(Some(version));
        }
        Ok(transaction)
    }
}

impl database::Connection for Reading {
    fn survey(&mut self) -> Result<Survey, ReadFailure> {
        let ask = || -> rusqlite::Result<Survey> {
            let rows: i64 = self.connection.query_row(&self.plan.count, [], |row| row.get(0))?;
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {} WHERE {} IS NULL)", self.plan.from, self.lead());
            let nulls = self.plan.nulls && self.connection.query_row(&sql, [], |row| row.get(0))?;
            Ok(Survey { rows: rows.unsigned_abs(), nulls })
        };
        ask().map_err(|error| self.plan.failed(&error))
    }

    fn newest(&mut self) -> Result<Option<Cap>, ReadFailure> {
        let _transaction = self.begin()?;
        let lead = self.lead();
        let sql =
            format!("SELECT {lead} FROM {} WHERE {lead} IS NOT NULL ORDER BY {lead} DESC LIMIT 1", self.plan.from);
        let mut found = self.values(&sql, &[])?;
        Ok(found.pop().map(|value| Cap { value, below: false }))
    }

    fn bounds(&mut self, parts: usize, cap: Option<&Cap>) -> Result<Vec<KeyValue>, ReadFailure> {
        let lead = self.lead();
        let (filter, parameters): (String, Vec<Raw>) = match cap {
            Some(cap) => (format!("{lead} <= ?"), vec![raw(&cap.value)]),
            None => (format!("{lead} IS NOT NULL"), Vec::new()),
        };
        let from = &self.plan.from;
        let count = format!("SELECT count(*) FROM {from} WHERE {filter}");
        let rows: i64 = self
            .connection
            .query_row(&count, rusqlite::params_from_iter(&parameters), |row| row.get(0))
            .map_err(|error| self.plan.failed(&error))?;
        // One walk through the index, whatever the number of parts.
        let step = (rows / parts as i64).max(1);
        let sql = format!(
            "SELECT x FROM (SELECT {lead} AS x, row_number() OVER (ORDER BY {lead}) AS n FROM {from} WHERE {filter})
             WHERE n % {step} = 0 AND n <= {} ORDER BY n",
            step * (parts as i64 - 1)
        );
        let mut bounds = self.values(&sql, &parameters)?;
        // A value that many rows have cuts once; nothing is above the last.
        bounds.dedup();
        if let Some(cap) = cap {
            bounds.retain(|bound| *bound != cap.value);
        }
        Ok(bounds)
    }

    fn read(&mut self, span: &Span, give: &mut dyn FnMut(Chunk) -> bool) -> Result<(), ReadFailure> {
        let keyed = !self.plan.order.is_empty();
        let mut after = span.after.cloned();
        let mut left = span.limit.unwrap_or(i64::MAX as u64);
        loop {
            let page = if keyed { left.min(PAGE) } else { left };
            let (sql, parameters) = self.plan.page(&Span { after: after.as_ref(), ..*span }, page);
            let transaction = self.begin()?;
            let mut statement = transaction.prepare_cached(&sql).map_err(|error| self.plan.failed(&error))?;
            for (at, parameter) in parameters.iter().enumerate() {
                statement.raw_bind_parameter(at + 1, parameter).map_err(|error| self.plan.failed(&error))?;
            }
            let mut read = 0;
            let mut found = statement.raw_query();
            // Without a key there is one query, whose rows come in pages.
            loop {
                let (chunk, rows) = self.plan.chunk(&mut found, span)?;
                read += rows;
                if chunk.last.is_some() {
                    after.clone_from(&chunk.last);
                }
                if keyed {
                    // The page ends, and with it the lock, before somebody is waited for.
                    drop(found);
                    drop(statement);
                    drop(transaction);
                    if rows > 0 && !give(chunk) {
                        return Ok(());
                    }
                    break;
                }
                if rows > 0 && !give(chunk) {
                    return Ok(());
                }
                if rows < PAGE {
                    break;
                }
            }
            left -= read.min(left);
            if !keyed || read < page || left == 0 {
                return Ok(());
            }
        }
    }
}

impl Reading {
    fn values(&self, sql: &str, parameters: &[Raw]) -> Result<Vec<KeyValue>, ReadFailure> {
        let ask = || -> rusqlite::Result<Vec<Raw>> {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map(rusqlite::params_from_iter(parameters), |row| row.get(0))?.collect()
        };
        let values = ask().map_err(|error| self.plan.failed(&error))?;
        Ok(values.into_iter().filter_map(kept).collect())
    }
}

impl Plan {
    /// The next rows of a statement, at most a page, and how many they are with those that are left out.
    fn chunk(&self, found: &mut Rows, span: &Span) -> Result<(Chunk, u64), ReadFailure> {
        let fields = &self.schema.fields;
        let mut builders: Vec<ColumnBuilder> =
            fields.iter().map(|field| ColumnBuilder::new(&field.ty.with_nullable(true), PAGE as usize)).collect();
        let mut faults = Faults::default();
        let (mut read, mut rows, mut bytes) = (0, 0, 0);
        let mut last: Option<Key> = None;
        let mut tail = Tail::default();
        while read < PAGE {
            let Some(row) = found.next().map_err(|error| self.failed(&error))? else { break };
            read += 1;
            if !self.order.is_empty() {
                let key = self.key(row, span.split.nulls)?;
                if span.ties {
                    let tied = tail.last().is_some_and(|last: &Key| last.first() == key.first());
                    tail.push(key.clone(), tied);
                }
                let known = !span.seen.is_empty() && span.seen.take(&key);
                last = Some(key);
                if known {
                    continue;
                }
            }
            for (column, (field, builder)) in fields.iter().zip(&mut builders).enumerate() {
                let raw = row.get_ref(column).map_err(|error| self.failed(&error))?;
                bytes += size(raw);
                let mut refuse = |fault: Fault| faults.push(rows, column, Some(field.external_name()), fault);
                match value::read(raw, &field.ty.ty) {
                    Ok(dfc_ir::Value::Null) if !field.ty.nullable => refuse(unexpected_null(&field.ty.ty)),
                    Ok(value) => {
                        builder.push(&value);
                        continue;
                    }
                    Err(fault) => refuse(fault),
                }
                builder.push_null();
            }
            rows += 1;
        }
        let columns: Vec<ArrayRef> = builders.into_iter().map(ColumnBuilder::finish).collect();
        let keys = self.shown.iter().map(|(name, at)| (name.clone(), columns[*at].clone(), fields[*at].ty.ty.clone()));
        let locate = Arc::new(KeyedRows { source: self.source.clone(), keys: keys.collect() });
        Ok((Chunk { columns, rows, faults, locate, last, tail, bytes }, read))
    }

    /// The key of a row.
    fn key(&self, row: &Row, nulls: bool) -> Result<Key, ReadFailure> {
        let value = |at: usize| {
            let raw = row.get_ref(self.schema.fields.len() + at).map_err(|error| self.failed(&error))?;
            key_value(raw).ok_or_else(|| {
                ReadFailure::Fatal(ConnectError::new(
                    MISFIT,
                    format!(
                        "`{}`: {} of a row is a text that is no UTF-8, so it can't be a key",
                        self.path, self.order[at]
                    ),
                ))
            })
        };
        (usize::from(nulls)..self.order.len()).map(value).collect()
    }
}

fn size(value: ValueRef) -> u64 {
    match value {
        ValueRef::Null => 1,
        ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
    }
}

fn key_value(value: ValueRef) -> Option<KeyValue> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Integer(n) => KeyValue::Int(n),
        ValueRef::Real(x) => KeyValue::Real(x),
        ValueRef::Text(bytes) => KeyValue::Text(std::str::from_utf8(bytes).ok()?.into()),
        ValueRef::Blob(bytes) => KeyValue::Blob(bytes.to_vec()),
    })
}

/// A key's value; null is none.
fn kept(value: Raw) -> Option<KeyValue> {
    Some(match value {
        Raw::Null => return None,
        Raw::Integer(n) => KeyValue::Int(n),
        Raw::Real(x) => KeyValue::Real(x),
        Raw::Text(text) => KeyValue::Text(text),
        Raw::Blob(bytes) => KeyValue::Blob(bytes),
    })
}

fn raw(value: &KeyValue) -> Raw {
    match value {
        KeyValue::Int(n) => Raw::Integer(*n),
        KeyValue::Real(x) => Raw::Real(*x),
        KeyValue::Text(text) => Raw::Text(text.clone()),
        KeyValue::Blob(bytes) => Raw::Blob(bytes.clone()),
    }
}
