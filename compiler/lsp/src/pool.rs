//! Threads that answer.

use std::thread::JoinHandle;

use crossbeam_channel::{Sender, unbounded};

/// What a thread does next.
type Work = Box<dyn FnOnce() + Send>;

/// Room for deep expressions; only what is used of it is taken from the system.
const STACK: usize = 64 << 20;

/// A few threads that take work in the order it comes.
pub struct Pool {
    work: Option<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts threads.
    ///
    /// # Errors
    /// When the system has none.
    pub fn new(name: &str, count: usize) -> std::io::Result<Pool> {
        let (work, todo) = unbounded::<Work>();
        let mut threads = Vec::new();
        for _ in 0..count {
            let todo = todo.clone();
            let run = move || todo.iter().for_each(|work| work());
            threads.push(std::thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(run)?);
        }
        Ok(Pool { work: Some(work), threads })
    }

    /// Has something done. It must catch its own panics.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        if let Some(queue) = &self.work {
            // The threads end after the queue only.
            let _ = queue.send(Box::new(work));
        }
    }
}

impl Drop for Pool {
    /// Waits until all work is done.
    fn drop(&mut self) {
        self.work = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
