//! Cuts text files into chunks of whole records, one after another behind a lock; the tasks parse the chunks in parallel.
//! It may not know the format: a [`Format`] says where records end.
//!
//! Files are read in blocks rather than mapped: a mapped file that somebody truncates would end the process, and the copy
//! costs little beside the parsing.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;

use crate::files::{Compression, Encoding, Input, InputFile, io_error, open_input};
use crate::locate::Chunk;
use crate::{ConnectError, OpenContext, SourceCounters};

/// Bytes of the first chunk, and the bounds of the later ones, whose size follows from the rows' length.
const FIRST_CHUNK: usize = 512 << 10;
const CHUNK_BOUNDS: (usize, usize) = (128 << 10, 1 << 20);
/// Rows that a chunk should hold.
const CHUNK_ROWS: usize = 16 << 10;
/// Longest record, in bytes.
const MAX_RECORD: usize = 512 << 20;

/// What a text format knows about its records.
pub(crate) trait Format: Send + Sync + 'static {
    /// What the start of a file says about the rest of it.
    type Layout: Send + Sync;

    /// Reads the start of a file: the bytes before the first record and what they say. `None`: more bytes are needed (never when `whole`).
    ///
    /// # Errors
    /// When the file doesn't fit what is declared.
    fn start(&self, data: &[u8], whole: bool, file: &str) -> Result<Option<(usize, Self::Layout)>, ConnectError>;

    /// The end of the last whole record; data starts at a record.
    fn cut(&self, data: &[u8]) -> Option<usize>;

    /// Number of records in `data`, at most `max`, and where the last counted one ends.
    fn count(&self, data: &[u8], layout: &Self::Layout, max: u64) -> (u64, usize);
}

/// How the files are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextOptions {
    /// Compression of the files.
    pub compression: Compression,
    /// Their encoding.
    pub encoding: Encoding,
    /// A fixed size of chunks in bytes; `None`: chosen by the length of rows.
    pub chunk: Option<usize>,
}

/// The files of a source, being cut into chunks.
pub(crate) struct TextFiles<F: Format> {
    /// The format.
    pub format: F,
    /// Its counters.
    pub counters: Arc<SourceCounters>,
    files: Vec<InputFile>,
    options: TextOptions,
    tasks: usize,
    cancelled: Arc<AtomicBool>,
    state: Mutex<State<F::Layout>>,
}

struct State<L> {
    next_file: usize,
    current: Option<Current<L>>,
    seq: u64,
    /// Records still wanted.
    left: Option<u64>,
    target: usize,
    done: bool,
}

struct Current<L> {
    input: Input,
    name: Arc<str>,
    /// Bytes read and not handed out.
    pending: Vec<u8>,
    /// The input is at its end.
    ended: bool,
    offset: u64,
    line: u64,
    layout: Arc<L>,
}

impl<F: Format> TextFiles<F> {
    /// Opens the files: the start of each is read and compared with what is declared.
    ///
    /// # Errors
    /// When one can't be read or doesn't fit.
    pub(crate) fn open(
        format: F,
        files: Vec<InputFile>,
        options: TextOptions,
        cx: &OpenContext,
    ) -> Result<Self, ConnectError> {
        let target = options.chunk.unwrap_or(FIRST_CHUNK);
        let this = TextFiles {
            format,
            counters: Arc::default(),
            files,
            options,
            tasks: cx.tasks.max(1),
            cancelled: cx.cancelled.clone(),
            state: Mutex::new(State {
                next_file: 0,
                current: None,
                seq: 0,
                left: cx.limit_rows,
                target,
                done: cx.limit_rows == Some(0),
            }),
        };
        if let Some(first) = this.files.first() {
            let current = this.open_file(first, &this.counters)?;
            let mut state = this.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.current = Some(current);
            state.next_file = 1;
        }
        // Only to compare them: what is read here is read again in its turn. A pipe could be read only once.
        for file in this.files.iter().skip(1).filter(|f| f.size.is_some()) {
            this.open_file(file, &Arc::default())?;
        }
        Ok(this)
    }

    /// Stored bytes of all files, where known.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.files.iter().map(|f| f.size).sum()
    }

    /// The most tasks that find a chunk to parse.
    pub(crate) fn max_tasks(&self) -> usize {
        let chunk = self.options.chunk.unwrap_or(FIRST_CHUNK) as u64;
        let plain = self.files.iter().all(|f| self.options.compression.resolve(&f.name) == Compression::None);
        match self.total_bytes() {
            Some(bytes) if plain => self.tasks.min(bytes.div_ceil(chunk).max(1).try_into().unwrap_or(usize::MAX)),
            _ => self.tasks,
        }
    }

    /// The next chunk, or `None` at the end or when the job was cancelled.
    ///
    /// # Errors
    /// When a file can't be read further; the source is at its end then.
    pub(crate) fn next_chunk(&self) -> Result<Option<(Chunk, Arc<F::Layout>)>, ConnectError> {
        // A reader that panicked has ended the job; what the lock protects is still usable for the others' end.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.advance(&mut state);
        if !matches!(result, Ok(Some(_))) {
            state.done = true;
            state.current = None;
        }
        result
    }

    fn advance(&self, state: &mut State<F::Layout>) -> Result<Option<(Chunk, Arc<F::Layout>)>, ConnectError> {
        loop {
            if state.done || self.cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let Some(current) = &mut state.current else {
                let Some(file) = self.files.get(state.next_file) else { return Ok(None) };
                state.next_file += 1;
                state.current = Some(self.open_file(file, &self.counters)?);
                continue;
            };
            let mut wanted = state.target;
            let end = loop {
                current.fill(wanted)?;
                if current.ended {
                    break current.pending.len();
                }
                if let Some(end) = self.format.cut(&current.pending) {
                    break end;
                }
                if wanted >= MAX_RECORD {
                    return Err(ConnectError::new(
                        "R0208",
                        format!("`{}`: the row at line {} is longer than 512 MiB", current.name, current.line),
                    )
                    .help("is a quote opened there that is never closed?"));
                }
                wanted *= 2;
            };
            if end == 0 {
                state.current = None;
                continue;
            }
            // The rest is at most about one record, but the whole buffer goes out with the chunk.
            let rest = current.pending[end..].to_vec();
            let mut text = std::mem::replace(&mut current.pending, rest);
            text.truncate(end);
            let lines = memchr::memchr_iter(b'\n', &text).count();
            let chunk_start = (current.offset, current.line);
            current.offset += end as u64;
            current.line += lines as u64;
            if self.options.chunk.is_none() {
                let per_row = text.len() / lines.max(1);
                state.target = (per_row * CHUNK_ROWS).clamp(CHUNK_BOUNDS.0, CHUNK_BOUNDS.1);
            }
            let layout = current.layout.clone();
            if let Some(left) = &mut state.left {
                let (rows, end) = self.format.count(&text, &layout, *left);
                *left -= rows;
                if *left == 0 {
                    text.truncate(end);
                    state.done = true;
                }
            }
            let seq = state.seq;
            state.seq += 1;
            let chunk = Chunk {
                seq,
                text: Buffer::from_vec(text),
                file: current.name.clone(),
                offset: (self.options.encoding == Encoding::Utf8).then_some(chunk_start.0),
                line: chunk_start.1,
            };
            return Ok(Some((chunk, layout)));
        }
    }

    fn open_file(&self, file: &InputFile, counters: &Arc<SourceCounters>) -> Result<Current<F::Layout>, ConnectError> {
        let input = open_input(file, self.options.compression, self.options.encoding, counters, &self.cancelled)?;
        let mut wanted = self.options.chunk.unwrap_or(64 << 10);
        let mut pending = Vec::new();
        let mut ended = false;
        let mut input = input;
        loop {
            fill(&mut input, &file.name, &mut pending, &mut ended, wanted)?;
            if !ended && pending.len() < 3 {
                wanted = 4; // a byte order mark has to be seen whole
                continue;
            }
            let mark = if pending.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
            if pending.starts_with(b"\xFF\xFE") || pending.starts_with(b"\xFE\xFF") {
                return Err(ConnectError::new("R0209", format!("`{}` is written in UTF-16", file.name))
                    .help("convert it to UTF-8 first: `iconv -f UTF-16 -t UTF-8`"));
            }
            if let Some((start, layout)) = self.format.start(&pending[mark..], ended, &file.name)? {
                let start = mark + start;
                let lines = memchr::memchr_iter(b'\n', &pending[..start]).count() as u64;
                return Ok(Current {
                    input,
                    name: file.name.clone(),
                    pending: pending.split_off(start),
                    ended,
                    offset: start as u64,
                    line: 1 + lines,
                    layout: Arc::new(layout),
                });
            }
            if wanted >= MAX_RECORD {
                return Err(ConnectError::new("R0208", format!("`{}`: the header is longer than 512 MiB", file.name))
                    .help("is this a text file, and is no quote left open in its first line?"));
            }
            wanted = (wanted * 2).max(1024);
        }
    }
}

impl<L> Current<L> {
    fn fill(&mut self, wanted: usize) -> Result<(), ConnectError> {
        fill(&mut self.input, &self.name, &mut self.pending, &mut self.ended, wanted)
    }
}

/// Reads until `pending` holds `wanted` bytes or the input ends.
fn fill(
    input: &mut Input,
    name: &str,
    pending: &mut Vec<u8>,
    ended: &mut bool,
    wanted: usize,
) -> Result<(), ConnectError> {
    let mut len = pending.len();
    if *ended || len >= wanted {
        return Ok(());
    }
    pending.resize(wanted, 0);
    while len < wanted {
        match input.read(&mut pending[len..]) {
            Ok(0) => {
                *ended = true;
                break;
            }
            Ok(n) => len += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => {
                pending.truncate(len);
                return Err(io_error("read", name, &e));
            }
        }
    }
    pending.truncate(len);
    Ok(())
}
