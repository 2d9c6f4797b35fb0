//! Named places at which an operation of the outside world is about to happen, or has just happened. The environment variable `DFC_POINT`
//! says what happens at one of them, `NAME=ACTION@N`: at its N-th passing (1 without a number); or at several, with commas between them.
//!
//! - `panic`: the thread panics;
//! - `kill`: the process is killed, as with `kill -9`;
//! - `eio`, `enospc`: the operation fails in this way;
//! - `stall`: nothing happens for a second;
//! - `slow`: nothing happens for 20 ms, at this passing and each one after it: a job of few rows meets what a long one does;
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
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    struct Wanted {
        name: String,
        action: String,
        /// Passings that are still to come; the last of them counts.
        left: AtomicI64,
    }

    fn wanted() -> &'static [Wanted] {
        static WANTED: OnceLock<Vec<Wanted>> = OnceLock::new();
        WANTED.get_or_init(|| std::env::var("DFC_POINT").map_or(Vec::new(), |all| all.split(',').map(parse).collect()))
    }

    fn parse(text: &str) -> Wanted {
        let (name, rest) = text.split_once('=').unwrap_or((text, ""));
        let (action, number) = rest.split_once('@').unwrap_or((rest, "1"));
        let number = number.parse().unwrap_or_else(|_| panic!("`{text}` isn't NAME=ACTION@N: see DFC_POINT"));
        Wanted { name: name.into(), action: action.into(), left: AtomicI64::new(number) }
    }

    /// Passes a place.
    ///
    /// # Errors
    /// What `DFC_POINT` asks for.
    pub fn point(name: &'static str) -> io::Result<()> {
        wanted().iter().try_for_each(|wanted| pass(wanted, name))
    }

    fn pass(wanted: &Wanted, name: &str) -> io::Result<()> {
        if wanted.action == "log" {
            eprintln!("point {name}");
            return Ok(());
        }
        if wanted.name != name {
            return Ok(());
        }
        let left = wanted.left.fetch_sub(1, Ordering::SeqCst);
        if wanted.action == "slow" && left <= 1 {
            std::thread::sleep(Duration::from_millis(20));
        }
        if left != 1 {
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
            "slow" => Ok(()),
            other => panic!("`{other}` is nothing that can happen at a place: see DFC_POINT"),
        }
    }
}
