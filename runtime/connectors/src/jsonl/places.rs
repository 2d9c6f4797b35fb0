//! Where the values of the fields stand in a chunk's lines. Lines mostly have the same keys in the same order: the key that followed
//! another last time is looked for behind it first, and only another one is looked up. A line that isn't walked over with ease (a key
//! with escapes, anything that is no JSON) is left to the reading of single lines, which also says what is wrong.

use std::collections::HashMap;

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

/// A key that was met.
struct Known {
    /// It with its quotes, the colon and the blanks up to the value.
    literal: Vec<u8>,
    /// The field that it stands for.
    field: Option<(usize, Part)>,
    /// The key that came next last time.
    next: usize,
}

/// The values of the fields in some lines.
pub(super) struct Places {
    fields: HashMap<String, (usize, Part)>,
    known: Vec<Known>,
    by_key: HashMap<Vec<u8>, usize>,
    /// The key that came first last time.
    first: usize,
    /// Most lines.
    room: usize,
    /// For each field, for each line: its first byte, and the one behind its last.
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Contents of strings with escapes, which stand nowhere in the chunk.
    beside: Vec<u8>,
}

impl Places {
    /// Of these fields.
    pub(super) fn new(fields: &[Field]) -> Self {
        let names = fields.iter().enumerate();
        Places {
            fields: names
                .map(|(at, field)| (field.external_name().to_string(), (at, Part::of(&field.ty.ty))))
                .collect(),
            known: Vec::new(),
            by_key: HashMap::new(),
            first: usize::MAX,
            room: 0,
            starts: Vec::new(),
            ends: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Makes room for so many lines.
    pub(super) fn clear(&mut self, lines: usize) {
        self.room = lines;
        let cells = lines * self.fields.len();
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

    /// Starts and ends of a field's values in so many lines. One that ends before it starts isn't there, or null.
    pub(super) fn column(&self, field: usize, lines: usize) -> (&[u32], &[u32]) {
        let from = field * self.room;
        (&self.starts[from..from + lines], &self.ends[from..from + lines])
    }

    /// Finds the values of the line that starts there, as the one of this number: where it ends. `None`: it isn't walked over with ease.
    pub(super) fn line(&mut self, data: &[u8], start: usize, number: usize) -> Option<usize> {
        for field in 0..self.fields.len() {
            self.put(field, number, MISSING);
        }
        let mut at = blanks(data, start);
        if data.get(at) != Some(&b'{') {
            return None;
        }
        at = blanks(data, at + 1);
        if data.get(at) == Some(&b'}') {
            return end_of_line(data, at + 1);
        }
        let (mut previous, mut guess) = (None::<usize>, self.first);
        loop {
            let key = match self.known.get(guess) {
                Some(known) if data[at..].starts_with(&known.literal) => {
                    at += known.literal.len();
                    guess
                }
                _ => {
                    let key = self.look_up(data, &mut at)?;
                    match previous {
                        None => self.first = key,
                        Some(previous) => self.known[previous].next = key,
                    }
                    key
                }
            };
            let field = self.known[key].field;
            at = self.value(data, at, field, number)?;
            at = blanks(data, at);
            match data.get(at) {
                Some(b',') => at = blanks(data, at + 1),
                Some(b'}') => return end_of_line(data, at + 1),
                _ => return None,
            }
            previous = Some(key);
            guess = self.known[key].next;
        }
    }

    fn put(&mut self, field: usize, number: usize, (start, end): (u32, u32)) {
        let at = field * self.room + number;
        (self.starts[at], self.ends[at]) = (start, end);
    }

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
        let field = std::str::from_utf8(key).ok().and_then(|key| self.fields.get(key).copied());
        self.known.push(Known { literal: literal.to_vec(), field, next: usize::MAX });
        self.by_key.insert(key.to_vec(), self.known.len() - 1);
        Some(self.known.len() - 1)
    }

    /// Writes a string's content beside a chunk of so many bytes: where it would stand behind that. `None`: it holds half of a surrogate pair.
    fn unescape(&mut self, json: &[u8], chunk: usize) -> Option<(usize, usize)> {
        let text: String = serde_json::from_slice(json).ok()?;
        let start = chunk + self.beside.len();
        self.beside.extend_from_slice(text.as_bytes());
        Some((start, start + text.len()))
    }

    /// Walks over the value that stands there, and notes it for its field.
    fn value(&mut self, data: &[u8], at: usize, field: Option<(usize, Part)>, number: usize) -> Option<usize> {
        let (mut inner, mut is_null) = (None, false);
        let end = match *data.get(at)? {
            b'"' => match (string_end(data, at + 1), field) {
                (Some(end), _) => {
                    inner = Some((at + 1, end));
                    end + 1
                }
                (None, field) => {
                    let end = scan::value_end(data, at)?;
                    if let Some((_, Part::Text)) = field {
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
            b'{' | b'[' => scan::value_end(data, at)?,
            _ => return None,
        };
        if let Some((field, part)) = field {
            let (start, end) = match inner {
                Some(inner) if part == Part::Text => inner,
                _ => (at, end),
            };
            self.put(field, number, if is_null { MISSING } else { (start as u32, end as u32) });
        }
        Some(end)
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

/// The end of the line behind an object, if nothing follows it there.
fn end_of_line(data: &[u8], at: usize) -> Option<usize> {
    let at = blanks(data, at);
    (at == data.len() || data[at] == b'\n').then_some(at)
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
