//! Helpers over texts: each an address and a length.

use dfc_ir::{Type, Value};

use crate::context::{Context, TextRef};
use crate::islands::Constants;

/// # Safety
/// The address must be readable for the length.
unsafe fn bytes<'a>(ptr: *const u8, len: u64) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe { TextRef { ptr, len }.bytes() }
}

/// # Safety
/// As [`bytes`], and it must be UTF-8.
unsafe fn text<'a>(ptr: *const u8, len: u64) -> &'a str {
    // SAFETY: promised by the caller.
    unsafe { std::str::from_utf8_unchecked(bytes(ptr, len)) }
}

/// Whether two texts of one length are the same.
///
/// # Safety
/// Both addresses must be readable for the length.
pub(super) unsafe extern "C" fn same_bytes(a: *const u8, b: *const u8, len: u64) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { u64::from(bytes(a, len) == bytes(b, len)) }
}

/// −1, 0 or 1: the order by bytes.
///
/// # Safety
/// Both addresses must be readable for their lengths.
pub(super) unsafe extern "C" fn compare(a: *const u8, a_len: u64, b: *const u8, b_len: u64) -> i64 {
    // SAFETY: promised by the caller.
    unsafe { bytes(a, a_len).cmp(bytes(b, b_len)) as i64 }
}

/// Number of characters.
///
/// # Safety
/// A readable text.
pub(super) unsafe extern "C" fn length(a: *const u8, len: u64) -> i64 {
    // SAFETY: promised by the caller. Every character has one byte that is no continuation.
    unsafe { bytes(a, len).iter().filter(|byte| (**byte as i8) >= -0x40).count() as i64 }
}

/// # Safety
/// Readable texts.
pub(super) unsafe extern "C" fn starts_with(a: *const u8, a_len: u64, b: *const u8, b_len: u64) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { u64::from(bytes(a, a_len).starts_with(bytes(b, b_len))) }
}

/// # Safety
/// Readable texts.
pub(super) unsafe extern "C" fn ends_with(a: *const u8, a_len: u64, b: *const u8, b_len: u64) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { u64::from(bytes(a, a_len).ends_with(bytes(b, b_len))) }
}

/// # Safety
/// Readable texts.
pub(super) unsafe extern "C" fn contains(a: *const u8, a_len: u64, b: *const u8, b_len: u64) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { u64::from(text(a, a_len).contains(text(b, b_len))) }
}

/// Longest result of a function of the standard library, in bytes.
const LONGEST: u64 = 64 << 20;

/// Joins `count` texts at `pieces`; the result replaces the first. 0 if it would be too long.
///
/// # Safety
/// `count` readable texts at `pieces`, at least one.
pub(super) unsafe extern "C" fn concat(context: *mut Context, pieces: *mut TextRef, count: u64) -> u64 {
    // SAFETY: promised by the caller; the context is that of the running call.
    let (context, texts) = unsafe { (&mut *context, std::slice::from_raw_parts(pieces, count as usize)) };
    let total: u64 = texts.iter().map(|piece| piece.len).sum();
    if total > LONGEST {
        return 0;
    }
    let start = context.allocate(total as usize);
    let mut at = start;
    for piece in texts {
        // SAFETY: there is room for all pieces; a piece is readable.
        unsafe {
            std::ptr::copy_nonoverlapping(piece.ptr, at, piece.len as usize);
            at = at.add(piece.len as usize);
        }
    }
    // SAFETY: there is a first.
    unsafe { *pieces = TextRef { ptr: start, len: total } };
    1
}

/// The text in capitals (`upper` is 1) or small letters, at `out`. 0 if it would be too long.
///
/// # Safety
/// A readable text; the context is that of the running call, `out` room for a text.
pub(super) unsafe extern "C" fn case(
    context: *mut Context,
    out: *mut TextRef,
    ptr: *const u8,
    len: u64,
    upper: u64,
) -> u64 {
    // SAFETY: promised by the caller.
    let (context, from) = unsafe { (&mut *context, text(ptr, len)) };
    let changed = if from.is_ascii() {
        if len > LONGEST {
            return 0;
        }
        let kept = context.keep(from.as_bytes());
        // SAFETY: the copy was made just now, and nothing else refers to it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(kept.ptr.cast_mut(), len as usize) };
        if upper == 1 {
            bytes.make_ascii_uppercase()
        } else {
            bytes.make_ascii_lowercase()
        }
        kept
    } else {
        let changed = if upper == 1 { from.to_uppercase() } else { from.to_lowercase() };
        if changed.len() as u64 > LONGEST {
            return 0;
        }
        context.keep(changed.as_bytes())
    };
    // SAFETY: promised by the caller.
    unsafe { *out = changed };
    1
}

/// Whether a text fits pattern number `pattern`.
///
/// # Safety
/// A readable text; the context is that of the running call.
pub(super) unsafe extern "C" fn fits(context: *mut Context, pattern: u64, a: *const u8, len: u64) -> u64 {
    // SAFETY: promised by the caller.
    let (pool, text) = unsafe { (&*(*context).pool, text(a, len)) };
    u64::from(pool.patterns[pattern as usize].fits(text))
}

/// Whether a text is among list number `list`.
///
/// # Safety
/// A readable text; the context is that of the running call.
pub(super) unsafe extern "C" fn in_texts(context: *mut Context, list: u64, a: *const u8, len: u64) -> u64 {
    // SAFETY: promised by the caller.
    let (pool, text) = unsafe { (&*(*context).pool, bytes(a, len)) };
    match &pool.lists[list as usize] {
        Constants::Texts(texts) => u64::from(texts.contains(text)),
        Constants::Numbers(_) => 0,
    }
}

/// Writes what `write` writes into the arena.
///
/// # Safety
/// The context is that of the running call, `out` room for a text.
unsafe fn write(context: *mut Context, out: *mut TextRef, write: impl FnOnce(&mut String)) {
    // SAFETY: promised by the caller.
    let context = unsafe { &mut *context };
    // The buffer is kept from row to row: nothing is allocated once it has grown.
    let mut buffer = std::mem::take(&mut context.line);
    buffer.clear();
    write(&mut buffer);
    let kept = context.keep(buffer.as_bytes());
    context.line = buffer;
    // SAFETY: promised by the caller.
    unsafe { *out = kept };
}

/// The text of an integer; `unsigned` is 1 where the bits are those of a `uint64`.
///
/// # Safety
/// The context is that of the running call, `out` room for a text.
pub(super) unsafe extern "C" fn int_text(context: *mut Context, out: *mut TextRef, value: i64, unsigned: u64) {
    let negative = unsigned != 1 && value < 0;
    let mut number = if negative { value.unsigned_abs() } else { value as u64 };
    // The greatest has 20 digits, the least 19 and a sign.
    let (mut text, mut at) = ([b'-'; 20], 20);
    while number > 9 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    // A last digit: the only one, or one that the pairs left.
    if number > 0 || at == 20 {
        at -= 1;
        text[at] = b'0' + number as u8;
    }
    at -= usize::from(negative);
    // SAFETY: promised by the caller.
    unsafe { *out = (*context).keep(&text[at..]) };
}

/// The digits of the numbers below 100.
static PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// The text of a decimal.
///
/// # Safety
/// See [`write()`].
pub(super) unsafe extern "C" fn decimal_text(
    context: *mut Context,
    out: *mut TextRef,
    low: u64,
    high: u64,
    scale: u64,
) {
    let mantissa = (i128::from(high) << 64) | i128::from(low);
    let ty = Type::Decimal(dfc_ir::types::MAX_PRECISION, scale as u8);
    // SAFETY: promised by the caller.
    unsafe { write(context, out, |line| dfc_eval::push_value(line, &Value::Decimal(mantissa), &ty)) }
}

/// The text of a date.
///
/// # Safety
/// See [`write()`].
pub(super) unsafe extern "C" fn date_text(context: *mut Context, out: *mut TextRef, day: i64) {
    // SAFETY: promised by the caller.
    unsafe { write(context, out, |line| dfc_eval::push_value(line, &Value::Date(day as i32), &Type::Date)) }
}
