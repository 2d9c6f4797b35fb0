//! A file that is written from one end to the other, with the length and the check sum of what was written since the last look; and the
//! check of such ranges by another process. It may not know what is written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crc32fast::Hasher;

use super::ahead::Ahead;

/// Bytes that are compared at once.
const BLOCK: usize = 256 << 10;

/// The file.
pub(crate) struct Checked {
    file: File,
    at: u64,
    crc: Hasher,
    ahead: Ahead,
    /// It couldn't be made durable once: a system forgets which bytes it couldn't write, and says the next time that all is well.
    lost: bool,
}

impl Checked {
    /// Goes on at byte `at`, where the file ends.
    pub(crate) fn new(file: File, at: u64) -> Self {
        Checked { file, at, crc: Hasher::new(), ahead: Ahead::default(), lost: false }
    }

    /// The byte after the last one.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Makes what was written last, and gives the check sum of what came since the last call that succeeded.
    ///
    /// # Errors
    /// When it can't be made durable, or couldn't once.
    pub(crate) fn seal(&mut self) -> io::Result<u32> {
        if self.lost {
            return Err(io::Error::other("it couldn't be made durable once: which bytes are on the disk isn't known"));
        }
        let arrived = self.ahead.arrive();
        let synced = arrived.and_then(|()| dfc_trial::point("file-sync")).and_then(|()| self.file.sync_all());
        self.lost = synced.is_err();
        synced?;
        Ok(std::mem::take(&mut self.crc).finalize())
    }
}

impl Write for Checked {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.file.write(buf)?;
        self.at += n as u64;
        self.crc.update(&buf[..n]);
        if let Err(error) = self.ahead.wrote(&self.file, n) {
            self.lost = true;
            return Err(error);
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether a file has these bytes: ranges (from, to, check sum) in ascending order.
///
/// # Errors
/// When it can't be read; a file that is too short has other bytes.
pub(crate) fn holds(path: &Path, ranges: impl IntoIterator<Item = (u64, u64, u32)>) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut block = vec![0; BLOCK];
    for (from, to, crc) in ranges {
        file.seek(SeekFrom::Start(from))?;
        let (mut left, mut found) = (to.saturating_sub(from), Hasher::new());
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            match file.read(&mut block[..wanted]) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    found.update(&block[..n]);
                    left -= n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        if found.finalize() != crc {
            return Ok(false);
        }
    }
    Ok(true)
}
