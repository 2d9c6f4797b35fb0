//! Opens text files: at their first record, behind a byte order mark and what the format says comes before it, or where a checkpoint
//! goes on. A file that can't be entered in the middle is read again up to there, and thrown away. Files that a checkpoint knows are
//! compared with what they were.

use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use super::ahead::{Ahead, CAN};
use super::buffers::Pending;
use super::discovery::first_files;
use super::{FIRST_CHUNK, Format, MAX_RECORD, State, TextFiles, TextOptions, Tracked, Whole};
use crate::barriers::{Noticed, Wanted};
use crate::files::{FilePosition, Input, InputFile, Tail, open_input, open_plain, other_file};
use crate::{ConnectError, OpenContext, SourceCounters};

/// Bytes that are read at once where text is thrown away.
const SKIP: usize = 1 << 20;

/// A file that is being read.
pub(super) struct Current<L> {
    /// Which of the source's files it is.
    pub number: usize,
    pub name: Arc<str>,
    /// Bytes read and not handed out.
    pub pending: Pending,
    /// The input is at its end.
    pub ended: bool,
    pub offset: u64,
    pub line: u64,
    pub layout: Arc<L>,
    /// How far it was read by pieces, where it is.
    pub ahead: Option<Ahead>,
    input: Input,
    /// A plain file itself.
    file: Option<File>,
    tail: Tail,
}

impl<F: Format> TextFiles<F> {
    /// Opens the files that a path stands for, or those of a checkpoint: the start of each is read and compared with what is declared.
    ///
    /// # Errors
    /// When one can't be read, doesn't fit, or isn't the one that the checkpoint knows.
    pub(crate) fn open(format: F, path: &str, options: TextOptions, cx: &OpenContext) -> Result<Self, ConnectError> {
        let files = first_files(path, &options, cx.positions.as_ref(), cx.continues)?;
        let target = options.chunk.unwrap_or(FIRST_CHUNK);
        let this = TextFiles {
            format,
            counters: Arc::default(),
            path: path.to_string(),
            tasks: cx.tasks.max(1),
            cancelled: cx.cancelled.clone(),
            wanted: Wanted::default(),
            total_bytes: match options.watch.follow {
                Some(_) => None,
                None => files.iter().map(|tracked| tracked.file.size).sum(),
            },
            buffers: Arc::default(),
            once: read_once(&files),
            by_pieces: CAN && options.watch.follow.is_none() && cx.limit_rows.is_none(),
            moved: Condvar::new(),
            options,
            state: Mutex::new(State {
                files,
                next_file: 0,
                current: None,
                seq: 0,
                left: cx.limit_rows,
                target,
                looked_at: Instant::now(),
                done: cx.limit_rows == Some(0),
                noticed: Noticed::default(),
            }),
        };
        let mut state = this.state();
        let unread: Vec<usize> = (0..state.files.len()).filter(|&number| !state.files[number].ended).collect();
        let mut first = true;
        for number in unread {
            // After the first only to compare them: what is read here is read again in its turn. A pipe could be read only once.
            let file = &state.files[number];
            if std::mem::take(&mut first) {
                state.current = this.open_file(number, file, &this.counters)?;
                state.next_file = number + 1;
                if state.current.is_none() {
                    state.files[number].looked = state.files[number].file.size.unwrap_or(0);
                }
            } else if file.file.size.is_some() {
                this.open_start(number, &file.file, &Arc::default())?;
                if let Some(path) =
                    file.file.path.as_ref().filter(|_| file.at.byte > 0 && this.options.is_plain(&file.file))
                {
                    file.at.text_before(path, &file.file.name)?;
                }
            }
        }
        drop(state);
        Ok(this)
    }

    /// Opens a file where it is to be read on. `None`: it grows, and what stands before its first record isn't whole yet.
    pub(super) fn open_file(
        &self,
        number: usize,
        tracked: &Tracked,
        counters: &Arc<SourceCounters>,
    ) -> Result<Option<Current<F::Layout>>, ConnectError> {
        let Tracked { file, at, .. } = tracked;
        let Some(mut current) = self.open_start(number, file, counters)? else { return Ok(None) };
        if at.byte > current.offset {
            match &file.path {
                Some(path) if self.options.is_plain(file) => {
                    let before = at.text_before(path, &file.name)?;
                    current.tail = Tail::default();
                    current.tail.push(&before);
                    let (input, same) = open_plain(file, at.byte, counters)?;
                    (current.input, current.file) = (input, Some(same));
                    current.pending.clear();
                    current.ended = file.size == Some(at.byte);
                }
                _ => self.skip(&mut current, at)?,
            }
            (current.offset, current.line) = (at.byte, at.line);
            current.end_line()?;
        }
        Ok(Some(current))
    }

    /// Reads up to a position.
    fn skip(&self, current: &mut Current<F::Layout>, at: &FilePosition) -> Result<(), ConnectError> {
        while current.offset < at.byte {
            if self.cancelled.load(Ordering::Relaxed) {
                return Ok(());
            }
            let left = at.byte - current.offset;
            let wanted = usize::try_from(left).unwrap_or(SKIP).min(SKIP);
            current.fill(wanted)?;
            let passed = wanted.min(current.pending.len());
            if passed == 0 {
                let why = format!("it ends at byte {} of its text, and was read to byte {}", current.offset, at.byte);
                return Err(other_file(&current.name, &why));
            }
            current.tail.push(&current.pending[..passed]);
            current.offset += passed as u64;
            current.pending.pass(passed);
        }
        match current.tail.block() == at.before {
            true => Ok(()),
            false => Err(at.other_before(&current.name)),
        }
    }

    /// Opens a file at its first record; `None` as above.
    fn open_start(
        &self,
        number: usize,
        file: &InputFile,
        counters: &Arc<SourceCounters>,
    ) -> Result<Option<Current<F::Layout>>, ConnectError> {
        let grows = self.options.watch.by_lines();
        let (mut input, same) = match file.size {
            Some(size) if size > 0 && self.options.is_plain(file) => {
                open_plain(file, 0, counters).map(|(input, same)| (input, Some(same)))?
            }
            _ => {
                let TextOptions { compression, encoding, .. } = self.options;
                (open_input(file, compression, encoding, counters, &self.cancelled)?, None)
            }
        };
        let mut wanted = self.options.chunk.unwrap_or(64 << 10);
        let mut pending = Pending::new(&self.buffers);
        let mut ended = false;
        loop {
            pending.fill(&mut input, &file.name, &mut ended, wanted)?;
            if !ended && pending.len() < 3 {
                wanted = 4; // a byte order mark has to be seen whole
                continue;
            }
            let mark = if pending.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
            if pending.starts_with(b"\xFF\xFE") || pending.starts_with(b"\xFE\xFF") {
                return Err(ConnectError::new("R0209", format!("`{}` is written in UTF-16", file.name))
                    .help("convert it to UTF-8 first: `iconv -f UTF-16 -t UTF-8`"));
            }
            if let Some((start, layout)) = self.format.start(&pending[mark..], ended && !grows, &file.name)? {
                let before = pending[..mark + start].to_vec();
                pending.pass(mark + start);
                let mut current = Current {
                    number,
                    ahead: None,
                    input,
                    file: same,
                    name: file.name.clone(),
                    pending,
                    ended,
                    offset: 0,
                    line: 1,
                    layout: Arc::new(layout),
                    tail: Tail::default(),
                };
                current.pass(&before, Whole::counted(&before, before.len()).lines);
                return Ok(Some(current));
            }
            if ended && grows {
                return Ok(None);
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
    /// Reads until `pending` holds `wanted` bytes or the input ends.
    pub(super) fn fill(&mut self, wanted: usize) -> Result<(), ConnectError> {
        self.pending.fill(&mut self.input, &self.name, &mut self.ended, wanted)
    }

    /// A plain file of that size is read by pieces from here on. Where nothing is left to be read, it isn't.
    pub(super) fn read_ahead(&mut self, size: u64) {
        let next = self.offset + self.pending.len() as u64;
        if !self.ended
            && next < size
            && let Some(file) = self.file.take()
        {
            self.ahead = Some(Ahead::new(file, next, size, self.pending.to_vec()));
            self.pending.clear();
        }
    }

    /// The text, which has so many lines, is handed out.
    pub(super) fn pass(&mut self, text: &[u8], lines: usize) {
        self.offset += text.len() as u64;
        self.line += lines as u64;
        self.tail.push(text);
    }

    /// The last line may have had no end when the file was read to its own. What was added since must begin with it.
    fn end_line(&mut self) -> Result<(), ConnectError> {
        if self.tail.last() == Some(b'\n') {
            return Ok(());
        }
        self.fill(2)?;
        let end = match &*self.pending {
            [] => return Ok(()),
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => {
                return Err(other_file(&self.name, &format!("its line {} was read without its end", self.line))
                    .help("a line must be whole before it is read: `ready:` says how that is known"));
            }
        };
        let text = self.pending[..end].to_vec();
        self.pending.pass(end);
        self.pass(&text, 1);
        Ok(())
    }

    /// How far it was read.
    pub(super) fn position(&self, before: &FilePosition) -> FilePosition {
        FilePosition { byte: self.offset, line: self.line, before: self.tail.block(), file: before.file.clone() }
    }
}

/// Why these can't be read twice, if they can't.
pub(super) fn read_once(files: &[Tracked]) -> Option<String> {
    let pipe = files.iter().map(|tracked| &tracked.file).find(|file| file.size.is_none())?;
    Some(match &pipe.path {
        Some(_) => format!("`{}` is a pipe, which can be read only once", pipe.name),
        None => "the standard input can be read only once".to_string(),
    })
}
