//! Keys as bytes: equal keys have equal bytes, and the bytes give the values back.

use dfc_ir::{DataType, Type, Value};

use crate::fixed;

/// How the keys of a table are written.
///
/// The columns follow each other without gaps. Each is
///
/// 1. if its type is nullable, one byte: 0 for null, 1 for a value;
/// 2. for a type of fixed width its bytes as [`fixed`] says, all 0 for a null, −0.0 written as 0.0;
///    for text, JSON and bytes the number of bytes as a u32, little-endian, and the bytes (a null: number 0);
///    for a list the number of items as a u32 and each item as a column of its type (a null: number 0);
///    for a record its fields as columns (a null: nothing).
///
/// So nulls are equal to each other, and a key whose columns all have a fixed width has one, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLayout {
    /// The columns.
    pub parts: Vec<KeyPart>,
    /// Bytes of every key, if all its columns have a fixed width.
    pub fixed_bytes: Option<usize>,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// Its type. It begins with a byte that tells null from value if this is nullable.
    pub ty: DataType,
    /// Bytes of a value, without that byte, if its type has a fixed width.
    pub width: Option<usize>,
    /// Where it begins, if all columns before it have a fixed width.
    pub offset: Option<usize>,
}

impl KeyLayout {
    /// The layout of keys of these types.
    pub fn new(types: impl IntoIterator<Item = DataType>) -> Self {
        let mut next = Some(0);
        let parts = types
            .into_iter()
            .map(|ty| {
                let (width, offset) = (fixed::width(&ty.ty), next);
                next = offset.zip(width).map(|(offset, width)| offset + usize::from(ty.nullable) + width);
                KeyPart { ty, width, offset }
            })
            .collect();
        KeyLayout { parts, fixed_bytes: next }
    }

    /// Replaces `out` by the bytes of a key with these values, one a column.
    pub fn encode_key(&self, values: &[Value], out: &mut Vec<u8>) {
        out.clear();
        for (part, value) in self.parts.iter().zip(values) {
            encode(value, &part.ty, out);
        }
    }

    /// The values of a key.
    pub fn decode_key<'k>(&self, mut key: &'k [u8]) -> Vec<Value<'k>> {
        self.parts.iter().map(|part| decode(&mut key, &part.ty)).collect()
    }
}

/// Appends one column.
pub(crate) fn encode(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    if ty.nullable {
        out.push((!value.is_null()).into());
    }
    let mut counted = |bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match (value, &ty.ty) {
        (Value::Float(x), _) => {
            // −0.0 + 0.0 is 0.0.
            let bytes = fixed::encode(&Value::Float(x + 0.0), &ty.ty);
            out.extend_from_slice(&bytes[..fixed::width(&ty.ty).unwrap_or(0)]);
        }
        (Value::Str(text), _) => counted(text.as_bytes()),
        (Value::Bytes(bytes), _) => counted(bytes),
        (Value::List(items), Type::List(item)) => {
            out.extend_from_slice(&(items.len() as u32).to_le_bytes());
            items.iter().for_each(|value| encode(value, item, out));
        }
        (Value::Record(values), Type::Record(fields)) => {
            values.iter().zip(fields).for_each(|(value, field)| encode(value, &field.ty, out));
        }
        (Value::Null, Type::Record(_)) => {}
        (value, ty) => match fixed::width(ty) {
            Some(width) => out.extend_from_slice(&fixed::encode(value, ty)[..width]),
            None => counted(&[]),
        },
    }
}

/// Takes one column off the front of `key`, which [`encode`] has written.
pub(crate) fn decode<'k>(key: &mut &'k [u8], ty: &DataType) -> Value<'k> {
    fn take<'k>(key: &mut &'k [u8], count: usize) -> &'k [u8] {
        let (front, rest) = key.split_at(count);
        *key = rest;
        front
    }
    let present = !ty.nullable || take(key, 1) == [1];
    let value = match (&ty.ty, fixed::width(&ty.ty)) {
        (ty, Some(width)) => fixed::decode(take(key, width), ty),
        (Type::Record(_), _) if !present => Value::Null,
        (Type::Record(fields), _) => Value::Record(fields.iter().map(|field| decode(key, &field.ty)).collect()),
        (other, _) => {
            let count = u32::from_le_bytes(take(key, 4).try_into().unwrap_or_default()) as usize;
            match other {
                Type::List(item) => Value::List((0..count).map(|_| decode(key, item)).collect()),
                Type::Bytes => Value::Bytes(take(key, count).into()),
                // What was text when it was written is text now.
                _ => Value::Str(String::from_utf8_lossy(take(key, count))),
            }
        }
    };
    if present { value } else { Value::Null }
}

/// Takes one column off the front of bytes that anyone may have written; `None`: [`encode`] writes no such thing.
pub(crate) fn skip<'k>(mut key: &'k [u8], ty: &DataType) -> Option<&'k [u8]> {
    fn take<'k>(key: &mut &'k [u8], count: usize) -> Option<&'k [u8]> {
        let (front, rest) = key.split_at_checked(count)?;
        *key = rest;
        Some(front)
    }
    let present = !ty.nullable || matches!(take(&mut key, 1)?, [1]);
    match (&ty.ty, fixed::width(&ty.ty)) {
        (_, Some(width)) => drop(take(&mut key, width)?),
        (Type::Record(_), _) if !present => {}
        (Type::Record(fields), _) => {
            for field in fields {
                key = skip(key, &field.ty)?;
            }
        }
        (other, _) => {
            let count = u32::from_le_bytes(take(&mut key, 4)?.try_into().ok()?) as usize;
            match other {
                Type::List(item) => {
                    for _ in 0..count {
                        let before = key.len();
                        key = skip(key, item)?;
                        // Items without bytes (records without fields) could be counted for ever.
                        if key.len() == before && count > 1 << 20 {
                            return None;
                        }
                    }
                }
                Type::Bytes => drop(take(&mut key, count)?),
                _ => drop(std::str::from_utf8(take(&mut key, count)?).ok()?),
            }
        }
    }
    Some(key)
}

/// Where a hash begins.
pub const HASH_SEED: u64 = 0x243F_6A88_85A3_08D3;
/// Multiplies each word.
pub const HASH_WORD: u64 = 0x9E37_79B9_7F4A_7C15;
/// Multiplies the end.
pub const HASH_END: u64 = 0xD1B5_4A32_D192_ED03;

/// The two halves of the 128-bit product, xored.
#[inline]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of a key's bytes. Compiled code computes the same:
///
/// ```text
/// h = HASH_SEED
/// for each eight bytes, as a little-endian word w; the last ones, if fewer, filled up with zeros:
///     h = fold(h ^ w, HASH_WORD)
/// fold(h ^ len, HASH_END)
/// ```
///
/// The length comes last: before the first word it would cancel out with the length that a text begins with.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    let mut hash = HASH_SEED;
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = fold(hash ^ u64::from_le_bytes(*word), HASH_WORD);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = fold(hash ^ u64::from_le_bytes(word), HASH_WORD);
    }
    fold(hash ^ key.len() as u64, HASH_END)
}

/// Which of `parts` tasks a hash belongs to, by its high bits: `hash × parts ÷ 2⁶⁴`.
#[inline]
pub fn partition(hash: u64, parts: usize) -> usize {
    ((u128::from(hash) * parts as u128) >> 64) as usize
}
