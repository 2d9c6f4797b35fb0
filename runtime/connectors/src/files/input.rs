//! Opens a file as a stream of UTF-8 text or plain bytes: counts what is taken from outside, decompresses, decodes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use encoding_rs::{Decoder, DecoderResult, GBK};

use super::paths::{InputFile, io_error};
use super::waiting::Waiting;
use crate::{ConnectError, SourceCounters};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// By the name's suffix: `.gz`, `.zst`.
    Auto,
    /// Not at all.
    None,
    /// gzip, one member or several.
    Gzip,
    /// Zstandard, one frame or several.
    Zstd,
}

impl Compression {
    /// What `Auto` means for a file of this name.
    pub(crate) fn resolve(self, name: &str) -> Compression {
        let lower = name.to_ascii_lowercase();
        match self {
            Compression::Auto if lower.ends_with(".gz") || lower.ends_with(".gzip") => Compression::Gzip,
            Compression::Auto if lower.ends_with(".zst") || lower.ends_with(".zstd") => Compression::Zstd,
            Compression::Auto => Compression::None,
            given => given,
        }
    }
}

/// How a text file's characters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8, passed on as it is.
    Utf8,
    /// GBK (read as its superset GB 18030).
    Gbk,
    /// ISO 8859-1.
    Latin1,
}

/// An opened input stream.
pub(crate) type Input = Box<dyn Read + Send>;

/// Opens a file, of which no more than [`InputFile::size`] bytes are read. Bytes taken from outside are added to `counters`. Where a pipe gives nothing, it ends with an error soon after
/// `cancelled` is set. Where a file in another encoding than UTF-8 has bytes that
/// mean nothing there, the stream has a byte 0xFF, which is never part of UTF-8: the reader of the text finds it.
///
/// # Errors
/// When the file can't be opened.
pub(crate) fn open_input(
    file: &InputFile,
    compression: Compression,
    encoding: Encoding,
    counters: &Arc<SourceCounters>,
    cancelled: &Arc<AtomicBool>,
) -> Result<Input, ConnectError> {
    let opened: io::Result<Input> = match (&file.path, file.size) {
        (Some(path), Some(size)) => File::open(path).map(|file| capped(file, size)),
        (Some(path), None) => {
            let path = path.clone();
            Waiting::start(move || File::open(path), cancelled.clone()).map(|pipe| Box::new(pipe) as Input)
        }
        (None, _) => Waiting::start(|| Ok(io::stdin()), cancelled.clone()).map(|pipe| Box::new(pipe) as Input),
    };
    let raw = opened.map_err(|e| io_error("read", &file.name, &e))?;
    let counted = Counted { inner: raw, counters: counters.clone() };
    let plain: Input = match compression.resolve(&file.name) {
        Compression::Gzip => {
            let inner = flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(256 << 10, counted));
            Box::new(Decompressed { inner, format: "gzip" })
        }
        Compression::Zstd => {
            let inner = zstd::stream::read::Decoder::new(counted).map_err(|e| io_error("read", &file.name, &e))?;
            Box::new(Decompressed { inner, format: "zstd" })
        }
        Compression::None | Compression::Auto => Box::new(counted),
    };
    Ok(match encoding {
        Encoding::Utf8 => plain,
        Encoding::Gbk => Box::new(Transcoder::new(plain, Decoding::Gbk(GBK.new_decoder_without_bom_handling()))),
        Encoding::Latin1 => Box::new(Transcoder::new(plain, Decoding::Latin1)),
    })
}

/// Opens a plain file at a byte; also the file itself, to be read at any place.
///
/// # Errors
/// When the file can't be opened.
pub(crate) fn open_plain(
    file: &InputFile,
    from: u64,
    counters: &Arc<SourceCounters>,
) -> Result<(Input, File), ConnectError> {
    let path = file.path.as_deref().unwrap_or(Path::new("-"));
    let opened = File::open(path).and_then(|mut opened| {
        opened.seek(SeekFrom::Start(from))?;
        Ok((opened.try_clone()?, opened))
    });
    let (same, inner) = opened.map_err(|e| io_error("read", &file.name, &e))?;
    let inner = capped(inner, file.size.unwrap_or(from).saturating_sub(from));
    Ok((Box::new(Counted { inner, counters: counters.clone() }), same))
}

/// Files of the system itself say that they are empty, and are not.
fn capped(file: File, size: u64) -> Input {
    if size == 0 { Box::new(file) } else { Box::new(Capped { file, left: size }) }
}

/// The bytes that a file had when it was found: all of them and no more.
struct Capped {
    file: File,
    left: u64,
}

impl Read for Capped {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let wanted = buf.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let n = self.file.read(&mut buf[..wanted])?;
        self.left -= n as u64;
        if n == 0 && wanted > 0 {
            return Err(io::Error::other("it became shorter while it was read"));
        }
        Ok(n)
    }
}

struct Counted {
    inner: Input,
    counters: Arc<SourceCounters>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.counters.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Says of data that can't be decompressed what they should have been; failures of the system pass as they are.
struct Decompressed<R> {
    inner: R,
    format: &'static str,
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buf).map_err(|error| {
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            let why = match error.kind() {
                io::ErrorKind::UnexpectedEof => format!("its {} data are cut off", self.format),
                _ => format!("it is not {}, or damaged", self.format),
            };
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }
}

enum Decoding {
    Gbk(Decoder),
    Latin1,
}

/// Turns a stream in another encoding into UTF-8.
struct Transcoder {
    inner: Input,
    decoding: Decoding,
    raw: Vec<u8>,
    raw_at: usize,
    text: Vec<u8>,
    text_at: usize,
    ended: bool,
}

const BLOCK: usize = 64 << 10;

impl Transcoder {
    fn new(inner: Input, decoding: Decoding) -> Self {
        Transcoder { inner, decoding, raw: Vec::new(), raw_at: 0, text: Vec::new(), text_at: 0, ended: false }
    }

    fn refill(&mut self) -> io::Result<()> {
        if self.raw_at == self.raw.len() {
            self.raw.resize(BLOCK, 0);
            let n = self.inner.read(&mut self.raw)?;
            self.raw.truncate(n);
            self.raw_at = 0;
            self.ended = n == 0;
        }
        let input = &self.raw[self.raw_at..];
        self.text_at = 0;
        match &mut self.decoding {
            Decoding::Latin1 => {
                self.text.resize(2 * input.len(), 0);
                let n = encoding_rs::mem::convert_latin1_to_utf8(input, &mut self.text);
                self.text.truncate(n);
                self.raw_at = self.raw.len();
            }
            Decoding::Gbk(decoder) => {
                self.text.resize(3 * input.len() + 32, 0);
                let (result, read, written) =
                    decoder.decode_to_utf8_without_replacement(input, &mut self.text, self.ended);
                self.text.truncate(written);
                self.raw_at += read;
                if let DecoderResult::Malformed(..) = result {
                    self.text.push(0xFF);
                }
                debug_assert!(!matches!(result, DecoderResult::OutputFull));
            }
        }
        Ok(())
    }
}

impl Read for Transcoder {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.text_at == self.text.len() {
            if self.ended && self.raw_at == self.raw.len() {
                return Ok(0);
            }
            self.refill()?;
        }
        let n = buf.len().min(self.text.len() - self.text_at);
        buf[..n].copy_from_slice(&self.text[self.text_at..self.text_at + n]);
        self.text_at += n;
        Ok(n)
    }
}

/// Writes UTF-8 text in another encoding.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>, char> {
    match encoding {
        Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
        Encoding::Latin1 => text.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| c)).collect(),
        Encoding::Gbk => {
            let mut encoder = GBK.new_encoder();
            let mut out = Vec::with_capacity(text.len() + 16);
            let mut rest = text;
            loop {
                let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
                rest = &rest[read..];
                match result {
                    encoding_rs::EncoderResult::InputEmpty => return Ok(out),
                    encoding_rs::EncoderResult::OutputFull => out.reserve(rest.len() + 16),
                    encoding_rs::EncoderResult::Unmappable(c) => return Err(c),
                }
            }
        }
    }
}
