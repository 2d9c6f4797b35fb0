//! What PostgreSQL's catalogue says of tables and queries: columns with their types, keys, indexes.

use dfc_ir::{DataType, Schema, Type};

use super::address::Address;
use super::session::Session;
use crate::ConnectError;
use crate::database::{Catalogue, Class, Column, From, REFUSED, listed, natural, quoted};
use crate::options::OptionReader;
use crate::schema::field;

/// How a value travels in binary form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    Bool,
    /// A signed integer of so many bytes.
    Int(usize),
    Float4,
    Float8,
    Numeric,
    Text,
    Bytes,
    Date,
    Time,
    /// With or without a zone: both are microseconds.
    Timestamp,
    Interval,
    Json,
    Jsonb,
    Uuid,
    Array(Box<Form>),
    /// The server turns it into text first.
    AsText,
}

/// A column of a table or a query.
#[derive(Debug, Clone)]
pub(crate) struct PgColumn {
    pub column: Column,
    pub form: Form,
}

/// A table, found.
pub(crate) struct Table {
    /// `"schema"."name"`
    pub sql: String,
    /// `"schema"`
    pub schema: String,
    pub columns: Vec<PgColumn>,
    pub keys: Vec<Vec<String>>,
    /// All unique keys, nulls or not.
    pub unique: Vec<Vec<String>>,
    pub indexed: Vec<String>,
    /// Its rows survive a crash of the server.
    pub logged: bool,
    /// About how many rows it has; negative: not known.
    pub estimate: f32,
}

/// Splits `schema.name`; a part in double quotes may hold dots.
///
/// # Errors
/// It isn't one or two names.
pub(crate) fn parts(name: &str) -> Result<(Option<String>, String), ConnectError> {
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    let mut chars = name.chars().peekable();
    let mut inside = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => {
                chars.next();
                part.push('"');
            }
            '"' if inside || part.is_empty() => inside = !inside,
            '.' if !inside => parts.push(std::mem::take(&mut part)),
            other => part.push(other),
        }
    }
    parts.push(part);
    for part in &parts {
        quoted(part)?;
    }
    match (inside, parts.as_mut_slice()) {
        (false, [name]) => Ok((None, std::mem::take(name))),
        (false, [schema, name]) => Ok((Some(std::mem::take(schema)), std::mem::take(name))),
        _ => Err(ConnectError::new("R0202", format!("`{name}` is no table's name"))
            .help("it is written `orders` or `sales.orders`; a name with a dot in it stands in double quotes")),
    }
}

const FIND: &str = "SELECT c.oid::int8, n.nspname::text, c.relpersistence = 'p', c.reltuples
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = $2::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND CASE WHEN $1::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $1::text END";

const COLUMNS: &str = "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull OR t.typnotnull,
      a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a',
      (CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END)::int8,
      CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

const KEYS: &str = "SELECT i.indisunique, i.indisprimary,
      array_to_string(ARRAY(SELECT coalesce(a.attname::text, '') FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) WITH ORDINALITY k(n, at)
        LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n AND k.n > 0 ORDER BY k.at), E'\\x01')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
    WHERE i.indrelid = $1::int8::oid AND i.indisvalid AND i.indpred IS NULL AND i.indimmediate AND m.amname = 'btree'
    ORDER BY i.indisprimary DESC, c.relname";

const TYPE: &str = "SELECT t.typtype::text, t.typcategory::text, t.typelem::int8, t.typname::text,
      array_to_string(ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder), E'\\x01')
    FROM pg_type t WHERE t.oid = $1::int8::oid";

/// Finds a table or view; `None`: there is none of this name.
///
/// # Errors
/// What the server says.
pub(crate) fn table(session: &Session, name: &str) -> Result<Option<Table>, ConnectError> {
    let (schema, name) = parts(name)?;
    let found = session.ask(FIND, &[&schema, &name])?;
    let Some(row) = found.first() else { return Ok(None) };
    let (oid, schema): (i64, String) = (row.get(0), row.get(1));
    let mut columns = Vec::new();
    for row in session.ask(COLUMNS, &[&oid])? {
        let (base, modifier): (i64, i32) = (row.get(5), row.get(6));
        let (class, form) = kind(session, base, modifier)?;
        columns.push(PgColumn {
            column: Column {
                name: row.get(0),
                class,
                declared: row.get(1),
                nullable: !row.get::<_, bool>(2),
                default: row.get(3),
                generated: row.get(4),
            },
            form,
        });
    }
    let (mut keys, mut unique, mut indexed) = (Vec::new(), Vec::new(), Vec::new());
    for row in session.ask(KEYS, &[&oid])? {
        let list: String = row.get(2);
        let names: Vec<String> = list.split('\x01').map(String::from).collect();
        indexed.extend(names.first().filter(|name| !name.is_empty()).cloned());
        // An expression has no name.
        if !row.get::<_, bool>(0) || names.iter().any(String::is_empty) {
            continue;
        }
        let null = |name: &String| columns.iter().any(|c| c.column.name == *name && c.column.nullable);
        if !names.iter().any(null) {
            keys.push(names.clone());
        }
        unique.push(names);
    }
    Ok(Some(Table {
        sql: format!("{}.{}", quoted(&schema)?, quoted(&name)?),
        schema: quoted(&schema)?,
        columns,
        keys,
        unique,
        indexed,
        logged: row.get(2),
        estimate: row.get(3),
    }))
}

/// Types by their numbers, which are the same in every server.
const TYPES: &[(i64, Class, Form)] = &[
    (16, Class::Bool, Form::Bool),
    (17, Class::Bytes, Form::Bytes),
    (20, Class::Int(64), Form::Int(8)),
    (21, Class::Int(16), Form::Int(2)),
    (23, Class::Int(32), Form::Int(4)),
    (25, Class::Text(None), Form::Text),
    (19, Class::Text(Some(63)), Form::Text),
    (114, Class::Json, Form::Json),
    (700, Class::Float32, Form::Float4),
    (701, Class::Float64, Form::Float8),
    (1042, Class::Text(None), Form::Text),
    (1043, Class::Text(None), Form::Text),
    (1082, Class::Date, Form::Date),
    (1083, Class::Time, Form::Time),
    (1114, Class::DateTime, Form::Timestamp),
    (1184, Class::Timestamp, Form::Timestamp),
    (1186, Class::Duration, Form::Interval),
    (1700, Class::Decimal(None), Form::Numeric),
    (2950, Class::Uuid, Form::Uuid),
    (3802, Class::Json, Form::Jsonb),
];

/// What kind of values a type has, and how they travel.
fn kind(session: &Session, oid: i64, modifier: i32) -> Result<(Class, Form), ConnectError> {
    if let Some((_, class, form)) = TYPES.iter().find(|(known, ..)| *known == oid) {
        let class = match class {
            Class::Decimal(_) => Class::Decimal(digits(modifier)),
            Class::Text(None) if modifier > 4 => Class::Text(u32::try_from(modifier - 4).ok()),
            other => other.clone(),
        };
        return Ok((class, form.clone()));
    }
    let found = session.ask(TYPE, &[&oid])?;
    let Some(row) = found.first() else { return Ok((Class::Other, Form::AsText)) };
    let (kind_of, category, element): (String, String, i64) = (row.get(0), row.get(1), row.get(2));
    match (kind_of.as_str(), category.as_str()) {
        ("e", _) => {
            let labels: String = row.get(4);
            Ok((Class::Labels(labels.split('\x01').map(String::from).collect()), Form::AsText))
        }
        (_, "A") if element != 0 => match kind(session, element, modifier)? {
            (class, form) if form != Form::AsText => Ok((Class::List(Box::new(class)), Form::Array(Box::new(form)))),
            _ => Ok((Class::Other, Form::AsText)),
        },
        _ if row.get::<_, String>(3) == "citext" => Ok((Class::Text(None), Form::Text)),
        _ => Ok((Class::Other, Form::AsText)),
    }
}

/// Precision and scale of a `numeric` with limits that decimals have too.
fn digits(modifier: i32) -> Option<(u8, u8)> {
    let limits = modifier - 4;
    let (precision, scale) = ((limits >> 16) & 0xffff, ((limits & 0x7ff) ^ 1024) - 1024);
    let (p, s) = (u8::try_from(precision).ok()?, u8::try_from(scale).ok()?);
    (modifier >= 4 && (1..=dfc_ir::types::MAX_PRECISION).contains(&p) && s <= p).then_some((p, s))
}

/// A source's table or query.
pub(crate) struct Origin {
    /// What stands behind `FROM`.
    pub sql: String,
    pub columns: Vec<PgColumn>,
    pub catalogue: Catalogue,
    /// About how many rows there are, if that is known.
    pub rows: Option<u64>,
    /// A table, of which a sample can be taken.
    pub is_table: bool,
}

/// Looks up what a source reads.
///
/// # Errors
/// There is no such table; the query is wrong.
pub(crate) fn origin(session: &Session, shown: &str, from: &From) -> Result<Origin, ConnectError> {
    match from {
        From::Table(name) => {
            let Some(table) = table(session, name)? else {
                return Err(missing(session, shown, name));
            };
            let names = table.columns.iter().map(|c| (c.column.name.clone(), c.column.nullable)).collect();
            Ok(Origin {
                sql: table.sql,
                columns: table.columns,
                catalogue: Catalogue { columns: names, keys: table.keys, indexed: table.indexed },
                rows: (table.estimate >= 0.0).then_some(table.estimate as u64),
                is_table: true,
            })
        }
        From::Query(query) => {
            let sql = format!("(\n{query}\n)");
            let mut columns = Vec::new();
            for (name, oid, modifier) in session.describe(&format!("SELECT * FROM {sql} AS q LIMIT 0"))? {
                let (class, form) = kind(session, oid.into(), modifier)?;
                let declared: String = session
                    .ask("SELECT format_type($1::int8::oid, $2)", &[&i64::from(oid), &modifier])?
                    .first()
                    .map_or_else(|| "text".into(), |row| row.get(0));
                columns.push(PgColumn {
                    column: Column { name, class, declared, nullable: true, default: false, generated: false },
                    form,
                });
            }
            let names = columns.iter().map(|c| (c.column.name.clone(), true)).collect();
            let catalogue = Catalogue { columns: names, ..Catalogue::default() };
            Ok(Origin { sql, columns, catalogue, rows: None, is_table: false })
        }
    }
}

/// The error of a table that isn't there.
pub(crate) fn missing(session: &Session, shown: &str, name: &str) -> ConnectError {
    let near = session.ask(
        "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p', 'v', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT 20",
        &[],
    );
    let names: Vec<String> = near.map(|rows| rows.iter().map(|row| row.get(0)).collect()).unwrap_or_default();
    let help = match names.as_slice() {
        [] => "it has no table, or none that this user sees".to_string(),
        names => format!("it has {}", listed(names)),
    };
    ConnectError::new(REFUSED, format!("the database {shown} has no table `{name}`")).help(help)
}

fn found(options: &OptionReader) -> Result<Vec<PgColumn>, ConnectError> {
    let address = Address::parse(&options.secret("url")?)?;
    let session = Session::open(&address, false)?;
    let from = match (options.text("table")?, options.text("query")?) {
        (Some(table), None) => From::Table(table.into()),
        (None, Some(query)) => From::Query(query.trim_end().trim_end_matches(';').into()),
        _ => {
            return Err(ConnectError::new(
                "R0202",
                "`postgres` takes `table` or `query`, and one of both must be given",
            ));
        }
    };
    Ok(origin(&session, &address.shown, &from)?.columns)
}

/// The fields of a table or query.
///
/// # Errors
/// What connecting and asking give.
pub(crate) fn find_fields(options: &OptionReader) -> Result<Schema, ConnectError> {
    let columns = found(options)?;
    let fields = columns.iter().enumerate().map(|(i, PgColumn { column, .. })| {
        let ty = natural(&column.class).unwrap_or(Type::String);
        field(i, &column.name, DataType { ty, nullable: column.nullable })
    });
    Ok(Schema { fields: fields.collect() })
}

/// The names of the columns.
///
/// # Errors
/// What connecting and asking give.
pub(crate) fn find_names(options: &OptionReader) -> Result<Vec<String>, ConnectError> {
    Ok(found(options)?.into_iter().map(|c| c.column.name).collect())
}
