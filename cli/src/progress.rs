//! Progress while a job runs: a bar on a terminal, a line every few seconds elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dfc_engine::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::summary::{bytes, count, duration, rows};

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How often the bar moves.
const BAR_EVERY: Duration = Duration::from_millis(100);

/// What is said before there are counters: a source on a pipe opens when the first data are there.
const OPENING: &str = "opening sources and sinks";

/// Shows progress until it is dropped.
pub struct Display {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    /// Starts showing the counters that `progress` will hold once the run has started.
    pub fn start(progress: Arc<OnceLock<Arc<Progress>>>) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let flag = done.clone();
        let terminal = std::io::stderr().is_terminal();
        let show = move || if terminal { bar(&progress, &flag) } else { lines(&progress, &flag) };
        // Without a thread there is no progress to see, and nothing else is lost.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(show).ok();
        Display { done, thread }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only fails if the display panicked; the run's own result is what counts.
            let _ = thread.join();
        }
    }
}

fn lines(progress: &OnceLock<Arc<Progress>>, done: &AtomicBool) {
    let start = Instant::now();
    let mut next = LINE_EVERY;
    while !done.load(Ordering::Relaxed) {
        std::thread::park_timeout(next.saturating_sub(start.elapsed()).max(Duration::from_millis(10)));
        if start.elapsed() < next {
            continue;
        }
        next += LINE_EVERY;
        match progress.get() {
            Some(progress) => eprintln!("{}", line(progress, start.elapsed())),
            None => eprintln!("{}: {OPENING}", duration(start.elapsed())),
        }
    }
}

/// One line: bytes and rows so far, the rate, the time left where the size is known. Sources without bytes (made-up rows)
/// are told by their rows alone.
fn line(progress: &Progress, elapsed: Duration) -> String {
    let (done, total) = (progress.bytes_in(), progress.total_bytes());
    let per_second = |n: u64| n as f64 / elapsed.as_secs_f64().max(1e-6);
    let read = match (done, total) {
        (0, None | Some(0)) => {
            format!("read {} ({}/s)", rows(progress.rows_in()), count(per_second(progress.rows_in()) as u64))
        }
        _ => {
            let of = total.map_or(String::new(), |total| format!(" of {}", bytes(total)));
            let rate = bytes(per_second(done) as u64);
            format!("read {}{of} ({rate}/s), {}", bytes(done), rows(progress.rows_in()))
        }
    };
    let left = match total {
        Some(total) if done > 0 && total >= done => {
            let seconds = (total - done) as f64 / per_second(done).max(1.0);
            format!(", {} left", duration(Duration::from_secs_f64(seconds)))
        }
        _ => String::new(),
    };
    let rejected = match progress.rejected() {
        0 => String::new(),
        n => format!(", {} rejected", rows(n)),
    };
    format!("{}: {read}{rejected}, wrote {}{left}", duration(elapsed), rows(progress.rows_out()))
}

fn bar(progress: &OnceLock<Arc<Progress>>, done: &AtomicBool) {
    let start = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    while !done.load(Ordering::Relaxed) {
        std::thread::park_timeout(BAR_EVERY);
        // What ends at once needs no bar.
        if start.elapsed() < Duration::from_millis(300) {
            continue;
        }
        let Some(progress) = progress.get() else { continue };
        let bar = bar.get_or_insert_with(|| make_bar(progress));
        bar.set_position(progress.bytes_in());
        bar.set_message(line(progress, start.elapsed()));
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn make_bar(progress: &Progress) -> ProgressBar {
    let (bar, template) = match progress.total_bytes() {
        Some(total) => (ProgressBar::new(total), "{bar:30} {percent:>3}% {msg}"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
