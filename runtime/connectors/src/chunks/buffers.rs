//! The memory of chunks: used again when a chunk's last reader is done with it, as memory that was just written to is the fastest to
//! write to, and new memory must be filled with zeros before. It may not know what the text means.

use std::io::ErrorKind;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;

use super::CHUNK_BOUNDS;
use crate::ConnectError;
use crate::files::{Input, io_error};

/// Most buffers that wait to be used again, and bytes of the largest that may.
const WAITING: usize = 64;
const LARGEST: usize = 2 * CHUNK_BOUNDS.1;
/// Room before a piece of a file for what the piece before left over.
pub(super) const HEAD: usize = 64 << 10;

/// Buffers that nobody uses.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// A buffer on its way.
struct Lent {
    bytes: Vec<u8>,
    owner: Arc<Buffers>,
}

impl Buffers {
    /// Any buffer.
    fn any(&self) -> Vec<u8> {
        self.waiting().pop().unwrap_or_default()
    }

    /// A buffer with that room and for a piece of so many bytes behind it; it may be longer.
    pub(super) fn with_head(&self, piece: usize) -> Vec<u8> {
        let mut bytes = self.any();
        if bytes.len() < HEAD + piece {
            bytes.resize(HEAD + piece, 0);
        }
        bytes
    }

    /// Hands out what stands in a buffer, which comes back when nobody needs it any more.
    pub(super) fn lend(self: &Arc<Self>, bytes: Vec<u8>, text: Range<usize>) -> Buffer {
        let lent = Lent { bytes, owner: self.clone() };
        Buffer::from(bytes::Bytes::from_owner(lent)).slice_with_length(text.start, text.len())
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut waiting = self.owner.waiting();
        if waiting.len() < WAITING && self.bytes.len() <= LARGEST {
            waiting.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Text that was read and not handed out.
pub(super) struct Pending {
    /// All of it was written to once, the text is at its start.
    bytes: Vec<u8>,
    len: usize,
    buffers: Arc<Buffers>,
}

impl Pending {
    /// None yet.
    pub(super) fn new(buffers: &Arc<Buffers>) -> Self {
        Pending { bytes: Vec::new(), len: 0, buffers: buffers.clone() }
    }

    /// Reads until it holds `wanted` bytes or the input ends.
    ///
    /// # Errors
    /// When the input can't be read.
    pub(super) fn fill(
        &mut self,
        input: &mut Input,
        name: &str,
        ended: &mut bool,
        wanted: usize,
    ) -> Result<(), ConnectError> {
        if *ended || self.len >= wanted {
            return Ok(());
        }
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        while self.len < wanted {
            match input.read(&mut self.bytes[self.len..wanted]) {
                Ok(0) => {
                    *ended = true;
                    break;
                }
                Ok(n) => self.len += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(io_error("read", name, &e)),
            }
        }
        Ok(())
    }

    /// Hands out the first `end` bytes with the buffer in which they stand; the rest moves to another.
    pub(super) fn hand_out(&mut self, end: usize) -> Buffer {
        // The rest is at most about one record.
        let mut bytes = self.buffers.any();
        let rest = &self.bytes[end..self.len];
        if bytes.len() < rest.len() {
            bytes.resize(rest.len(), 0);
        }
        bytes[..rest.len()].copy_from_slice(rest);
        self.len = rest.len();
        let bytes = std::mem::replace(&mut self.bytes, bytes);
        self.buffers.lend(bytes, 0..end)
    }

    /// Leaves out the first bytes.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.bytes.copy_within(bytes..self.len, 0);
        self.len -= bytes;
    }

    /// Leaves out everything.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

impl Deref for Pending {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
