//! What one side of an audit holds: its rows counted, the greatest value of a column, and hashes by ranges of a key, for which the order of
//! rows doesn't matter. It may not know which side it is.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use dfc_batch::value_at;
use dfc_connect::{Next, OpenContext, open_source};
use dfc_ir::plan::SourceSpec;
use dfc_ir::{Type, Value};
use serde_json::{Value as Json, json};

use super::trace::{Pair, Shared};
use crate::summary::count;

/// Ranges at most: where there would be more they are made wider.
const RANGES: usize = 1024;

/// The columns of one side that are looked at, as positions among those that are read.
pub struct Columns {
    /// Positions in the declared fields, ascending.
    projection: Vec<usize>,
    /// Those that are hashed with their types, in the same order on both sides.
    hashed: Vec<(usize, Type)>,
    greatest: Option<(usize, Type)>,
    key: Option<(usize, Type)>,
}

/// What is read of both sides.
pub struct Wanted {
    pub source: Columns,
    pub target: Columns,
}

impl Wanted {
    /// With content, or counts alone.
    pub fn new(pair: &Pair, content: bool) -> Wanted {
        let hashed: Vec<&Shared> = match content {
            true => pair.shared.iter().collect(),
            // Which rows are new is told by something.
            false => pair.increment.iter().chain(pair.shared.first()).take(1).collect(),
        };
        let key = pair.key.as_ref().filter(|_| content);
        let columns = |of: fn(&Shared) -> usize| {
            let mut projection: Vec<usize> = hashed.iter().copied().chain(key).chain(&pair.increment).map(of).collect();
            projection.sort_unstable();
            projection.dedup();
            // All of them are in it.
            let read = |shared: &Shared| (projection.binary_search(&of(shared)).unwrap_or_default(), shared.ty.clone());
            Columns {
                hashed: hashed.iter().map(|shared| read(shared)).collect(),
                greatest: pair.increment.as_ref().map(read),
                key: key.map(read),
                projection,
            }
        };
        Wanted { source: columns(|shared| shared.at.0), target: columns(|shared| shared.at.1) }
    }

    /// Counts rows that come after a position, by their hash.
    pub fn new_rows(&self, spec: &SourceSpec, cx: &OpenContext, rows: &mut HashMap<u64, u64>) -> Result<(), String> {
        each(spec, &self.source, cx, &mut |row| *rows.entry(row.hash).or_default() += 1).map(drop)
    }
}

/// What a side holds.
#[derive(Default)]
pub struct Content {
    pub rows: u64,
    pub greatest: Option<Value<'static>>,
    pub ranges: Ranges,
}

/// Reads a side, without the rows of `without`, as often as they are there. With the number of row errors.
pub fn read(
    spec: &SourceSpec,
    columns: &Columns,
    cx: &OpenContext,
    without: &mut HashMap<u64, u64>,
) -> Result<(Content, u64), String> {
    let mut content = Content::default();
    let rejected = each(spec, columns, cx, &mut |row| {
        if let Some(left) = without.get_mut(&row.hash).filter(|left| **left > 0) {
            *left -= 1;
            return;
        }
        content.rows += 1;
        let greater = |known: &Value, value: &Value| dfc_eval::compare(known, value) == Some(std::cmp::Ordering::Less);
        if let Some(value) = row.greatest.filter(|value| !value.is_null())
            && content.greatest.as_ref().is_none_or(|known| greater(known, &value))
        {
            content.greatest = Some(value.into_owned());
        }
        if let Some(key) = row.key {
            content.ranges.add(key, row.hash);
        }
    })?;
    Ok((content, rejected))
}

/// Gives the hash of each row of a source, of those of its declared fields that are named by position.
pub fn hashes(spec: &SourceSpec, fields: &[usize], mut take: impl FnMut(u64)) -> Result<(), String> {
    let hashed = fields.iter().enumerate().map(|(at, field)| (at, spec.schema.fields[*field].ty.ty.clone())).collect();
    let columns = Columns { projection: fields.to_vec(), hashed, greatest: None, key: None };
    let cx = OpenContext { tasks: 1, ..OpenContext::default() };
    each(spec, &columns, &cx, &mut |row| take(row.hash)).map(drop)
}

struct Row<'a> {
    hash: u64,
    greatest: Option<Value<'a>>,
    key: Option<Value<'a>>,
}

fn each(spec: &SourceSpec, columns: &Columns, cx: &OpenContext, take: &mut dyn FnMut(Row)) -> Result<u64, String> {
    let spec = SourceSpec { projection: columns.projection.clone(), ..spec.clone() };
    let failed = |error: dfc_connect::ConnectError| error.message;
    let source = open_source(&spec, cx).map_err(failed)?;
    let mut reader = source.reader(0).map_err(failed)?;
    let (mut errors, mut rejected) = (Vec::new(), 0);
    loop {
        let batch = match reader.next(&mut errors).map_err(failed)? {
            Next::Batch(batch) => batch,
            Next::Barrier(_) => continue,
            Next::Wait(time) => {
                std::thread::sleep(time.min(Duration::from_millis(5)));
                continue;
            }
            Next::End => return Ok(rejected),
        };
        rejected += errors.drain(..).count() as u64;
        for row in 0..batch.rows {
            let value = |(at, ty): &(usize, Type)| value_at(&batch.columns[*at], ty, row);
            let mut hasher = DefaultHasher::new();
            columns.hashed.iter().for_each(|column| value(column).hash(&mut hasher));
            take(Row {
                hash: hasher.finish(),
                greatest: columns.greatest.as_ref().map(value),
                key: columns.key.as_ref().map(value),
            });
        }
    }
}

/// Rows of a range of a key.
#[derive(Debug, Clone, Default, PartialEq)]
struct Range {
    rows: u64,
    /// The sum of their hashes.
    hash: u64,
    /// Its least and its greatest key.
    ends: Option<(Value<'static>, Value<'static>)>,
}

impl Range {
    fn merge(&mut self, other: Range) {
        self.rows += other.rows;
        self.hash = self.hash.wrapping_add(other.hash);
        for key in other.ends.into_iter().flat_map(|(low, high)| [low, high]) {
            self.widen(&key);
        }
    }

    fn widen(&mut self, key: &Value) {
        use std::cmp::Ordering::{Greater, Less};
        match &mut self.ends {
            None => self.ends = Some((key.clone().into_owned(), key.clone().into_owned())),
            Some((low, high)) => {
                if dfc_eval::compare(key, low) == Some(Less) {
                    *low = key.clone().into_owned();
                }
                if dfc_eval::compare(key, high) == Some(Greater) {
                    *high = key.clone().into_owned();
                }
            }
        }
    }
}

/// Rows by ranges of a key, which are as wide as it takes to be few.
#[derive(Debug, Clone, Default)]
pub struct Ranges {
    /// Twice as wide for each step.
    doubled: u32,
    by_start: BTreeMap<Option<i128>, Range>,
}

/// Ranges that are not the same on both sides.
pub struct Difference {
    source: Range,
    target: Range,
}

impl Ranges {
    fn add(&mut self, key: Value, hash: u64) {
        let place = place(&key).map(|place| place >> self.doubled);
        let range = self.by_start.entry(place).or_default();
        range.rows += 1;
        range.hash = range.hash.wrapping_add(hash);
        range.widen(&key);
        while self.by_start.len() > RANGES {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.doubled += 1;
        let mut wider: BTreeMap<Option<i128>, Range> = BTreeMap::new();
        for (start, range) in std::mem::take(&mut self.by_start) {
            wider.entry(start.map(|start| start >> 1)).or_default().merge(range);
        }
        self.by_start = wider;
    }

    /// How many ranges both have together, and those that differ.
    pub fn differences(&self, other: &Ranges) -> (usize, Vec<Difference>) {
        let (mut source, mut target) = (self.clone(), other.clone());
        while source.doubled < target.doubled {
            source.widen();
        }
        while target.doubled < source.doubled {
            target.widen();
        }
        let mut both: BTreeMap<Option<i128>, (Range, Range)> = BTreeMap::new();
        for (start, range) in source.by_start {
            both.entry(start).or_default().0 = range;
        }
        for (start, range) in target.by_start {
            both.entry(start).or_default().1 = range;
        }
        let differ = |(source, target): &(Range, Range)| source.rows != target.rows || source.hash != target.hash;
        let all = both.len();
        let different = both.into_values().filter(differ);
        (all, different.map(|(source, target)| Difference { source, target }).collect())
    }
}

impl Difference {
    fn ends(&self, ty: &Type) -> (String, String) {
        let mut both = self.source.clone();
        both.merge(self.target.clone());
        match both.ends {
            Some((low, high)) => (dfc_eval::format_value(&low, ty), dfc_eval::format_value(&high, ty)),
            None => ("null".into(), "null".into()),
        }
    }

    /// For people.
    pub fn text(&self, ty: &Type) -> String {
        let (low, high) = self.ends(ty);
        let (here, there) = (self.source.rows, self.target.rows);
        let range = if low == high { low } else { format!("{low} to {high}") };
        match here == there {
            true => format!("{range}: {} rows in both, with other values", count(here)),
            false => format!("{range}: {} rows in the source, {} in the target", count(here), count(there)),
        }
    }

    /// For tools.
    pub fn json(&self, ty: &Type) -> Json {
        let (low, high) = self.ends(ty);
        json!({ "from": low, "to": high, "source": self.source.rows, "target": self.target.rows })
    }
}

/// A number that grows with the key, though perhaps not strictly; `None` for null.
fn place(key: &Value) -> Option<i128> {
    match key {
        Value::Null => None,
        Value::Bool(v) => Some(i128::from(*v)),
        Value::Int(v) | Value::Decimal(v) => Some(*v),
        // Saturates.
        Value::Float(v) => Some(v.floor() as i128),
        Value::Date(v) => Some(i128::from(*v)),
        Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v) => Some(i128::from(*v)),
        Value::Str(text) => Some(beginning(text.as_bytes())),
        Value::Bytes(bytes) => Some(beginning(bytes)),
        // They have no order.
        Value::List(_) | Value::Record(_) => Some(0),
    }
}

/// The first eight bytes as a number.
fn beginning(bytes: &[u8]) -> i128 {
    (0..8).fold(0, |number, at| number << 8 | i128::from(bytes.get(at).copied().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(keys: impl Iterator<Item = i128>) -> Ranges {
        let mut ranges = Ranges::default();
        keys.for_each(|key| ranges.add(Value::Int(key), (key as u64).wrapping_mul(7)));
        ranges
    }

    #[test]
    fn ranges_differ_where_rows_do_whatever_their_order_and_width() {
        let all = ranges(-5_000..20_000);
        let (number, different) = all.differences(&ranges((-5_000..20_000).rev()));
        assert!((RANGES / 3..=RANGES).contains(&number) && different.is_empty(), "{number}");
        // The other side has fewer rows, and narrower ranges.
        let few = ranges(0..100);
        assert!(few.doubled < all.doubled);
        let (_, different) = few.differences(&ranges(1..100));
        let texts: Vec<String> = different.iter().map(|d| d.text(&Type::Int(dfc_ir::types::IntType::I64))).collect();
        assert_eq!(texts, ["0: 1 rows in the source, 0 in the target"]);
        let (_, different) = all.differences(&ranges((-5_000..20_000).filter(|key| *key != 17)));
        assert_eq!(different.len(), 1);
        assert_eq!(different[0].source.rows, different[0].target.rows + 1);
    }
}
