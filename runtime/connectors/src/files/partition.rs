//! Partitions of a folder in Hive's style: rows of equal values lie in one folder, `day=2026-01-31/country=DE`, and don't carry the fields
//! that its name says. It may not know the files' format.

use std::collections::HashMap;

use dfc_batch::{Batch, RowError, select, value_at};
use dfc_ir::{Schema, Type, Value};

use crate::{ConnectError, Encoded, Encoder};

/// What Hive calls the partition of null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Bytes of the longest name of a folder.
const LONGEST: usize = 255;

/// Fields that make partitions.
#[derive(Debug, Clone)]
pub(crate) struct Partitions {
    by: Vec<(usize, String, Type)>,
    rest: Vec<usize>,
}

impl Partitions {
    /// Of these fields of a schema; and the fields that stay in the files.
    ///
    /// # Errors
    /// A field that isn't there or can't be a folder's name, or none that stays.
    pub(crate) fn new(by: &[String], schema: &Schema) -> Result<(Self, Schema), ConnectError> {
        let refuse = |message: String, help: &str| Err(ConnectError::new("R0202", message).help(help));
        let mut fields = Vec::new();
        for name in by {
            let Some(at) = schema.fields.iter().position(|field| field.name == *name) else {
                return refuse(
                    format!("`by` names `{name}`, which is no field of the target"),
                    "bring it there with `derive(…)`",
                );
            };
            let ty = schema.fields[at].ty.ty.clone();
            if matches!(ty, Type::List(_) | Type::Record(_) | Type::Json | Type::Bytes) {
                return refuse(
                    format!("`by` names `{name}`, which is {ty}"),
                    "a folder's name is a text, a number, a date or a bool",
                );
            }
            fields.push((at, schema.fields[at].external_name().to_string(), ty));
        }
        let rest: Vec<usize> = (0..schema.len()).filter(|i| fields.iter().all(|(at, ..)| at != i)).collect();
        if rest.is_empty() {
            return refuse(
                "`by` names every field: nothing stays to be written".into(),
                "leave at least one field out of it",
            );
        }
        let left = Schema { fields: rest.iter().map(|&i| schema.fields[i].clone()).collect() };
        Ok((Partitions { by: fields, rest }, left))
    }

    /// The folder of a row, or the field that has no name there.
    fn folder(&self, batch: &Batch, row: usize) -> Result<String, (&str, String)> {
        let mut folder = String::new();
        for (at, name, ty) in &self.by {
            let text = match value_at(&batch.columns[*at], ty, row) {
                Value::Null => NULL.to_string(),
                value => escaped(&dfc_eval::format_value(&value, ty)),
            };
            let part = format!("{}={text}", escaped(name));
            if part.len() > LONGEST {
                return Err((name, text));
            }
            if !folder.is_empty() {
                folder.push('/');
            }
            folder += &part;
        }
        Ok(folder)
    }

    /// The rows of each folder, in the order in which they come.
    fn split(&self, batch: &Batch, errors: &mut Vec<RowError>) -> Vec<(String, Batch)> {
        let mut found: HashMap<String, usize> = HashMap::new();
        let mut rows: Vec<(String, Vec<u32>)> = Vec::new();
        for row in 0..batch.rows {
            match self.folder(batch, row) {
                Ok(folder) => {
                    let at = *found.entry(folder).or_insert_with_key(|folder| {
                        rows.push((folder.clone(), Vec::new()));
                        rows.len() - 1
                    });
                    rows[at].1.push(row as u32);
                }
                Err((field, text)) => errors.push(RowError {
                    place: batch.origin.as_ref().map(|o| o.place(row)),
                    raw: batch.origin.as_ref().and_then(|o| o.raw(row)),
                    field: Some(field.to_string()),
                    value: Some(crate::rows::shown(text.as_bytes())),
                    ..RowError::new("R0310", format!("a folder's name has at most {LONGEST} bytes"))
                }),
            }
        }
        let cut = |(folder, rows): (String, Vec<u32>)| {
            let part = select(batch, &rows);
            let columns = self.rest.iter().map(|&i| part.columns[i].clone()).collect();
            (folder, Batch { columns, ..part })
        };
        rows.into_iter().map(cut).collect()
    }

    /// An encoder that deals rows out to folders, before another.
    pub(crate) fn encoder(&self, inner: Box<dyn Encoder>) -> Box<dyn Encoder> {
        Box::new(ByPartition { partitions: self.clone(), inner })
    }
}

struct ByPartition {
    partitions: Partitions,
    inner: Box<dyn Encoder>,
}

impl Encoder for ByPartition {
    fn encode(&mut self, batch: Batch, errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let mut parts = Vec::new();
        let mut written = 0;
        for (folder, rows) in self.partitions.split(&batch, errors) {
            let (encoded, rows) = self.inner.encode(rows, errors)?;
            written += rows;
            parts.push((folder, encoded));
        }
        Ok((Encoded::Parts(parts), written))
    }
}

/// As Hive writes it: what has a meaning in a path, and what can't be seen, by its number.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '\u{7f}' | '{' | '[' | ']' | '^' => {
                out += &format!("%{:02X}", c as u32);
            }
            c if c < ' ' => out += &format!("%{:02X}", c as u32),
            c => out.push(c),
        }
    }
    out
}
