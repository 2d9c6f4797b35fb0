//! Cuts text files into chunks of whole records, one after another; the tasks parse the chunks in parallel, and read plain files in parallel
//! too (`ahead`); other input is read and cut behind a lock. The position of a barrier is the end of the last chunk that was handed out before it. `discovery` says which files there are, `opening` finds a file's first record, or the one where a
//! checkpoint goes on. It may not know the format: a [`Format`] says where records end.
//!
//! Files are read in blocks rather than mapped: a mapped file that somebody truncates would end the process, and the copy
//! costs little beside the parsing.

mod ahead;
mod buffers;
mod discovery;
#[cfg(test)]
mod following_tests;
mod opening;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::barriers::{Answered, Noticed, Wanted};
use crate::files::{Compression, Encoding, FilePosition, InputFile};
use crate::locate::Chunk;
use crate::{ConnectError, Next, Positions, SourceCounters, SplitPosition};
use ahead::{Ahead, Part};
use arrow_buffer::Buffer;
use buffers::Buffers;
pub(crate) use discovery::Watch;
use opening::Current;

/// Bytes of the first chunk, and the bounds of the later ones, whose size follows from the rows' length. A chunk, its index and some
/// of its columns are to fit the second-level cache together.
const FIRST_CHUNK: usize = 512 << 10;
const CHUNK_BOUNDS: (usize, usize) = (128 << 10, 512 << 10);
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

    /// What a reader keeps of the search for records between finding and parsing them.
    type Found: Default + Send;

    /// The whole records of data that starts at a record.
    fn cut(&self, data: &[u8]) -> Option<Whole>;

    /// The same for the reader that parses them next: it keeps what was found on the way. With `all`, the data ends where a record does.
    fn find(&self, data: &[u8], all: bool, found: &mut Self::Found) -> Option<Whole>;

    /// Number of records in `data`, at most `max`, and where the last counted one ends.
    fn count(&self, data: &[u8], layout: &Self::Layout, max: u64) -> (u64, usize);
}

/// Whole records at the start of some data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Where the last of them ends.
    pub end: usize,
    /// Line feeds up to there, those within quotes included.
    pub lines: usize,
}

impl Whole {
    /// Those that end there.
    pub(crate) fn counted(data: &[u8], end: usize) -> Self {
        Whole { end, lines: memchr::memchr_iter(b'\n', &data[..end]).count() }
    }
}

/// How the files are read.
#[derive(Debug, Clone)]
pub(crate) struct TextOptions {
    /// Compression of the files.
    pub compression: Compression,
    /// Their encoding.
    pub encoding: Encoding,
    /// A fixed size of chunks in bytes; `None`: chosen by the length of rows.
    pub chunk: Option<usize>,
    /// When files may be read, and whether there will be more.
    pub watch: Watch,
}

impl TextOptions {
    /// Whether a file's text is the file, byte for byte, so that it can be entered in the middle.
    fn is_plain(&self, file: &InputFile) -> bool {
        self.encoding == Encoding::Utf8 && self.compression.resolve(&file.name) == Compression::None
    }
}

/// The files of a source, being cut into chunks.
pub(crate) struct TextFiles<F: Format> {
    /// The format.
    pub format: F,
    /// Its counters.
    pub counters: Arc<SourceCounters>,
    path: String,
    options: TextOptions,
    tasks: usize,
    cancelled: Arc<AtomicBool>,
    wanted: Wanted,
    /// Bytes of all files as stored, where that is known.
    total_bytes: Option<u64>,
    buffers: Arc<Buffers>,
    /// Why it can't be read again, or gone on with.
    once: Option<String>,
    /// All of it is wanted, and all of it is there: plain files may be read in pieces.
    by_pieces: bool,
    state: Mutex<State<F::Layout>>,
    /// A piece's turn is over, or all is.
    moved: Condvar,
}

struct State<L> {
    /// All files, in the order in which they are read.
    files: Vec<Tracked>,
    /// All before this one have been read.
    next_file: usize,
    current: Option<Current<L>>,
    seq: u64,
    /// Records still wanted.
    left: Option<u64>,
    target: usize,
    /// When it was looked for more.
    looked_at: Instant,
    done: bool,
    noticed: Noticed<Vec<SplitPosition>>,
}

/// A file and how far it was read when it was last closed.
struct Tracked {
    file: InputFile,
    at: FilePosition,
    /// Everything in it was read.
    ended: bool,
    /// What it had when it was last read to the end of its last whole record: nothing is to be read before it has more.
    looked: u64,
}

/// A reader's place among the barriers.
#[derive(Default)]
pub(crate) struct Turn {
    answered: Answered,
    ended: bool,
}

/// What is to be done next.
enum Step<L> {
    /// This is handed out.
    Give(Piece<L>),
    /// This is to be read.
    Read(Part),
    /// Others are reading the rest.
    Wait,
}

/// What a reader gets.
pub(crate) enum Piece<L> {
    /// Records, and what the start of their file says about them.
    Chunk(Chunk, Arc<L>),
    /// Something else than rows.
    Other(Next),
}

impl<F: Format> TextFiles<F> {
    /// The next piece of work for a reader. At the end, and when the job was cancelled, that is the end.
    ///
    /// # Errors
    /// When a file can't be read further; the source is at its end then.
    pub(crate) fn take(&self, turn: &mut Turn, found: &mut F::Found) -> Result<Piece<F::Layout>, ConnectError> {
        let mut state = self.state();
        if turn.ended {
            return Ok(Piece::Other(Next::End));
        }
        let result = loop {
            state = self.settled(state);
            self.notice(&mut state);
            if let Some(number) = state.noticed.answer(&mut turn.answered) {
                return Ok(Piece::Other(Next::Barrier(number)));
            }
            match self.advance(&mut state) {
                Ok(Step::Give(piece)) => break Ok(piece),
                Ok(Step::Read(part)) => {
                    drop(state);
                    let read = self.read_part(&part, found);
                    state = self.state();
                    match read {
                        Ok(None) => {}
                        Ok(Some(piece)) => break Ok(piece),
                        Err(error) => break Err(error),
                    }
                }
                Ok(Step::Wait) => state = self.wait(state),
                Err(error) => break Err(error),
            }
        };
        if !matches!(result, Ok(Piece::Chunk(..) | Piece::Other(Next::Wait(_)))) {
            state.done = true;
            state.close();
            turn.ended = true;
            self.moved.notify_all();
        }
        result
    }

    /// Stored bytes of all files, where known; what was read before a checkpoint is part of it.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// The most tasks that find a chunk to parse.
    pub(crate) fn max_tasks(&self) -> usize {
        let chunk = self.options.chunk.unwrap_or(FIRST_CHUNK) as u64;
        let state = self.state();
        let plain = state.files.iter().all(|f| self.options.compression.resolve(&f.file.name) == Compression::None);
        match self.total_bytes {
            Some(bytes) if plain => self.tasks.min(bytes.div_ceil(chunk).max(1).try_into().unwrap_or(usize::MAX)),
            _ => self.tasks,
        }
    }

    /// Whether it can be gone on with: see [`crate::Source::resumable`].
    pub(crate) fn resumable(&self) -> Result<(), String> {
        self.once.clone().map_or(Ok(()), Err)
    }

    /// See [`crate::Source::mark`].
    pub(crate) fn mark(&self, number: u64) {
        self.wanted.want(number);
    }

    /// See [`crate::Source::positions`].
    pub(crate) fn positions(&self, number: u64) -> Result<Positions, ConnectError> {
        let mut state = self.settled(self.state());
        // All readers may have ended before the barrier was wanted.
        self.notice(&mut state);
        match state.noticed.report(number) {
            Some(splits) => Ok(Positions { splits }),
            None => Err(ConnectError::new("R0499", format!("there was no barrier {number}"))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<F::Layout>> {
        // A reader that panicked has ended the job; what the lock protects is still usable for the others' end.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a barrier is wanted: when all that was taken before it has been cut, and its position is known.
    fn settled<'s>(&self, mut state: MutexGuard<'s, State<F::Layout>>) -> MutexGuard<'s, State<F::Layout>> {
        while !state.done && state.ahead().is_some_and(|ahead| ahead.is_busy()) && self.wanted.is_any() {
            state = self.wait(state);
        }
        state
    }

    fn notice(&self, state: &mut State<F::Layout>) {
        let State { files, current, noticed, .. } = state;
        noticed.notice(&self.wanted, || {
            let split = |(number, tracked): (usize, &Tracked)| {
                let now = current.as_ref().filter(|current| current.number == number);
                let at = now.map_or_else(|| tracked.at.clone(), |current| current.position(&tracked.at));
                SplitPosition {
                    split: tracked.file.name.to_string(),
                    exact: tracked.ended || at.byte == 0 || self.options.is_plain(&tracked.file),
                    position: at.to_value(),
                    ended: tracked.ended,
                }
            };
            files.iter().enumerate().map(split).collect()
        });
    }

    fn advance(&self, state: &mut State<F::Layout>) -> Result<Step<F::Layout>, ConnectError> {
        loop {
            if state.done || self.cancelled.load(Ordering::Relaxed) {
                return Ok(Step::Give(Piece::Other(Next::End)));
            }
            let State { files, current, .. } = state;
            let Some(current) = current else {
                let number = state.next_file;
                if let Some(file) = files.get_mut(number) {
                    state.next_file += 1;
                    let size = file.file.size.unwrap_or(u64::MAX);
                    if !file.ended && (self.options.watch.follow.is_none() || size > file.looked) {
                        state.current = self.open_file(number, file, &self.counters)?;
                        if state.current.is_none() {
                            file.looked = size;
                        }
                    }
                    continue;
                }
                let Some(poll) = self.options.watch.follow else { return Ok(Step::Give(Piece::Other(Next::End))) };
                let since = state.looked_at.elapsed();
                if since < poll {
                    return Ok(Step::Give(Piece::Other(Next::Wait(poll - since))));
                }
                state.looked_at = Instant::now();
                if discovery::look(files, &self.path, &self.options)? {
                    state.next_file = 0;
                }
                continue;
            };
            if self.by_pieces
                && current.pending.len() < state.target
                && let Some(size) = files[current.number].file.size
            {
                current.read_ahead(size);
            }
            if let Some(ahead) = &mut current.ahead {
                if let Some(part) = ahead.take(&current.name, state.target) {
                    return Ok(Step::Read(part));
                }
                if ahead.is_busy() {
                    return Ok(Step::Wait);
                }
                let number = current.number;
                state.close();
                state.files[number].ended = true;
                continue;
            }
            let mut wanted = state.target;
            let Whole { end, lines } = loop {
                current.fill(wanted)?;
                if current.ended {
                    let file = &files[current.number];
                    let grows = self.options.watch.by_lines() || file.has_grown();
                    break match self.options.is_plain(&file.file) && grows {
                        // The last record may go on in what comes later.
                        true => self.format.cut(&current.pending).unwrap_or(Whole { end: 0, lines: 0 }),
                        false => Whole::counted(&current.pending, current.pending.len()),
                    };
                }
                if let Some(whole) = self.format.cut(&current.pending) {
                    break whole;
                }
                if wanted >= MAX_RECORD {
                    return Err(too_long(&current.name, current.line));
                }
                wanted *= 2;
            };
            if end == 0 {
                let (number, whole) = (current.number, current.pending.is_empty());
                state.close();
                let file = &mut state.files[number];
                // A run that ends reads no more of it; where it is followed, the rest of a record may come.
                file.ended = whole || !self.options.watch.by_lines();
                file.looked = file.file.size.unwrap_or(u64::MAX);
                continue;
            }
            let mut text = current.pending.hand_out(end);
            let layout = current.layout.clone();
            let mut lines = lines;
            if let Some(left) = &mut state.left {
                let (rows, end) = self.format.count(&text, &layout, *left);
                *left -= rows;
                if *left == 0 {
                    lines = Whole::counted(&text, end).lines;
                    text = text.slice_with_length(0, end);
                    state.done = true;
                }
            }
            return Ok(Step::Give(self.hand_out(state, text, lines)));
        }
    }

    /// Hands out records of the current file, and notes that.
    fn hand_out(&self, state: &mut State<F::Layout>, text: Buffer, lines: usize) -> Piece<F::Layout> {
        let State { current, target, seq, .. } = state;
        let Some(current) = current else { return Piece::Other(Next::End) };
        let (offset, line) = (current.offset, current.line);
        current.pass(&text, lines);
        if self.options.chunk.is_none() {
            let per_row = text.len() / lines.max(1);
            *target = (per_row * CHUNK_ROWS).clamp(CHUNK_BOUNDS.0, CHUNK_BOUNDS.1);
        }
        let chunk = Chunk {
            seq: *seq,
            text,
            file: current.name.clone(),
            offset: (self.options.encoding == Encoding::Utf8).then_some(offset),
            line,
        };
        *seq += 1;
        Piece::Chunk(chunk, current.layout.clone())
    }
}

/// The error of a record that is longer than any may be.
fn too_long(file: &str, line: u64) -> ConnectError {
    ConnectError::new("R0208", format!("`{file}`: the row at line {line} is longer than 512 MiB"))
        .help("is a quote opened there that is never closed?")
}

impl<L> State<L> {
    /// How far the current file has been read by pieces, if it is.
    fn ahead(&mut self) -> Option<&mut Ahead> {
        self.current.as_mut()?.ahead.as_mut()
    }

    /// Line of the current file's next record.
    fn line(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.line)
    }

    /// Whether there is more in the current file than was when it was found.
    fn has_grown(&self) -> bool {
        self.current.as_ref().is_some_and(|current| self.files[current.number].has_grown())
    }

    /// Closes the current file and notes how far it was read.
    fn close(&mut self) {
        if let Some(current) = self.current.take() {
            let tracked = &mut self.files[current.number];
            tracked.at = current.position(&tracked.at);
        }
    }
}

impl Tracked {
    /// Whether there is more than was there when the file was found.
    fn has_grown(&self) -> bool {
        let now = self.file.path.as_ref().and_then(|path| std::fs::metadata(path).ok());
        now.is_some_and(|now| self.file.size.is_some_and(|size| size > 0 && now.len() > size))
    }
}
