//! The PostgreSQL source: one `COPY … TO STDOUT (FORMAT BINARY)` a split, in the order of its key, read as fast as it is wanted.
//!
//! Session zone is UTC. A time stamp that the server sets itself is held behind the oldest open transaction, because a row may still
//! appear that says it is older; for everything else there is `lag:` (F5).

use std::sync::Arc;

use arrow_array::ArrayRef;
use bytes::Bytes;
use dfc_batch::ColumnBuilder;
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Field, Schema, Type};

use super::address::Address;
use super::binary;
use super::catalogue::{Form, Origin, PgColumn, origin};
use super::session::Session;
use crate::database::{
    self, Began, COLUMNS, Cap, Chunk, Class, Column, DatabaseSource, Key, KeyValue, KeyedRows, ORDER, Order,
    OrderOptions, ReadFailure, Settings, Span, Survey, Tail, UNREACHABLE, listed, natural, quoted,
};
use crate::options::OptionReader;
use crate::rows::{Fault, Faults};
use crate::text::value::unexpected_null;
use crate::{ConnectError, OpenContext, Source};

/// Rows of a batch.
const ROWS: usize = 8192;
/// Rows that a sample has at least, so that its quantiles are near those of the table.
const SAMPLE: u64 = 20_000;
/// What `COPY … BINARY` begins with.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Opens it.
pub(crate) fn open_source(spec: &SourceSpec, cx: &OpenContext) -> Result<Box<dyn Source>, ConnectError> {
    let reader = OptionReader::new("postgres", &spec.options);
    let address = Address::parse(&reader.secret("url")?)?;
    let options = OrderOptions::read("postgres", spec)?;
    let session = Session::open(&address, false)?;
    let found = origin(&session, &address.shown, &options.from)?;
    let order = Order::decide(&options, &found.catalogue)?;
    let what = format!("{} in {}", options.from.name(), address.shown);
    let plan = Plan::new(address, spec, &options, &order, &found, &what)?;
    let database = Server { plan: Arc::new(plan) };
    Ok(Box::new(DatabaseSource::open(Box::new(database), Settings { options, order, what }, cx)?))
}

/// A column that is read.
struct ReadColumn {
    field: Field,
    /// How it travels.
    form: Form,
}

/// A column of the order.
struct KeyColumn {
    /// Quoted.
    sql: String,
    /// Its type, for literals.
    ty: String,
    /// Where it stands among the columns that are read.
    at: usize,
    form: Form,
}

/// What is read, and how it is said.
struct Plan {
    address: Address,
    origin: database::From,
    /// The columns that are read.
    began: Began,
    /// Asks for them, and for no row.
    probe: String,
    what: String,
    source: Arc<str>,
    from: String,
    is_table: bool,
    rows: Option<u64>,
    select: String,
    columns: Vec<ReadColumn>,
    order: Vec<KeyColumn>,
    nulls: bool,
    /// The increment is an instant, which the server may have set.
    instant: bool,
    /// Rows that appear late are waited for.
    lag: bool,
}

impl Plan {
    fn new(
        address: Address,
        spec: &SourceSpec,
        options: &OrderOptions,
        order: &Order,
        found: &Origin,
        what: &str,
    ) -> Result<Plan, ConnectError> {
        let column = |name: &str| found.columns.iter().find(|c| c.column.name == name);
        let projected: Schema = spec.projected();
        for field in &spec.schema.fields {
            if column(field.external_name()).is_none() {
                let message = format!("{what} has no column `{}`", field.external_name());
                return Err(ConnectError::new(COLUMNS, message)
                    .help(format!("it has {}", listed(found.columns.iter().map(|c| &c.column.name)))));
            }
        }
        let (mut select, mut columns) = (Vec::new(), Vec::new());
        for field in projected.fields {
            // All declared fields were found.
            let Some(known) = column(field.external_name()) else { continue };
            let name = format!("q.{}", quoted(field.external_name())?);
            let direct = binary::direct(&known.form, &field.ty.ty);
            if !direct && !by_text(&known.column.class, &field.ty.ty) {
                let message = format!(
                    "the column `{}` of {what} is {}, which can't be read as {}",
                    known.column.name, known.column.declared, field.ty.ty
                );
                let help = match natural(&known.column.class) {
                    Some(ty) => format!("declare it as `{ty}`, and convert it in the pipeline"),
                    None => "declare it as `string`, and take it apart in the pipeline".into(),
                };
                return Err(ConnectError::new(COLUMNS, message).help(help));
            }
            select.push(if direct { name } else { format!("{name}::text") });
            columns.push(ReadColumn { form: if direct { known.form.clone() } else { Form::AsText }, field });
        }
        let mut keys = Vec::new();
        for name in &order.columns {
            let Some(known) = column(name) else { continue };
            // Bare names in `ORDER BY` would mean what is selected under them, perhaps as text.
            let sql = format!("q.{}", quoted(name)?);
            let usable = |form: &Form| matches!(form, Form::Int(_) | Form::Text | Form::Uuid);
            let projected = columns.iter().position(|c| c.field.external_name() == name && c.form == known.form);
            let (at, form) = match projected.filter(|_| usable(&known.form)) {
                Some(at) => (at, known.form.clone()),
                None => {
                    let direct = usable(&known.form);
                    select.push(if direct { sql.clone() } else { format!("{sql}::text") });
                    (select.len() - 1, if direct { known.form.clone() } else { Form::AsText })
                }
            };
            keys.push(KeyColumn { sql, ty: known.column.declared.clone(), at, form });
        }
        let instant = order.increment
            && order.columns.first().and_then(|name| column(name)).is_some_and(|c| c.column.class == Class::Timestamp);
        let read = spec
            .projection
            .iter()
            .map(|&i| spec.schema.fields[i].external_name())
            .chain(order.columns.iter().map(String::as_str));
        let read: Vec<&str> = read.collect();
        let probed: Result<Vec<String>, ConnectError> =
            read.iter().map(|name| Ok(format!("q.{}", quoted(name)?))).collect();
        let probe = format!("SELECT {} FROM {} AS q LIMIT 0", probed?.join(", "), found.sql);
        let began = Began::new(what, read, &plain(&found.columns));
        Ok(Plan {
            origin: options.from.clone(),
            began,
            probe,
            address,
            what: what.into(),
            source: options.from.short().into(),
            from: format!("{} AS q", found.sql),
            is_table: found.is_table,
            rows: found.rows,
            select: select.join(", "),
            columns,
            order: keys,
            nulls: order.nulls,
            instant,
            lag: options.lag.is_some(),
        })
    }

    /// A value as SQL writes it. Strings are standard ones in our sessions: only quotes mean something in them.
    fn literal(&self, at: usize, value: &KeyValue) -> String {
        format!("'{}'::{}", value.to_string().replace('\0', "").replace('\'', "''"), self.order[at].ty)
    }

    fn filter(&self, span: &Span) -> String {
        let mut conditions = Vec::new();
        let skipped = usize::from(span.split.nulls);
        let columns = &self.order[skipped.min(self.order.len())..];
        if let Some(lead) = self.order.first() {
            let lead = &lead.sql;
            if let Some(above) = span.split.above.as_ref().filter(|_| span.after.is_none()) {
                conditions.push(format!("{lead} > {}", self.literal(0, above)));
            }
            if let Some(up_to) = &span.split.up_to {
                conditions.push(format!("{lead} <= {}", self.literal(0, up_to)));
            }
            if let Some(Cap { value, below }) = span.cap {
                conditions.push(format!("{lead} {} {}", if *below { "<" } else { "<=" }, self.literal(0, value)));
            }
            match span.split.nulls {
                true => conditions.push(format!("{lead} IS NULL")),
                false if self.nulls => conditions.push(format!("{lead} IS NOT NULL")),
                false => {}
            }
        }
        if let Some(after) = span.after.filter(|_| !columns.is_empty()) {
            let names: Vec<&str> = columns.iter().map(|column| column.sql.as_str()).collect();
            let values: Vec<String> =
                after.iter().enumerate().map(|(at, value)| self.literal(skipped + at, value)).collect();
            conditions.push(format!("({}) > ({})", names.join(", "), values.join(", ")));
        }
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
    }

    fn copy(&self, span: &Span) -> String {
        let columns = &self.order[usize::from(span.split.nulls).min(self.order.len())..];
        let names: Vec<&str> = columns.iter().map(|column| column.sql.as_str()).collect();
        let order = if names.is_empty() { String::new() } else { format!(" ORDER BY {}", names.join(", ")) };
        let limit = span.limit.map(|n| format!(" LIMIT {n}")).unwrap_or_default();
        format!(
            "COPY (SELECT {} FROM {}{}{order}{limit}) TO STDOUT (FORMAT BINARY)",
            self.select,
            self.from,
            self.filter(span)
        )
    }

    fn lead(&self) -> &str {
        self.order.first().map_or("NULL", |column| &column.sql)
    }
}

struct Server {
    plan: Arc<Plan>,
}

/// Whether the texts of such a column may be values of the type.
fn by_text(class: &Class, ty: &Type) -> bool {
    let number = matches!(class, Class::Int(_) | Class::Float32 | Class::Float64 | Class::Decimal(_));
    match ty {
        Type::String => true,
        Type::List(_) | Type::Record(_) | Type::Bytes => false,
        ty => (number && ty.is_numeric()) || matches!(class, Class::Text(_) | Class::Labels(_) | Class::Other),
    }
}

/// The columns as all databases have them.
fn plain(columns: &[PgColumn]) -> Vec<Column> {
    columns.iter().map(|c| c.column.clone()).collect()
}

fn failure(error: ConnectError) -> ReadFailure {
    match error.code {
        UNREACHABLE => ReadFailure::Lost(error),
        _ => ReadFailure::Fatal(error),
    }
}

impl database::Database for Server {
    fn connect(&self) -> Result<Box<dyn database::Connection>, ReadFailure> {
        let plan = &self.plan;
        let session = Session::open(&plan.address, false).map_err(failure)?;
        let mut reading = Reading { session, plan: plan.clone(), compared: None };
        reading.begin()?;
        reading.end()?;
        Ok(Box::new(reading))
    }

    fn in_pages(&self) -> bool {
        false
    }
}

struct Reading {
    session: Session,
    plan: Arc<Plan>,
    /// What the server says of the columns that have been compared: names, types, modifiers.
    compared: Option<Vec<(String, u32, i32)>>,
}

impl Reading {
    /// Begins a transaction in which the columns that are read are as they were when the job began, and stay so: what is described is
    /// locked against changes until the end. A value of another type than the one that is expected would be misread.
    fn begin(&mut self) -> Result<(), ReadFailure> {
        self.session.run("BEGIN").map_err(failure)?;
        match self.session.describe(&self.plan.probe) {
            Ok(described) => {
                if self.compared.as_ref() != Some(&described) {
                    self.compare()?;
                    self.compared = Some(described);
                }
                Ok(())
            }
            Err(error) if error.code == UNREACHABLE => Err(ReadFailure::Lost(error)),
            Err(error) => {
                // A column that is gone is said by its name.
                self.session.run("ROLLBACK").map_err(failure)?;
                self.compare()?;
                Err(ReadFailure::Fatal(error))
            }
        }
    }

    fn compare(&self) -> Result<(), ReadFailure> {
        let plan = &self.plan;
        let now = origin(&self.session, &plan.address.shown, &plan.origin).map_err(failure)?;
        plan.began.compare(&plain(&now.columns)).map_err(ReadFailure::Fatal)
    }

    fn end(&self) -> Result<(), ReadFailure> {
        self.session.run("COMMIT").map_err(failure)
    }

    /// Up to where may be read now.
    fn ask_newest(&self) -> Result<Option<Cap>, ReadFailure> {
        let (lead, from) = (self.plan.lead(), &self.plan.from);
        if !self.plan.instant || self.plan.lag {
            let sql = format!("SELECT {lead}::text FROM {from} WHERE {lead} IS NOT NULL ORDER BY {lead} DESC LIMIT 1");
            let newest = self.texts(&sql)?.into_iter().flatten().next();
            return Ok(newest.map(|text| Cap { value: KeyValue::Text(text), below: false }));
        }
        let hidden = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend'
            AND datname = current_database() AND query = '<insufficient privilege>') OR EXISTS (SELECT 1 FROM pg_prepared_xacts)";
        if self.session.ask(hidden, &[]).map_err(failure)?.first().is_some_and(|row| row.get(0)) {
            let message = format!(
                "this user doesn't see the transactions that are open, so it isn't known up to which {lead} {} is complete",
                self.plan.what
            );
            return Err(ReadFailure::Fatal(
                ConnectError::new(ORDER, message)
                    .help("`GRANT pg_read_all_stats` to the user, or say how late rows may appear: `lag: 1m`"),
            ));
        }
        // What a transaction writes as `now()` is its start: rows from then on may still appear.
        let oldest = "SELECT least(min(xact_start), clock_timestamp())::text FROM pg_stat_activity
            WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database() AND backend_type <> 'walsender'";
        let oldest = self.texts(oldest)?.into_iter().flatten().next();
        Ok(oldest.map(|text| Cap { value: KeyValue::Text(text), below: true }))
    }

    fn texts(&self, sql: &str) -> Result<Vec<Option<String>>, ReadFailure> {
        let rows = self.session.ask(sql, &[]).map_err(failure)?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

impl database::Connection for Reading {
    fn survey(&mut self) -> Result<Survey, ReadFailure> {
        let from = &self.plan.from;
        let rows = match self.plan.rows {
            Some(rows) => rows,
            None => {
                let counted = self.session.ask(&format!("SELECT count(*) FROM {from}"), &[]).map_err(failure)?;
                counted.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs())
            }
        };
        let nulls = match self.plan.nulls {
            true => {
                let sql = format!("SELECT EXISTS (SELECT 1 FROM {from} WHERE {} IS NULL)", self.plan.lead());
                self.session.ask(&sql, &[]).map_err(failure)?.first().is_some_and(|row| row.get(0))
            }
            false => false,
        };
        Ok(Survey { rows, nulls })
    }

    fn newest(&mut self) -> Result<Option<Cap>, ReadFailure> {
        self.begin()?;
        let newest = self.ask_newest()?;
        self.end()?;
        Ok(newest)
    }

    fn bounds(&mut self, parts: usize, cap: Option<&Cap>) -> Result<Vec<KeyValue>, ReadFailure> {
        let plan = &self.plan;
        let (lead, from) = (plan.lead(), &plan.from);
        let mut filter = format!("{lead} IS NOT NULL");
        if let Some(Cap { value, below }) = cap {
            filter.push_str(&format!(" AND {lead} {} {}", if *below { "<" } else { "<=" }, plan.literal(0, value)));
        }
        // A sample of whole blocks, where the table is large and can be sampled.
        let rows = plan.rows.unwrap_or(0);
        let sample = match plan.is_table && rows > 4 * SAMPLE {
            true => {
                format!(" TABLESAMPLE SYSTEM ({:.4}) REPEATABLE (1)", (100.0 * SAMPLE as f64 / rows as f64).max(0.01))
            }
            false => String::new(),
        };
        let shares: Vec<String> = (1..parts).map(|part| format!("{:.6}", part as f64 / parts as f64)).collect();
        let sql = |sample: &str| {
            format!(
                "SELECT DISTINCT ON (bounds.b) bounds.b::text FROM (SELECT unnest(percentile_disc(ARRAY[{}]::float8[]) WITHIN GROUP (ORDER BY {lead})) AS b
                   FROM {from}{sample} WHERE {filter}) bounds WHERE bounds.b < (SELECT max({lead}) FROM {from} WHERE {filter}) ORDER BY bounds.b",
                shares.join(", ")
            )
        };
        let bounds = match self.texts(&sql(&sample)) {
            // A view or a foreign table can't be sampled.
            Err(ReadFailure::Fatal(_)) if !sample.is_empty() => self.texts(&sql(""))?,
            other => other?,
        };
        Ok(bounds.into_iter().flatten().map(KeyValue::Text).collect())
    }

    fn read(&mut self, span: &Span, give: &mut dyn FnMut(Chunk) -> bool) -> Result<(), ReadFailure> {
        self.begin()?;
        let plan = &self.plan;
        let mut rows = Rows::new(plan, span);
        let mut wanted = true;
        let copied = self.session.copy_out(&plan.copy(span), |piece| {
            rows.piece(&piece)?;
            if rows.count >= ROWS {
                let full = std::mem::replace(&mut rows, Rows::new(plan, span));
                rows.begun = true;
                wanted = give(full.finish()?);
            }
            Ok(wanted)
        });
        match copied {
            // What was read of a broken stream is good, but its rest is read again from the last chunk on.
            Err(error) => Err(failure(error)),
            // Nobody waits for the rest, which the server would send before it answers again.
            Ok(()) if !wanted => Ok(()),
            Ok(()) => {
                self.end()?;
                if !rows.last.is_empty() {
                    give(rows.finish().map_err(ReadFailure::Fatal)?);
                }
                Ok(())
            }
        }
    }
}

/// Rows that are read into columns.
struct Rows<'p> {
    plan: &'p Plan,
    span: &'p Span<'p>,
    builders: Vec<ColumnBuilder>,
    faults: Faults,
    count: usize,
    bytes: u64,
    /// The beginning of the stream was seen.
    begun: bool,
    /// The last row, also one that was left out.
    last: Bytes,
    /// Where its increment stands in it.
    lead: std::ops::Range<usize>,
    /// The last rows with one increment, if that is wanted.
    tail: Tail<Bytes>,
}

impl<'p> Rows<'p> {
    fn new(plan: &'p Plan, span: &'p Span<'p>) -> Rows<'p> {
        let builder = |c: &ReadColumn| ColumnBuilder::new(&c.field.ty.with_nullable(true), ROWS);
        Rows {
            builders: plan.columns.iter().map(builder).collect(),
            plan,
            span,
            faults: Faults::default(),
            count: 0,
            bytes: 0,
            begun: false,
            last: Bytes::new(),
            lead: 0..0,
            tail: Tail::default(),
        }
    }

    /// Takes a piece of the stream: whole rows.
    fn piece(&mut self, piece: &Bytes) -> Result<(), ConnectError> {
        let broken =
            || ConnectError::new(UNREACHABLE, format!("{}: the server's answer is not understood", self.plan.what));
        let mut at = 0;
        if !self.begun {
            let head: &[u8; 4] = piece.get(15..19).and_then(|head| head.try_into().ok()).ok_or_else(broken)?;
            if !piece.starts_with(SIGNATURE) {
                return Err(broken());
            }
            at = 19 + u32::from_be_bytes(*head) as usize;
            self.begun = true;
        }
        while at < piece.len() {
            let count: [u8; 2] = piece.get(at..at + 2).and_then(|b| b.try_into().ok()).ok_or_else(broken)?;
            let count = i16::from_be_bytes(count);
            if count < 0 {
                break;
            }
            let start = at;
            at += 2;
            let mut fresh = true;
            if !self.span.seen.is_empty() {
                let end = (0..count).try_fold(at, |at, _| Some(field(piece, at)?.1)).ok_or_else(broken)?;
                fresh = !self.span.seen.take(&self.key(&piece[at..end])?);
                at = if fresh { at } else { end };
            }
            if fresh {
                at = self.row(piece, at, count as usize).ok_or_else(broken)?;
                self.count += 1;
            }
            let row = piece.slice(start + 2..at);
            if self.span.ties {
                let lead = self.lead(&row).ok_or_else(broken)?;
                let tied = self.tail.last().is_some_and(|last| last.get(self.lead.clone()) == row.get(lead.clone()));
                self.lead = lead;
                self.tail.push(row.clone(), tied);
            }
            self.last = row;
            self.bytes += (at - start) as u64;
        }
        Ok(())
    }

    /// Takes a row whose fields begin at `at`; where it ends.
    fn row(&mut self, piece: &[u8], mut at: usize, fields: usize) -> Option<usize> {
        for column in 0..fields {
            let (value, end) = field(piece, at)?;
            at = end;
            let Some(ReadColumn { field, form }) = self.plan.columns.get(column) else { continue };
            let ty = &field.ty.ty;
            let read = match value {
                None if field.ty.nullable => {
                    self.builders[column].push_null();
                    continue;
                }
                None => Err(unexpected_null(ty)),
                Some(bytes) => binary::read(bytes, form, ty),
            };
            match read {
                Ok(value) => self.builders[column].push(&value),
                Err(fault) => {
                    let Fault { code, rule, value: told } = fault;
                    self.faults.push(
                        self.count,
                        column,
                        Some(field.external_name()),
                        Fault { code, rule, value: told },
                    );
                    self.builders[column].push_null();
                }
            }
        }
        Some(at)
    }

    /// Where the first order column stands in a row. `None`: it isn't whole.
    fn lead(&self, row: &[u8]) -> Option<std::ops::Range<usize>> {
        let column = self.plan.order.first()?.at;
        let start = (0..column).try_fold(0, |at, _| Some(field(row, at)?.1))?;
        Some(start..field(row, start)?.1)
    }

    /// The key of a row.
    fn key(&self, row: &[u8]) -> Result<Key, ConnectError> {
        let plan = self.plan;
        let mut values: Vec<Option<&[u8]>> = Vec::new();
        let mut at = 0;
        while let Some((value, end)) = field(row, at) {
            values.push(value);
            at = end;
        }
        let skipped = usize::from(self.span.split.nulls).min(plan.order.len());
        let key = plan.order[skipped..].iter().map(|column| {
            let bytes = values.get(column.at).copied().flatten();
            bytes.and_then(|bytes| binary::key_text(bytes, &column.form)).map(KeyValue::Text).ok_or_else(|| {
                ConnectError::new(
                    ORDER,
                    format!("{} of {} is null in a row, so it can't be a key", column.sql, plan.what),
                )
                .help("name fields that are never null: `tiebreak: [id]`")
            })
        });
        key.collect()
    }

    fn finish(mut self) -> Result<Chunk, ConnectError> {
        let plan = self.plan;
        let last = match plan.order.is_empty() {
            true => None,
            false => Some(self.key(&self.last)?),
        };
        let tail = std::mem::take(&mut self.tail).map(|row| self.key(&row))?;
        let columns: Vec<ArrayRef> = self.builders.into_iter().map(ColumnBuilder::finish).collect();
        let keys = plan.order.iter().filter(|key| key.at < columns.len()).map(|key| {
            let field = &plan.columns[key.at].field;
            (field.external_name().to_string(), columns[key.at].clone(), field.ty.ty.clone())
        });
        let locate = Arc::new(KeyedRows { source: plan.source.clone(), keys: keys.collect() });
        Ok(Chunk { rows: self.count, faults: self.faults, locate, last, tail, bytes: self.bytes, columns })
    }
}

/// The field that begins at `at`, and where the next one does. `None`: there is no whole one.
fn field(bytes: &[u8], at: usize) -> Option<(Option<&[u8]>, usize)> {
    let length = i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
    let start = at + 4;
    match usize::try_from(length) {
        Err(_) => Some((None, start)),
        Ok(length) => Some((Some(bytes.get(start..start + length)?), start + length)),
    }
}
