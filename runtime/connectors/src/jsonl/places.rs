//! Where the values of the fields stand in a chunk's lines. Lines mostly have the same keys in the same order: the key that followed
//! another last time is looked for behind it first, and only another one is looked up. A line that isn't walked over with ease (a key
//! with escapes, anything that is no JSON) is left to the reading of single lines, which also says what is wrong.

use std::collections::HashMap;
use std::ops::Range;

use arrow_buffer::Buffer;
use dfc_ir::{Field, Type};

use super::scan;

/// Keys that are remembered: where they are data, there is no end of them.
const MOST_KEYS: usize = 4_096;
/// The end of a value that isn't there, before its start.
const MISSING: (u32, u32) = (1, 0);

/// What of a value a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Of a string what is between its quotes, as [`crate::text::columns`] reads it.
    Text,
    /// The value as it is written.
    Whole,
}

impl Part {
    /// What a field of a type takes.
    pub(super) fn of(ty: &Type) -> Part {
        match ty {
            Type::String | Type::Int(_) | Type::Float64 | Type::Decimal(..) => Part::Text,
            Type::Date | Type::DateTime | Type::Timestamp => Part::Text,
            _ => Part::Whole,
        }
    }
}

/// What a key's value is for.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// This column takes that part of it.
    Column(usize, Part),
    /// It is an object of its own: the columns of this node take what is in it, and this one where it stands.
    Object(usize, usize),
}

/// A key that was met.
struct Known {
    /// It with its quotes, the colon and the blanks up to the value.
    literal: Vec<u8>,
    target: Option<Target>,
    /// The key that came next last time.
    next: usize,
}

/// The keys of an object.
struct Node {
    targets: HashMap<String, Target>,
    known: Vec<Known>,
    by_key: HashMap<Vec<u8>, usize>,
    /// The key that came first last time.
    first: usize,
    /// The columns that take something of it.
    columns: Range<usize>,
}

/// The columns of a field.
#[derive(Debug)]
pub(super) struct Shape {
    /// That of its value.
    pub column: usize,
    /// Those of a record's fields.
    pub fields: Vec<Shape>,
}

/// The values of the fields in some lines.
pub(super) struct Places {
    nodes: Vec<Node>,
    /// The columns of each field.
    pub shapes: Vec<Shape>,
    /// Number of columns.
    columns: usize,
    /// Most lines.
    room: usize,
    /// For each column, for each line: its first byte, and the one behind its last.
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Contents of strings with escapes, which stand nowhere in the chunk.
    beside: Vec<u8>,
}

impl Places {
    /// Of these fields.
    pub(super) fn new(fields: &[Field]) -> Self {
        let mut places = Places {
            nodes: Vec::new(),
            shapes: Vec::new(),
            columns: 0,
            room: 0,
            starts: Vec::new(),
            ends: Vec::new(),
            beside: Vec::new(),
        };
        places.shapes = places.node(fields);
        places
    }

    /// Adds a node of these fields, and those of the records among them.
    fn node(&mut self, fields: &[Field]) -> Vec<Shape> {
        let (node, first) = (self.nodes.len(), self.columns);
        self.nodes.push(Node {
            targets: HashMap::new(),
            known: Vec::new(),
            by_key: HashMap::new(),
            first: usize::MAX,
            columns: 0..0,
        });
        let mut shapes = Vec::with_capacity(fields.len());
        for field in fields {
            let column = self.columns;
            self.columns += 1;
            let (target, fields) = match &field.ty.ty {
                Type::Record(fields) => (Target::Object(self.nodes.len(), column), self.node(fields)),
                ty => (Target::Column(column, Part::of(ty)), Vec::new()),
            };
            self.nodes[node].targets.insert(field.external_name().to_string(), target);
            shapes.push(Shape { column, fields });
        }
        self.nodes[node].columns = first..self.columns;
        shapes
    }

    /// Makes room for so many lines.
    pub(super) fn clear(&mut self, lines: usize) {
        self.room = lines;
        let cells = lines * self.columns;
        self.starts.resize(cells, 0);
        self.ends.resize(cells, 0);
        self.beside.clear();
    }

    /// The text in which the values stand: the chunk's, and behind it what is beside it.
    pub(super) fn text(&self, chunk: &Buffer) -> Buffer {
        match self.beside.is_empty() {
            true => chunk.clone(),
            false => Buffer::from_vec([chunk.as_slice(), &self.beside].concat()),
        }
    }

    /// Starts and ends of a column's values in so many lines. One that ends before it starts isn't there, or null.
    pub(super) fn column(&self, column: usize, lines: usize) -> (&[u32], &[u32]) {
        let from = column * self.room;
        (&self.starts[from..from + lines], &self.ends[from..from + lines])
    }

    /// Finds the values of the line that starts there, as the one of this number: where it ends. `None`: it isn't walked over with ease.
    pub(super) fn line(&mut self, data: &[u8], start: usize, number: usize) -> Option<usize> {
        self.forget(0..self.columns, number);
        let at = blanks(data, start);
        if data.get(at) != Some(&b'{') {
            return None;
        }
        let at = blanks(data, self.object(0, 1, data, at + 1, number)?);
        (at == data.len() || data[at] == b'\n').then_some(at)
    }

    fn put(&mut self, column: usize, number: usize, (start, end): (u32, u32)) {
        let at = column * self.room + number;
        (self.starts[at], self.ends[at]) = (start, end);
    }

    fn forget(&mut self, columns: Range<usize>, number: usize) {
        columns.for_each(|column| self.put(column, number, MISSING));
    }

    /// Walks over an object of a node behind its `{`, so deep in the line: where it ends.
    fn object(&mut self, node: usize, depth: usize, data: &[u8], start: usize, number: usize) -> Option<usize> {
        let mut at = blanks(data, start);
        if data.get(at) == Some(&b'}') {
            return Some(at + 1);
        }
        let (mut previous, mut guess) = (None::<usize>, self.nodes[node].first);
        loop {
            let key = match self.nodes[node].known.get(guess) {
                Some(known) if data[at..].starts_with(&known.literal) => {
                    at += known.literal.len();
                    guess
                }
                _ => {
                    let node = &mut self.nodes[node];
                    let key = node.look_up(data, &mut at)?;
                    match previous {
                        None => node.first = key,
                        Some(previous) => node.known[previous].next = key,
                    }
                    key
                }
            };
            let target = self.nodes[node].known[key].target;
            at = blanks(data, self.value(data, at, depth, target, number)?);
            match data.get(at) {
                Some(b',') => at = blanks(data, at + 1),
                Some(b'}') => return Some(at + 1),
                _ => return None,
            }
            previous = Some(key);
            guess = self.nodes[node].known[key].next;
        }
    }

    /// Writes a string's content beside a chunk of so many bytes: where it would stand behind that. `None`: it holds half of a surrogate pair.
    fn unescape(&mut self, json: &[u8], chunk: usize) -> Option<(usize, usize)> {
        let text: String = serde_json::from_slice(json).ok()?;
        let start = chunk + self.beside.len();
        self.beside.extend_from_slice(text.as_bytes());
        Some((start, start + text.len()))
    }

    /// Walks over the value that stands there, and notes it for its column.
    fn value(&mut self, data: &[u8], at: usize, depth: usize, target: Option<Target>, number: usize) -> Option<usize> {
        let (column, part) = match target {
            Some(Target::Column(column, part)) => (Some(column), part),
            Some(Target::Object(node, column)) => return self.record(node, column, (data, at, depth), number),
            None => (None, Part::Whole),
        };
        let (mut inner, mut is_null) = (None, false);
        let end = match *data.get(at)? {
            b'"' => match string_end(data, at + 1) {
                Some(end) => {
                    inner = Some((at + 1, end));
                    end + 1
                }
                None => {
                    let end = scan::value_end(data, at, depth)?;
                    if part == Part::Text {
                        inner = Some(self.unescape(&data[at..end], data.len())?);
                    }
                    end
                }
            },
            b'-' | b'0'..=b'9' => number_end(data, at)?,
            b'n' => {
                is_null = true;
                word_end(data, at, b"null")?
            }
            b't' => word_end(data, at, b"true")?,
            b'f' => word_end(data, at, b"false")?,
            b'{' | b'[' => scan::value_end(data, at, depth)?,
            _ => return None,
        };
        if let Some(column) = column {
            let (start, end) = match inner {
                Some(inner) if part == Part::Text => inner,
                _ => (at, end),
            };
            self.put(column, number, if is_null { MISSING } else { (start as u32, end as u32) });
        }
        Some(end)
    }

    /// Walks over a record's object, or null.
    fn record(
        &mut self,
        node: usize,
        column: usize,
        (data, at, depth): (&[u8], usize, usize),
        number: usize,
    ) -> Option<usize> {
        // Of equal keys the last one counts, and nothing of those before.
        if self.starts[column * self.room + number] != MISSING.0 {
            self.forget(self.nodes[node].columns.clone(), number);
        }
        match data.get(at)? {
            b'{' => {
                // It stands behind a `{`, never where what is missing starts.
                self.put(column, number, (at as u32, at as u32));
                self.object(node, depth + 1, data, at + 1, number)
            }
            b'n' => {
                self.put(column, number, MISSING);
                word_end(data, at, b"null")
            }
            _ => None,
        }
    }
}

impl Node {
    /// The key that stands there, which moves on to its value.
    fn look_up(&mut self, data: &[u8], at: &mut usize) -> Option<usize> {
        if data.get(*at) != Some(&b'"') {
            return None;
        }
        let (start, end) = (*at, string_end(data, *at + 1)?);
        let colon = blanks(data, end + 1);
        if data.get(colon) != Some(&b':') {
            return None;
        }
        *at = blanks(data, colon + 1);
        let (key, literal) = (&data[start + 1..end], &data[start..*at]);
        if let Some(&known) = self.by_key.get(key) {
            self.known[known].literal = literal.to_vec();
            return Some(known);
        }
        if self.known.len() >= MOST_KEYS {
            return None;
        }
        let target = std::str::from_utf8(key).ok().and_then(|key| self.targets.get(key).copied());
        self.known.push(Known { literal: literal.to_vec(), target, next: usize::MAX });
        self.by_key.insert(key.to_vec(), self.known.len() - 1);
        Some(self.known.len() - 1)
    }
}

/// Behind blanks that end no line.
#[inline(always)]
fn blanks(data: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r') = data.get(at) {
        at += 1;
    }
    at
}

fn word_end(data: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    data[at..].starts_with(word).then_some(at + word.len())
}

/// The quote that ends a string whose text starts there and has no escapes.
#[inline(always)]
fn string_end(data: &[u8], at: usize) -> Option<usize> {
    dfc_eval::special_in_string(data, at).filter(|&end| data[end] == b'"')
}

/// Behind a number as JSON writes it.
#[inline(always)]
fn number_end(data: &[u8], at: usize) -> Option<usize> {
    let start = at + usize::from(data[at] == b'-');
    let mut at = digits_end(data, start)?;
    if data[start] == b'0' && at > start + 1 {
        return None;
    }
    if data.get(at) == Some(&b'.') {
        at = digits_end(data, at + 1)?;
    }
    if let Some(b'e' | b'E') = data.get(at) {
        at = digits_end(data, at + 1 + usize::from(matches!(data.get(at + 1), Some(b'+' | b'-'))))?;
    }
    Some(at)
}

/// Behind digits, of which there must be one.
#[inline(always)]
fn digits_end(data: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while data.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}
