//! Calls into the Parquet library. It answers some damaged files with a panic; to the user that is a damaged file like any other,
//! so here it becomes an error, and nothing is printed.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside [`guarded`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that reads a file's bytes; what it was reading must not be used further after an error.
///
/// # Errors
/// What a panic said.
pub(super) fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                others(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    result.map_err(|panic| format!("it is damaged: {}", said(&*panic)))
}

fn said(panic: &dyn Any) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "its parts don't fit together",
    }
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(guarded(|| 1), Ok(1));
        let at = std::hint::black_box(3);
        let why = guarded(|| [1, 2][at]).unwrap_err();
        assert!(why.starts_with("it is damaged: index out of bounds"), "{why}");
        assert_eq!(guarded(|| guarded(|| [1][at]).is_err()), Ok(true));
    }
}
