//! Plain files that several threads read at once: each takes the next piece of the file and reads it while it holds nothing. Where records
//! end in it is found in the order of the pieces, as each begins with what the one before left over; the thread whose turn it is looks
//! for them while the others read, parse or wait. It may not know what a record is: a [`Format`] says where they end.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::buffers::HEAD;
use super::{Format, MAX_RECORD, Piece, State, TextFiles, Whole, too_long};
use crate::files::io_error;
use crate::{ConnectError, Next};

/// How far a file has been read by pieces.
pub(super) struct Ahead {
    file: Arc<File>,
    /// The next byte that nobody reads, and the one behind the last.
    next: u64,
    end: u64,
    /// What was read and holds no whole record.
    rest: Vec<u8>,
    /// There is no use in looking for the end of a record before so many bytes are there: a long one is looked at in steps that grow.
    enough: usize,
    /// Pieces that were taken, and those of them whose turn is over.
    taken: u64,
    passed: u64,
}

/// A piece to be read.
pub(super) struct Part {
    file: Arc<File>,
    name: Arc<str>,
    number: u64,
    start: u64,
    len: usize,
    last: bool,
}

impl Ahead {
    /// A file of which everything before byte `next` was read, and `rest` not handed out.
    pub(super) fn new(file: File, next: u64, end: u64, rest: Vec<u8>) -> Self {
        Ahead { file: Arc::new(file), next, end, rest, enough: 0, taken: 0, passed: 0 }
    }

    /// Pieces are being read whose turn is to come.
    pub(super) fn is_busy(&self) -> bool {
        self.taken > self.passed
    }

    /// The next piece; `None`: there is none.
    pub(super) fn take(&mut self, name: &Arc<str>, len: usize) -> Option<Part> {
        let len = len.min(usize::try_from(self.end - self.next).unwrap_or(usize::MAX));
        if len == 0 {
            return None;
        }
        let (start, number) = (self.next, self.taken);
        self.next += len as u64;
        self.taken += 1;
        Some(Part { file: self.file.clone(), name: name.clone(), number, start, len, last: self.next == self.end })
    }
}

/// A turn that will come. Given up, as when its thread panics, it ends the source: nobody waits for it for ever.
struct Turn<'f, F: Format> {
    files: &'f TextFiles<F>,
    over: bool,
}

impl<F: Format> Drop for Turn<'_, F> {
    fn drop(&mut self) {
        if !self.over {
            self.files.state().done = true;
        }
        self.files.moved.notify_all();
    }
}

impl<F: Format> TextFiles<F> {
    /// Until something has changed.
    pub(super) fn wait<'s>(&self, state: MutexGuard<'s, State<F::Layout>>) -> MutexGuard<'s, State<F::Layout>> {
        self.moved.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a piece and hands out the whole records up to its end. `None`: there is none yet.
    ///
    /// # Errors
    /// When it can't be read, or a record is too long.
    pub(super) fn read_part(
        &self,
        part: &Part,
        found: &mut F::Found,
    ) -> Result<Option<Piece<F::Layout>>, ConnectError> {
        let mut turn = Turn { files: self, over: false };
        let mut buffer = self.buffers.with_head(part.len);
        let read = read_at(&part.file, &mut buffer[HEAD..HEAD + part.len], part.start);
        self.counters.bytes.fetch_add(part.len as u64, Ordering::Relaxed);
        let (mut rest, enough, grows) = {
            let mut state = self.state();
            loop {
                if state.done {
                    return Ok(Some(Piece::Other(Next::End)));
                }
                match state.ahead() {
                    Some(ahead) if ahead.passed < part.number => state = self.wait(state),
                    Some(ahead) => {
                        let rest = std::mem::take(&mut ahead.rest);
                        break (rest, ahead.enough, part.last && state.has_grown());
                    }
                    None => return Ok(Some(Piece::Other(Next::End))),
                }
            }
        };
        read.map_err(|e| io_error("read", &part.name, &e))?;
        // What was left over goes before what was read.
        let mut range = match HEAD.checked_sub(rest.len()) {
            Some(start) => {
                buffer[start..HEAD].copy_from_slice(&rest);
                start..HEAD + part.len
            }
            None => {
                rest.extend_from_slice(&buffer[HEAD..HEAD + part.len]);
                std::mem::swap(&mut rest, &mut buffer);
                0..buffer.len()
            }
        };
        let text = &buffer[range.clone()];
        // Of a file that grows the last record may go on in what comes later.
        let all = part.last && !grows;
        let whole = match all || text.len() >= enough {
            true => self.format.find(text, all, found),
            false => None,
        };
        let mut state = self.state();
        let Some(ahead) = state.ahead() else { return Ok(Some(Piece::Other(Next::End))) };
        ahead.passed += 1;
        turn.over = true;
        let Some(Whole { end, lines }) = whole else {
            if text.len() >= MAX_RECORD {
                return Err(too_long(&part.name, state.line()));
            }
            ahead.enough = if text.len() >= enough { 2 * text.len() } else { enough };
            ahead.rest = match range.start {
                0 => {
                    buffer.truncate(range.end);
                    buffer
                }
                _ => text.to_vec(),
            };
            return Ok(None);
        };
        rest.clear();
        rest.extend_from_slice(&text[end..]);
        (ahead.rest, ahead.enough) = (rest, 0);
        range.end = range.start + end;
        let text = self.buffers.lend(buffer, range);
        Ok(Some(self.hand_out(&mut state, text, lines)))
    }
}

/// Fills the buffer from a place of the file.
#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], from: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], from + done as u64) {
            Ok(0) => return Err(io::Error::other("it became shorter while it was read")),
            Ok(n) => done += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Never asked: see [`CAN`].
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Whether the system reads a file at any place for several threads at once.
pub(super) const CAN: bool = cfg!(unix);
