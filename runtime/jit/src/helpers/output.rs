//! The helper that writes a text into an output column.

use crate::context::{Context, TextRef};

/// Writes the view of a text of output number `output`; a long text's bytes are kept beside.
///
/// # Safety
/// The context is that of the running call; a readable text; room for a view at `view`.
pub(super) unsafe extern "C" fn text(context: *mut Context, output: u64, ptr: *const u8, len: u64, view: *mut u128) {
    // SAFETY: promised by the caller.
    unsafe { *view = (&mut (*context).texts)[output as usize].view(TextRef { ptr, len }.bytes()) };
}
