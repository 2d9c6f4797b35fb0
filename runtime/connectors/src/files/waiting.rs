//! Reads standard input and pipes, where no data may come for long: a thread of its own waits for them, so that the reader sees
//! within a moment that the job was cancelled. It may not know what is read.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes that are asked for at once, and how many such blocks wait to be read.
const BLOCK: usize = 256 << 10;
const BLOCKS: usize = 4;
/// How often a waiting reader looks whether the job goes on.
const LOOK: Duration = Duration::from_millis(50);

/// A stream that ends with an error soon after `cancelled` is set.
pub(crate) struct Waiting {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    at: usize,
    cancelled: Arc<AtomicBool>,
}

impl Waiting {
    /// Opens the stream and starts to read it, both in the new thread: opening a named pipe waits for its writer.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        cancelled: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(BLOCKS);
        let read = move || {
            let mut input = match open() {
                Ok(input) => input,
                // Who doesn't listen any more needs no error.
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let mut block = vec![0; BLOCK];
                let result = input.read(&mut block);
                if matches!(&result, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
                    continue;
                }
                let ends = !matches!(result, Ok(1..));
                let read = result.map(|n| {
                    block.truncate(n);
                    block
                });
                if sender.send(read).is_err() || ends {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("dfc-input".into()).spawn(read)?;
        Ok(Waiting { blocks, block: Vec::new(), at: 0, cancelled })
    }
}

impl Read for Waiting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            match self.blocks.recv_timeout(LOOK) {
                Ok(block) => {
                    self.block = block?;
                    self.at = 0;
                    if self.block.is_empty() {
                        return Ok(0);
                    }
                }
                // The thread is gone after the end or an error: whoever reads on gets the end.
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.cancelled.load(Ordering::Relaxed) => {
                    return Err(io::Error::other("the job was cancelled"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let n = buf.len().min(self.block.len() - self.at);
        buf[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives some bytes, then nothing for ever.
    struct Silent(&'static [u8]);

    impl Read for Silent {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                loop {
                    std::thread::park();
                }
            }
            self.0.read(buf)
        }
    }

    #[test]
    fn everything_arrives_in_order() {
        let data: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let copy = data.clone();
        let mut input = Waiting::start(move || Ok(io::Cursor::new(copy)), Arc::default()).unwrap();
        let mut got = Vec::new();
        input.read_to_end(&mut got).unwrap();
        assert!(got == data);
        assert_eq!(input.read(&mut [0; 8]).unwrap(), 0, "the end stays the end");
    }

    #[test]
    fn a_cancelled_job_does_not_wait() {
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut input = Waiting::start(|| Ok(Silent(b"ab")), cancelled.clone()).unwrap();
        let mut buf = [0; 8];
        assert_eq!(input.read(&mut buf).unwrap(), 2);
        cancelled.store(true, Ordering::Relaxed);
        assert!(input.read(&mut buf).is_err());
    }

    #[test]
    fn a_failure_to_open_is_told() {
        let mut input = Waiting::start(|| std::fs::File::open("/nowhere/at/all"), Arc::default()).unwrap();
        assert_eq!(input.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
