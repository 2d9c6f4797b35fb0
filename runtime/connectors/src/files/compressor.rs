//! Compresses what is written, in members (gzip) or frames (Zstandard) that can be closed: what was written before is whole then, and the
//! next one begins with the next byte. It may not know where the bytes go.

use std::io::{self, Write};

use super::input::Compression;

/// A writer that compresses.
pub(super) struct Compressor<W: Write> {
    state: State<W>,
    compression: Compression,
}

enum State<W: Write> {
    /// Nothing is open, or nothing is compressed.
    Plain(W),
    Gzip(Box<flate2::write::GzEncoder<W>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, W>>),
    /// A member could not be closed.
    Broken,
}

impl<W: Write> Compressor<W> {
    /// Over a writer.
    pub(super) fn new(inner: W, compression: Compression) -> Self {
        Compressor { state: State::Plain(inner), compression }
    }

    /// Begins a member, where there is such a thing.
    fn open(&mut self) -> io::Result<()> {
        let State::Plain(inner) = std::mem::replace(&mut self.state, State::Broken) else { return Err(broken()) };
        self.state = match self.compression {
            Compression::Gzip => {
                State::Gzip(Box::new(flate2::write::GzEncoder::new(inner, flate2::Compression::default())))
            }
            Compression::Zstd => State::Zstd(Box::new(zstd::stream::write::Encoder::new(inner, 3)?)),
            Compression::None | Compression::Auto => State::Plain(inner),
        };
        Ok(())
    }

    /// Closes the open member, so that what was written is whole, and gives the writer below. `even_empty`: a member of no bytes is made if
    /// none is open.
    ///
    /// # Errors
    /// When that can't be written; nothing can be written any more then.
    pub(super) fn close(&mut self, even_empty: bool) -> io::Result<&mut W> {
        if even_empty && matches!(self.state, State::Plain(_)) {
            self.open()?;
        }
        let mut inner = match std::mem::replace(&mut self.state, State::Broken) {
            State::Plain(inner) => inner,
            State::Gzip(encoder) => encoder.finish()?,
            State::Zstd(encoder) => encoder.finish()?,
            State::Broken => return Err(broken()),
        };
        inner.flush()?;
        self.state = State::Plain(inner);
        self.inner()
    }

    /// Closes everything and gives the writer below.
    ///
    /// # Errors
    /// When that can't be written.
    pub(super) fn into_inner(mut self) -> io::Result<W> {
        self.close(false)?;
        match self.state {
            State::Plain(inner) => Ok(inner),
            _ => Err(broken()),
        }
    }

    /// A look at the writer below; none where it was lost with a member that could not be closed.
    pub(super) fn get(&self) -> Option<&W> {
        match &self.state {
            State::Plain(inner) => Some(inner),
            State::Gzip(encoder) => Some(encoder.get_ref()),
            State::Zstd(encoder) => Some(encoder.get_ref()),
            State::Broken => None,
        }
    }

    /// The writer below.
    ///
    /// # Errors
    /// It was lost with a member that could not be closed.
    pub(super) fn inner(&mut self) -> io::Result<&mut W> {
        match &mut self.state {
            State::Plain(inner) => Ok(inner),
            State::Gzip(encoder) => Ok(encoder.get_mut()),
            State::Zstd(encoder) => Ok(encoder.get_mut()),
            State::Broken => Err(broken()),
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("an earlier write failed")
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if matches!(self.state, State::Plain(_)) && !buf.is_empty() {
            self.open()?;
        }
        match &mut self.state {
            State::Plain(inner) => inner.write(buf),
            State::Gzip(encoder) => encoder.write(buf),
            State::Zstd(encoder) => encoder.write(buf),
            State::Broken => Err(broken()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Plain(inner) => inner.flush(),
            State::Gzip(encoder) => encoder.flush(),
            State::Zstd(encoder) => encoder.flush(),
            State::Broken => Err(broken()),
        }
    }
}
