//! What compiled code and its helpers share while one batch passes: the layout that both agree on. It may not know expressions.

use std::ffi::c_void;

use dfc_batch::Batch;
use dfc_eval::Env;
use dfc_ir::{Type, Value};

use crate::islands::Pool;

/// An input column as compiled code reads it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct ColumnIn {
    /// The first row's value, its bitmap for bools, its 16-byte view for text.
    pub(crate) values: *const u8,
    /// Number of the first row's bit, for bools.
    pub(crate) first_bit: u64,
    /// The bitmap of the rows that are not null.
    pub(crate) validity: *const u8,
    /// Number of the first row's bit there.
    pub(crate) first_valid: u64,
    /// Addresses of the buffers that views point into; at least one entry.
    pub(crate) buffers: *const *const u8,
}

/// An output column as compiled code writes it, densely.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct ColumnOut {
    /// Room for a value of every row of the batch.
    pub(crate) values: *mut u8,
    /// A byte a row, 1 or 0, where the column may be null.
    pub(crate) validity: *mut u8,
}

/// A piece of text: a constant, or a helper's result.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct TextRef {
    pub(crate) ptr: *const u8,
    pub(crate) len: u64,
}

/// An operand or result of a helper that takes values of any type.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Slot {
    /// The register's bits; the address of text.
    pub(crate) low: u64,
    /// The high half of an i128; the length of text.
    pub(crate) high: u64,
    /// 1 where there is a value.
    pub(crate) valid: u64,
    padding: u64,
}

/// The state of one pass over a batch.
#[repr(C)]
pub(crate) struct Context {
    /// One for each column of the input; those that the code doesn't read are null.
    pub(crate) columns: *const ColumnIn,
    /// One for each computed output.
    pub(crate) outputs: *const ColumnOut,
    /// Room for the index of every row: those that are kept.
    pub(crate) selection: *mut u32,
    /// Room for the index of every row: those that failed.
    pub(crate) failed: *mut u32,
    /// Number of indices in `failed`.
    pub(crate) failed_count: u64,
    /// Number of indices in `selection`.
    pub(crate) kept: u64,
    /// So many indices at its beginning are not written: they are those of the first rows, all of which were kept.
    pub(crate) unselected: u64,
    /// Text constants.
    pub(crate) constants: *const TextRef,
    /// The group table of a fused aggregate.
    pub(crate) table: *mut c_void,
    /// The arrival number of the batch's first row.
    pub(crate) ordinal: u64,
    /// Recently used groups of a fused aggregate.
    pub(crate) cache: *mut u8,
    /// Bytes of `arena` in use.
    pub(crate) arena_used: u64,
    /// Where helpers put texts that live as long as the row. Its address may change between rows only.
    arena: Vec<u8>,
    /// What did not fit into `arena` in this row.
    overflow: Vec<Vec<u8>>,
    /// The long texts of each computed text output.
    pub(crate) texts: Vec<TextBlocks>,
    /// The key of the current row's group, and whatever else is built piece by piece.
    pub(crate) scratch: Vec<u8>,
    /// Rows for which a sum passed 128 bits, and the number of the aggregate.
    pub(crate) overflows: Vec<(u32, usize)>,
    /// A text that is being written.
    pub(crate) line: String,
    /// The program's constants and islands.
    pub(crate) pool: *const Pool,
    /// The batch, for islands.
    pub(crate) batch: *const Batch,
    /// What `now()` is.
    pub(crate) env: Env,
}

/// First size of the arena.
const ARENA: usize = 64 * 1024;

impl Context {
    /// A context for a batch; addresses are filled in by who runs the code.
    pub(crate) fn new(pool: &Pool, batch: &Batch, env: Env) -> Self {
        Context {
            columns: std::ptr::null(),
            outputs: std::ptr::null(),
            selection: std::ptr::null_mut(),
            failed: std::ptr::null_mut(),
            failed_count: 0,
            kept: 0,
            unselected: 0,
            constants: pool.texts.as_ptr(),
            table: std::ptr::null_mut(),
            ordinal: 0,
            cache: std::ptr::null_mut(),
            arena_used: 0,
            arena: Vec::new(),
            overflow: Vec::new(),
            texts: Vec::new(),
            scratch: Vec::new(),
            overflows: Vec::new(),
            line: String::new(),
            pool,
            batch,
            env,
        }
    }

    /// Room for `len` bytes until the end of the row (the code sets `arena_used` to 0 at the start of each).
    pub(crate) fn allocate(&mut self, len: usize) -> *mut u8 {
        if self.arena_used == 0 {
            if self.arena.is_empty() {
                self.arena = vec![0; ARENA];
            }
            self.overflow.clear();
        }
        let start = self.arena_used as usize;
        if len <= self.arena.len() - start {
            // Even an empty text takes a byte: a row that used the arena is told from one that didn't.
            self.arena_used += len.max(1) as u64;
            self.arena_used = self.arena_used.min(self.arena.len() as u64);
            return self.arena[start..].as_mut_ptr();
        }
        self.arena_used = self.arena_used.max(1);
        self.overflow.push(vec![0; len]);
        let last = self.overflow.len() - 1;
        self.overflow[last].as_mut_ptr()
    }

    /// A copy of the text until the end of the row.
    pub(crate) fn keep(&mut self, text: &[u8]) -> TextRef {
        let ptr = self.allocate(text.len());
        // SAFETY: `allocate` gave room for `text.len()` bytes that nothing else refers to.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), ptr, text.len()) };
        TextRef { ptr, len: text.len() as u64 }
    }
}

impl TextRef {
    /// The bytes.
    ///
    /// # Safety
    /// The address must be readable for the length, for as long as `'a`.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len as usize) }
    }
}

impl Slot {
    /// Null.
    pub(crate) const NULL: Slot = Slot { low: 0, high: 0, valid: 0, padding: 0 };

    fn of(low: u64, high: u64) -> Slot {
        Slot { low, high, valid: 1, padding: 0 }
    }

    /// Reads it as a value of this type.
    ///
    /// # Safety
    /// A text's address and length must be readable, for as long as `'a`, and UTF-8 for strings.
    pub(crate) unsafe fn read<'a>(&self, ty: &Type) -> Value<'a> {
        if self.valid == 0 {
            return Value::Null;
        }
        let signed = self.low as i64;
        let text = TextRef { ptr: self.low as *const u8, len: self.high };
        match ty {
            Type::Bool => Value::Bool(self.low & 1 != 0),
            Type::Int(int) if int.signed() => Value::Int(i128::from(signed)),
            Type::Int(_) => Value::Int(i128::from(self.low)),
            Type::Float32 | Type::Float64 => Value::Float(f64::from_bits(self.low)),
            Type::Decimal(precision, _) if *precision <= dfc_ir::types::SHORT_PRECISION => {
                Value::Decimal(i128::from(signed))
            }
            Type::Decimal(..) => Value::Decimal((i128::from(self.high) << 64) | i128::from(self.low)),
            Type::String | Type::Json => {
                // SAFETY: promised by the caller.
                Value::str(unsafe { std::str::from_utf8_unchecked(text.bytes()) })
            }
            Type::Bytes => {
                // SAFETY: promised by the caller.
                Value::Bytes(std::borrow::Cow::Borrowed(unsafe { text.bytes() }))
            }
            Type::Date => Value::Date(signed as i32),
            Type::Time => Value::Time(signed),
            Type::DateTime => Value::DateTime(signed),
            Type::Timestamp => Value::Timestamp(signed),
            Type::Duration => Value::Duration(signed),
            Type::List(_) | Type::Record(_) | Type::Secret | Type::Null => Value::Null,
        }
    }

    /// The form of a value; texts are copied into the arena. Lists and records, which have no such form, become null.
    pub(crate) fn write(value: &Value<'_>, context: &mut Context) -> Slot {
        let mut text = |bytes: &[u8]| {
            let kept = context.keep(bytes);
            Slot::of(kept.ptr as u64, kept.len)
        };
        match value {
            Value::Null | Value::List(_) | Value::Record(_) => Slot::NULL,
            Value::Bool(v) => Slot::of(u64::from(*v), 0),
            Value::Int(v) | Value::Decimal(v) => Slot::of(*v as u64, (*v >> 64) as u64),
            Value::Float(v) => Slot::of(v.to_bits(), 0),
            Value::Str(v) => text(v.as_bytes()),
            Value::Bytes(v) => text(v),
            Value::Date(v) => Slot::of(i64::from(*v) as u64, 0),
            Value::Time(v) | Value::DateTime(v) | Value::Timestamp(v) | Value::Duration(v) => Slot::of(*v as u64, 0),
        }
    }
}

/// The bytes of the long texts of an output column: the buffers that its views point into.
#[derive(Default)]
pub(crate) struct TextBlocks {
    full: Vec<Vec<u8>>,
    current: Vec<u8>,
}

/// A block is closed when it would pass this size. (Views hold 31-bit offsets.)
const BLOCK: usize = 1 << 20;

/// Texts up to this length are held in the view itself.
pub(crate) const INLINE: usize = 12;

/// So many bytes of a text stand beside its length in the first word of its view.
pub(crate) const HEAD: usize = 4;

impl TextBlocks {
    /// The view of a text, whose bytes are kept here if it is long.
    pub(crate) fn view(&mut self, text: &[u8]) -> u128 {
        let len = text.len() as u32;
        if text.len() <= INLINE {
            return inline_view(text);
        }
        let mut view = [0u8; 16];
        view[..4].copy_from_slice(&len.to_le_bytes());
        if self.current.len() + text.len() > BLOCK && !self.current.is_empty() {
            self.full.push(std::mem::take(&mut self.current));
        }
        let (block, offset) = (self.full.len() as u32, self.current.len() as u32);
        self.current.extend_from_slice(text);
        view[4..8].copy_from_slice(&text[..4]);
        view[8..12].copy_from_slice(&block.to_le_bytes());
        view[12..].copy_from_slice(&offset.to_le_bytes());
        u128::from_le_bytes(view)
    }

    /// The blocks, in the order that views number them.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        if !self.current.is_empty() {
            self.full.push(self.current);
        }
        self.full
    }
}

/// The view of a text that stands in it.
pub(crate) fn inline_view(text: &[u8]) -> u128 {
    inline(text) << 32 | text.len() as u128
}

/// The first and the second word of a text's view, the second of those that stand in their views.
pub(crate) fn view_words(text: &[u8]) -> [u64; 2] {
    if text.len() <= INLINE {
        let view = inline_view(text);
        return [view as u64, (view >> 64) as u64];
    }
    [(inline(&text[..HEAD]) << 32) as u64 | text.len() as u64, 0]
}

/// A short text as a number, its first byte in the lowest. It is read in one or two words, which may overlap.
fn inline(text: &[u8]) -> u128 {
    let len = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let last = u64::from_le_bytes(*last).checked_shr(8 * (16 - len as u32)).unwrap_or(0);
        return u128::from(u64::from_le_bytes(*first)) | u128::from(last) << 64;
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let last = u32::from_le_bytes(*last).checked_shr(8 * (8 - len as u32)).unwrap_or(0);
        return u128::from(u32::from_le_bytes(*first)) | u128::from(last) << 32;
    }
    text.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_arrows() {
        let mut blocks = TextBlocks::default();
        let long = "a text that is longer than twelve bytes";
        let views = [blocks.view(b"short"), blocks.view(long.as_bytes()), blocks.view(b"")];
        let buffers = blocks.finish().into_iter().map(arrow_buffer::Buffer::from).collect::<Vec<_>>();
        let array = arrow_array::StringViewArray::try_new(views.to_vec().into(), buffers, None).unwrap();
        assert_eq!(array.value(0), "short");
        assert_eq!(array.value(1), long);
        assert_eq!(array.value(2), "");
    }

    #[test]
    fn short_texts_stand_in_their_views() {
        for len in 0..=INLINE {
            let text: Vec<u8> = (0..len as u8).map(|k| b'a' + k).collect();
            let mut expected = [0; 16];
            expected[0] = len as u8;
            expected[4..4 + len].copy_from_slice(&text);
            assert_eq!(TextBlocks::default().view(&text).to_le_bytes(), expected);
        }
    }
}
