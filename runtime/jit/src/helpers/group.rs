//! Helpers of fused aggregates: finding a row's group in the table, and what is too seldom to be inline.

use dfc_ir::types::SHORT_PRECISION;
use dfc_ir::{DataType, Type};
use dfc_table::{GroupTable, find_or_insert, hash_key};

use crate::context::{Context, Slot, TextRef};

/// The state row of the group with the keys in `slots`; it is added if there is none.
///
/// # Safety
/// The context is that of the running call; `table` is a table of the aggregate that was compiled, used by nothing else; one slot for
/// each key, texts readable.
pub(super) unsafe extern "C" fn find(context: *mut Context, table: *mut GroupTable, slots: *mut Slot) -> *mut u8 {
    // SAFETY: promised by the caller.
    let (context, pool) = unsafe { (&mut *context, &*(*context).pool) };
    let key = &mut context.scratch;
    key.clear();
    for (k, ty) in pool.keys.iter().enumerate() {
        // SAFETY: one slot for each key.
        unsafe { encode(key, &*slots.add(k), ty) };
    }
    let hash = hash_key(key);
    // SAFETY: the key is laid out as the table's `KeyLayout` says, the rest by the caller's promise.
    unsafe { find_or_insert(table, key.as_ptr(), key.len(), hash) }
}

/// The same where the key is one word.
///
/// # Safety
/// `table` is a table of the aggregate that was compiled, whose keys have eight bytes; nothing else uses it.
pub(super) unsafe extern "C" fn find_word(table: *mut GroupTable, word: u64) -> *mut u8 {
    // SAFETY: promised by the caller.
    let table = unsafe { &mut *table };
    let key = word.to_le_bytes();
    let group = table.group(&key, hash_key(&key));
    table.state_row(group)
}

/// A narrow sum, that of aggregate number `aggregate` in this state row, begins anew: it was `before`.
///
/// # Safety
/// `table` is a table that nothing else uses, and the row one of its groups'.
pub(super) unsafe extern "C" fn carry(table: *mut GroupTable, row: *mut u8, aggregate: u64, before: i64) {
    // SAFETY: promised by the caller.
    unsafe { (*table).carry(row, aggregate as usize, before) };
}

/// Notes that the sum of aggregate number `aggregate` passed 128 bits on this row.
///
/// # Safety
/// The context is that of the running call.
pub(super) unsafe extern "C" fn sum_overflow(context: *mut Context, row: u64, aggregate: u64) {
    // SAFETY: promised by the caller.
    unsafe { (*context).overflows.push((row as u32, aggregate as usize)) };
}

/// Appends a key column as `dfc_table::KeyLayout` lays it out.
///
/// # Safety
/// A text must be readable.
unsafe fn encode(key: &mut Vec<u8>, slot: &Slot, ty: &DataType) {
    let there = slot.valid != 0;
    if ty.nullable {
        key.push(there.into());
    }
    let low = if there { slot.low } else { 0 };
    match &ty.ty {
        Type::String | Type::Json | Type::Bytes => {
            let len = if there { slot.high } else { 0 };
            key.extend_from_slice(&(len as u32).to_le_bytes());
            if len > 0 {
                // SAFETY: promised by the caller.
                key.extend_from_slice(unsafe { TextRef { ptr: slot.low as *const u8, len }.bytes() });
            }
        }
        // Adding 0.0 makes −0.0 a 0.0.
        Type::Float64 => key.extend_from_slice(&(f64::from_bits(low) + 0.0).to_bits().to_le_bytes()),
        Type::Float32 => key.extend_from_slice(&((f64::from_bits(low) + 0.0) as f32).to_bits().to_le_bytes()),
        Type::Decimal(precision, _) if *precision > SHORT_PRECISION => {
            let high = if there { slot.high } else { 0 };
            key.extend_from_slice(&low.to_le_bytes());
            key.extend_from_slice(&high.to_le_bytes());
        }
        other => {
            let width = dfc_table::fixed::width(other).unwrap_or(0).min(8);
            key.extend_from_slice(&low.to_le_bytes()[..width]);
        }
    }
}
