//! Large files go to the disk while they are written, so that whoever makes them durable at their end needn't wait for all of their bytes.
//! It may not know what is written, nor when a file has to be durable.

use std::fs::File;
use std::io;
use std::thread::JoinHandle;

/// Bytes after which those so far are sent to the disk.
const STEP: u64 = 32 << 20;

/// Sends a file's bytes ahead. Each time a thread of its own waits for the disk; there is never more than one.
#[derive(Default)]
pub(super) struct Ahead {
    /// Bytes since the last time.
    written: u64,
    sending: Option<JoinHandle<io::Result<()>>>,
}

impl Ahead {
    /// Bytes were written to the file.
    ///
    /// # Errors
    /// What was sent before hasn't arrived. The system tells that once: nothing of the file can be taken for durable any more.
    pub(super) fn wrote(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        self.written += bytes as u64;
        if self.written < STEP || self.sending.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        self.arrive()?;
        self.written = 0;
        // Where there is no thread or no handle to spare the bytes are sent at the end, as those of small files are.
        if let Ok(file) = file.try_clone() {
            let send = move || file.sync_data();
            self.sending = std::thread::Builder::new().name("dfc-ahead".into()).spawn(send).ok();
        }
        Ok(())
    }

    /// Waits for what was sent.
    ///
    /// # Errors
    /// It hasn't arrived.
    pub(super) fn arrive(&mut self) -> io::Result<()> {
        match self.sending.take().map(JoinHandle::join) {
            Some(Ok(sent)) => sent,
            Some(Err(_)) => Err(io::Error::other("the thread that sends bytes ahead has broken down")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_are_sent_once_they_are_many_and_a_failure_is_told() {
        let mut file = tempfile::tempfile().unwrap();
        let mut ahead = Ahead::default();
        for _ in 0..31 {
            file.write_all(&[7; 1 << 20]).unwrap();
            ahead.wrote(&file, 1 << 20).unwrap();
        }
        assert!(ahead.sending.is_none());
        ahead.wrote(&file, 1 << 20).unwrap();
        assert!(ahead.sending.is_some() && ahead.written == 0);
        ahead.arrive().unwrap();
        assert!(ahead.sending.is_none());
        // A pipe's end can't be made durable.
        let (_, to) = std::io::pipe().unwrap();
        let to = File::from(std::os::fd::OwnedFd::from(to));
        ahead.wrote(&to, 32 << 20).unwrap();
        assert!(ahead.arrive().is_err());
    }
}
