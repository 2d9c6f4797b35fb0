//! What a SQLite file says of its tables: columns, keys, indexes. (A column's type is what it was declared as; values may differ.)

use dfc_ir::{DataType, Schema, Type};
use rusqlite::Connection;

use super::{Access, failed, open};
use crate::ConnectError;
use crate::database::{Catalogue, Class, Column, From, REFUSED, natural, quoted};
use crate::options::OptionReader;
use crate::schema::field;

/// A table as it was declared.
pub(crate) struct Table {
    pub columns: Vec<Column>,
    /// Unique keys without nulls, the primary key first.
    pub keys: Vec<Vec<String>>,
    /// First columns of indexes.
    pub indexed: Vec<String>,
}

/// Looks a table or view up; `None`: there is none of this name.
///
/// # Errors
/// When the file can't be read.
pub(crate) fn table(connection: &Connection, path: &str, name: &str) -> Result<Option<Table>, ConnectError> {
    look(connection, name).map_err(|error| failed(path, &error))
}

fn look(connection: &Connection, name: &str) -> rusqlite::Result<Option<Table>> {
    let without_rowid: Option<bool> = connection
        .query_row(
            "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE",
            [name],
            |row| row.get(0),
        )
        .map(Some)
        .or_else(none)?;
    let Some(without_rowid) = without_rowid else { return Ok(None) };
    let mut statement = connection.prepare(
        "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid",
    )?;
    let mut columns: Vec<Column> = Vec::new();
    let mut primary: Vec<(i64, String)> = Vec::new();
    let mut rows = statement.query([name])?;
    while let Some(row) = rows.next()? {
        let (name, declared, position): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(4)?);
        if position > 0 {
            primary.push((position, name.clone()));
        }
        columns.push(Column {
            name,
            class: class(&declared),
            nullable: !row.get::<_, bool>(2)?,
            default: row.get(3)?,
            generated: row.get::<_, i64>(5)? >= 2,
            declared: if declared.is_empty() { "of any type".into() } else { declared },
        });
    }
    primary.sort();
    let primary: Vec<String> = primary.into_iter().map(|(_, name)| name).collect();
    let is_rowid =
        |column: &Column| primary == [column.name.clone()] && column.declared.eq_ignore_ascii_case("INTEGER");
    for column in &mut columns {
        if is_rowid(column) {
            (column.nullable, column.default) = (false, true);
        } else if without_rowid && primary.contains(&column.name) {
            column.nullable = false;
        }
    }
    let mut keys = Vec::new();
    let mut indexed = Vec::new();
    if !primary.is_empty() {
        indexed.push(primary[0].clone());
        keys.push(primary);
    }
    let mut list =
        connection.prepare("SELECT name, \"unique\" FROM pragma_index_list(?1) WHERE partial = 0 ORDER BY name")?;
    let indexes: Vec<(String, bool)> =
        list.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (index, unique) in indexes {
        let mut parts = connection.prepare("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?;
        let parts: Vec<Option<String>> =
            parts.query_map([index], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        // An expression has no name.
        let Some(parts) = parts.into_iter().collect::<Option<Vec<String>>>() else { continue };
        indexed.extend(parts.first().cloned());
        if unique && !keys.contains(&parts) {
            keys.push(parts);
        }
    }
    // SQLite lets nulls into keys that aren't declared `NOT NULL`: then it counts whether there are any.
    let mut sound = Vec::new();
    for key in keys {
        let loose = key.iter().filter(|name| columns.iter().any(|column| column.name == **name && column.nullable));
        let tests: Vec<String> = loose.map(|name| format!("{} IS NULL", identifier(name))).collect();
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {} WHERE {})", identifier(name), tests.join(" OR "));
        if tests.is_empty() || !connection.query_row(&sql, [], |row| row.get::<_, bool>(0))? {
            sound.push(key);
        }
    }
    Ok(Some(Table { columns, keys: sound, indexed }))
}

/// A name that is in the catalogue, as SQL writes it.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn none<T>(error: rusqlite::Error) -> rusqlite::Result<Option<T>> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(None),
        other => Err(other),
    }
}

/// Declared types by their names, whatever their case; those that aren't here go by SQLite's rules of affinity.
const NAMED: &[(&str, Class)] = &[
    ("BOOL", Class::Bool),
    ("BOOLEAN", Class::Bool),
    ("DATE", Class::Date),
    ("TIME", Class::Time),
    ("DATETIME", Class::DateTime),
    ("TIMESTAMP", Class::Timestamp),
    ("TIMESTAMPTZ", Class::Timestamp),
    ("", Class::Any),
    ("ANY", Class::Any),
];

/// What kind of values a declared type stands for.
pub(crate) fn class(declared: &str) -> Class {
    let name = declared.trim().to_ascii_uppercase();
    if let Some((_, class)) = NAMED.iter().find(|(known, _)| *known == name) {
        return class.clone();
    }
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["JSON"]) => Class::Json,
        () if has(&["INT"]) => Class::Int(64),
        () if has(&["CHAR", "CLOB", "TEXT", "UUID"]) => Class::Text(None),
        () if has(&["BLOB"]) => Class::Bytes,
        () if has(&["REAL", "FLOA", "DOUB"]) => Class::Float64,
        () => Class::Decimal(digits(&name)),
    }
}

/// Precision and scale of `DECIMAL(10, 2)`.
fn digits(name: &str) -> Option<(u8, u8)> {
    let (p, s) = name.split_once('(')?.1.strip_suffix(')')?.split_once(',')?;
    let (p, s): (u8, u8) = (p.trim().parse().ok()?, s.trim().parse().ok()?);
    ((1..=dfc_ir::types::MAX_PRECISION).contains(&p) && s <= p).then_some((p, s))
}

/// The type under which values of a column are best read.
fn read_as(class: &Class) -> Type {
    natural(class).unwrap_or(match class {
        Class::Decimal(None) => Type::Float64,
        _ => Type::String,
    })
}

/// What is known of a source's table or query.
///
/// # Errors
/// There is no such table; the query is wrong.
pub(crate) fn of(connection: &Connection, path: &str, from: &From) -> Result<(Catalogue, Vec<Column>), ConnectError> {
    match from {
        From::Table(name) => {
            quoted(name)?;
            let Some(table) = table(connection, path, name)? else {
                let names = tables(connection).map_err(|error| failed(path, &error))?;
                return Err(ConnectError::new(REFUSED, format!("`{path}` has no table `{name}`"))
                    .help(format!("it has {}", crate::database::listed(names.iter().take(20)))));
            };
            let columns = table.columns.iter().map(|column| (column.name.clone(), column.nullable)).collect();
            Ok((Catalogue { columns, keys: table.keys, indexed: table.indexed }, table.columns))
        }
        From::Query(query) => {
            let sql = format!("SELECT * FROM (\n{query}\n) LIMIT 0");
            let statement = connection.prepare(&sql).map_err(|error| failed(path, &error))?;
            let column = |column: rusqlite::Column| Column {
                name: column.name().to_string(),
                class: class(column.decl_type().unwrap_or_default()),
                declared: column.decl_type().unwrap_or("of any type").to_string(),
                nullable: true,
                default: false,
                generated: false,
            };
            let columns: Vec<Column> = statement.columns().map(column).collect();
            let names = columns.iter().map(|column| (column.name.clone(), true)).collect();
            Ok((Catalogue { columns: names, ..Catalogue::default() }, columns))
        }
    }
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn found(options: &OptionReader) -> Result<Vec<Column>, ConnectError> {
    let path = options.required("path")?;
    let connection = open(path, Access::Read)?;
    let from = match (options.text("table")?, options.text("query")?) {
        (Some(table), None) => From::Table(table.into()),
        (None, Some(query)) => From::Query(query.trim_end().trim_end_matches(';').into()),
        _ => {
            return Err(ConnectError::new("R0202", "`sqlite` takes `table` or `query`, and one of both must be given"));
        }
    };
    Ok(of(&connection, path, &from)?.1)
}

/// The fields of a table or query.
///
/// # Errors
/// What opening and asking give.
pub(crate) fn find_fields(options: &OptionReader) -> Result<Schema, ConnectError> {
    let columns = found(options)?;
    let fields = columns
        .iter()
        .enumerate()
        .map(|(i, column)| field(i, &column.name, DataType { ty: read_as(&column.class), nullable: column.nullable }));
    Ok(Schema { fields: fields.collect() })
}

/// The names of the columns.
///
/// # Errors
/// What opening and asking give.
pub(crate) fn find_names(options: &OptionReader) -> Result<Vec<String>, ConnectError> {
    Ok(found(options)?.into_iter().map(|column| column.name).collect())
}
