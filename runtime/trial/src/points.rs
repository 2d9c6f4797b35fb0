//! Named places at which an operation of the outside world is about to happen, or has just happened. The environment variable `DFC_POINT`
//! says what happens at one of them, `NAME=ACTION@N`: at its N-th passing (1 without a number)
//!
//! - `panic`: the thread panics;
//! - `kill`: the process is killed, as with `kill -9`;
//! - `eio`, `enospc`: the operation fails in this way;
//! - `stall`: nothing happens for a second;
//! - `log`: nothing; but the names of all places that are passed are written to standard error.

/// Passes a place.
///
/// # Errors
/// What `DFC_POINT` asks for; never without the feature `on`.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub fn point(_name: &'static str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(feature = "on")]
pub use on::point;

#[cfg(feature = "on")]
mod on {
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    struct Wanted {
        name: String,
        action: String,
        /// Passings that are still to come; the last of them counts.
        left: AtomicU64,
    }

    fn wanted() -> Option<&'static Wanted> {
        static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();
        WANTED.get_or_init(|| parse(&std::env::var("DFC_POINT").ok()?)).as_ref()
    }

    fn parse(text: &str) -> Option<Wanted> {
        let (name, rest) = text.split_once('=')?;
        let (action, number) = rest.split_once('@').unwrap_or((rest, "1"));
        Some(Wanted { name: name.into(), action: action.into(), left: AtomicU64::new(number.parse().ok()?) })
    }

    /// Passes a place.
    ///
    /// # Errors
    /// What `DFC_POINT` asks for.
    pub fn point(name: &'static str) -> io::Result<()> {
        let Some(wanted) = wanted() else { return Ok(()) };
        if wanted.action == "log" {
            eprintln!("point {name}");
            return Ok(());
        }
        if wanted.name != name || wanted.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return Ok(());
        }
        match wanted.action.as_str() {
            "panic" => panic!("the test wanted a panic at {name}"),
            "kill" => {
                // The process's own end, at once and without a last word, as from outside.
                let own = std::process::id().to_string();
                let _ = std::process::Command::new("kill").args(["-9", &own]).status();
                std::process::abort()
            }
            "eio" => Err(io::Error::from_raw_os_error(5)),
            "enospc" => Err(io::Error::from_raw_os_error(28)),
            "stall" => {
                std::thread::sleep(Duration::from_secs(1));
                Ok(())
            }
            other => panic!("`{other}` is nothing that can happen at a place: see DFC_POINT"),
        }
    }
}
