//! The fields of JSON lines: keys and types from a sample of the lines.

use std::collections::HashMap;

use dfc_ir::{DataType, Field, Schema, Type};

use super::scan;
use crate::ConnectError;
use crate::files::{COMPRESSIONS, Encoding};
use crate::infer::Guess;
use crate::options::OptionReader;
use crate::schema::{field, sample, sampled};

/// An inner object with more keys than this is taken for a table of its own, not for a record.
const MAX_KEYS: usize = 64;
/// How deep inner objects and lists are looked into; what is deeper is JSON.
const MAX_DEPTH: usize = 8;

/// What the values of a key have in common.
#[derive(Default)]
struct Values {
    null: bool,
    guess: Guess,
    text: bool,
    number: bool,
    objects: Option<Keys>,
    lists: Option<Box<Values>>,
    /// Deeper than is looked.
    deep: bool,
}

/// The keys of objects, in the order in which they come first.
#[derive(Default)]
struct Keys {
    objects: usize,
    order: Vec<Key>,
    at: HashMap<String, usize>,
}

struct Key {
    name: String,
    values: Values,
    /// Number of objects that have it, and of the last of these.
    objects: usize,
    last: usize,
}

/// The fields: all keys of the sampled lines. A key that a line lacks, or has with null, may be null.
///
/// # Errors
/// What reading the files gives; a line that is no object.
pub(crate) fn find_fields(options: &OptionReader) -> Result<Schema, ConnectError> {
    let mut keys = Keys::default();
    for file in sampled(options.required("path")?)? {
        let (data, whole) = sample(&file, options.choice("compression", &COMPRESSIONS)?, Encoding::Utf8)?;
        // The last line of a sample may be cut off.
        let end = if whole { data.len() } else { memchr::memrchr(b'\n', &data).unwrap_or(0) };
        for (number, line) in data[..end].split(|b| *b == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let damaged = |why: String| {
                ConnectError::new("R0214", format!("`{}` line {}: {why}", file.name, number + 1))
                    .help("mend the line, or declare the fields: `schema: record { id: int64, … }`")
            };
            let text = std::str::from_utf8(line).map_err(|_| damaged("the line is no UTF-8 text".into()))?;
            keys.object(text.trim_end_matches('\r'), 0).map_err(|e| damaged(format!("no JSON object: {}", e.why)))?;
        }
    }
    if keys.order.is_empty() {
        return Err(ConnectError::new("R0214", "there is no line to tell the fields from")
            .help("declare them: `schema: record { id: int64, … }`"));
    }
    Ok(Schema { fields: keys.fields() })
}

impl Keys {
    fn object(&mut self, text: &str, depth: usize) -> Result<(), scan::NotJson> {
        self.objects += 1;
        let mut members: Vec<(&str, &str)> = Vec::new();
        scan::object(text, |key, value| members.push((key, value)))?;
        for (key, value) in members {
            // Half of a surrogate pair: no field can be called so.
            let Ok(key) = serde_json::from_str::<String>(key) else { continue };
            let at = *self.at.entry(key.clone()).or_insert_with(|| {
                self.order.push(Key { name: key, values: Values::default(), objects: 0, last: 0 });
                self.order.len() - 1
            });
            let known = &mut self.order[at];
            if known.last != self.objects {
                known.last = self.objects;
                known.objects += 1;
            }
            known.values.value(value, depth)?;
        }
        Ok(())
    }

    fn fields(&self) -> Vec<Field> {
        let ty = |key: &Key| {
            let ty = key.values.ty();
            let nullable = ty.nullable || key.objects < self.objects;
            ty.with_nullable(nullable)
        };
        self.order.iter().enumerate().map(|(i, key)| field(i, &key.name, ty(key))).collect()
    }
}

impl Values {
    fn value(&mut self, text: &str, depth: usize) -> Result<(), scan::NotJson> {
        match text.as_bytes().first() {
            Some(b'n') => self.null = true,
            Some(b't' | b'f') => self.guess.bool(),
            Some(b'"') => {
                self.text = true;
                // What is no text of whole characters can't be a date either.
                let decoded = serde_json::from_str::<String>(text).unwrap_or_default();
                self.guess.text(&decoded, None);
            }
            Some(b'{' | b'[') if depth >= MAX_DEPTH => self.deep = true,
            Some(b'{') => self.objects.get_or_insert_default().object(text, depth + 1)?,
            Some(b'[') => {
                let mut items: Vec<&str> = Vec::new();
                scan::array(text, |item| items.push(item))?;
                let list = self.lists.get_or_insert_default();
                for item in items {
                    list.value(item, depth + 1)?;
                }
            }
            _ => {
                self.number = true;
                self.guess.json_number(text);
            }
        }
        Ok(())
    }

    fn ty(&self) -> DataType {
        let kinds = [self.guess.seen, self.objects.is_some(), self.lists.is_some(), self.deep];
        let ty = match kinds.iter().filter(|kind| **kind).count() {
            0 => Type::Json,
            1 if self.guess.seen => self.scalar(),
            1 => match (&self.objects, &self.lists) {
                (Some(keys), _) if (1..=MAX_KEYS).contains(&keys.order.len()) => Type::Record(keys.fields()),
                // Of an empty list nothing is known.
                (_, Some(items)) if items.any() => Type::List(Box::new(items.ty())),
                _ => Type::Json,
            },
            _ => Type::Json,
        };
        DataType { ty, nullable: self.null || kinds.iter().all(|kind| !kind) }
    }

    /// Numbers written as text stay text.
    fn scalar(&self) -> Type {
        let ty = self.guess.ty(None).ty;
        let shown_by_text = ty.is_temporal() || ty == Type::String;
        if self.text && !shown_by_text { Type::String } else { ty }
    }

    fn any(&self) -> bool {
        self.guess.seen || self.objects.is_some() || self.lists.is_some() || self.deep
    }
}
