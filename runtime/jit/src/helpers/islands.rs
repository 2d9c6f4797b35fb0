//! The helper that runs an island.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::context::{Context, Slot};

/// Runs island number `index`; its result replaces the first slot. 1 if there is one, 0 for a row error.
///
/// # Safety
/// The context is that of the running call, with its batch; `slots` holds what the island reads; `row` is a row of the batch.
pub(super) unsafe extern "C" fn run(context: *mut Context, index: u64, slots: *mut Slot, row: u64) -> u64 {
    // A panic in a function's body must not unwind into compiled code. What it left behind is only the row's arena.
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: promised by the caller.
        unsafe {
            let pool = &*(*context).pool;
            pool.islands[index as usize].run(&mut *context, slots, row as usize)
        }
    }));
    u64::from(matches!(result, Ok(Ok(()))))
}
