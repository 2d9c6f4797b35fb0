//! Who goes on next. A run's threads wait here for time and for one another, as they would with the standard library. In a simulated run
//! (`Simulation`, with the feature `on`) only one of them goes on at a time, on a clock of its own, in an order drawn from a seed: the same
//! seed, the same run.
//!
//! Between two calls of this module a thread is alone, so it mustn't call any of them while it holds a lock that another thread wants.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

#[cfg(feature = "on")]
mod simulation;

#[cfg(feature = "on")]
pub(crate) use simulation::planted_here;
#[cfg(feature = "on")]
pub use simulation::{Simulated, Simulation, random, turn};

/// A thread of a run.
pub struct Thread<'scope, T> {
    handle: ScopedJoinHandle<'scope, T>,
    #[cfg(feature = "on")]
    seat: Option<usize>,
}

/// Starts a thread of a run.
///
/// # Errors
/// What the system says.
pub fn spawn<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<Thread<'scope, T>> {
    let builder = Builder::new().name(name.into());
    #[cfg(feature = "on")]
    if let Some(place) = simulation::new_place() {
        let seat = Some(place.seat());
        return Ok(Thread { handle: builder.spawn_scoped(scope, move || place.sit(work))?, seat });
    }
    Ok(Thread {
        handle: builder.spawn_scoped(scope, work)?,
        #[cfg(feature = "on")]
        seat: None,
    })
}

impl<T> Thread<'_, T> {
    /// Waits for its end. Every thread of a simulated run must be waited for in this way.
    ///
    /// # Errors
    /// What it panicked with.
    pub fn join(self) -> std::thread::Result<T> {
        #[cfg(feature = "on")]
        if let Some(seat) = self.seat {
            simulation::wait_for(seat);
        }
        self.handle.join()
    }

    /// Ends its [`park`].
    pub fn unpark(&self) {
        self.handle.thread().unpark();
    }
}

/// What time it is for the run.
pub fn now() -> Instant {
    #[cfg(feature = "on")]
    if let Some(now) = simulation::now() {
        return now;
    }
    Instant::now()
}

/// Waits for time to pass.
pub fn sleep(time: Duration) {
    #[cfg(feature = "on")]
    if simulation::sleep(time) {
        return;
    }
    std::thread::sleep(time);
}

/// Waits until somebody ends it, at most for so long.
pub fn park(time: Duration) {
    #[cfg(feature = "on")]
    if simulation::sleep(time) {
        return;
    }
    std::thread::park_timeout(time);
}

/// Others may go on here, where it makes a difference.
#[inline]
pub fn pass() {
    #[cfg(feature = "on")]
    simulation::pass();
}

/// Which of `of` things that could be done next is done: the first, but in a simulated run any.
#[inline]
pub fn choose(of: usize) -> usize {
    #[cfg(feature = "on")]
    if of > 1
        && let Some(random) = simulation::random(of as u64)
    {
        return random as usize;
    }
    #[cfg(not(feature = "on"))]
    let _ = of;
    0
}

/// Rows of a batch that an operator makes: as it is shipped, but few in a simulated run, so that its small jobs meet what large ones do.
#[inline]
pub fn batch_rows(shipped: usize) -> usize {
    #[cfg(feature = "on")]
    if simulation::is_on() {
        return 8;
    }
    shipped
}

/// Waits while `busy` says so of what `mutex` guards, at most for `limit`; `changed` is notified when it may have changed.
pub fn wait_while<'m, T>(
    mutex: &'m Mutex<T>,
    changed: &Condvar,
    guard: MutexGuard<'m, T>,
    limit: Option<Duration>,
    mut busy: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'m, T> {
    #[cfg(feature = "on")]
    if simulation::is_on() {
        drop(guard);
        simulation::wait_until(limit, || !busy(&mut mutex.lock().unwrap_or_else(|e| e.into_inner())));
        return mutex.lock().unwrap_or_else(|e| e.into_inner());
    }
    #[cfg(not(feature = "on"))]
    let _ = mutex;
    match limit {
        Some(limit) => changed.wait_timeout_while(guard, limit, busy).unwrap_or_else(|e| e.into_inner()).0,
        None => changed.wait_while(guard, |state| busy(state)).unwrap_or_else(|e| e.into_inner()),
    }
}
