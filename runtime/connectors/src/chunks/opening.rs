//! Opens text files: at their first record, behind a byte order mark and what the format says comes before it, or where a checkpoint
//! goes on. A file that can't be entered in the middle is read again up to there, and thrown away. Files that a checkpoint knows are
//! compared with what they were.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::{FIRST_CHUNK, Format, MAX_RECORD, State, TextFiles, TextOptions, Tracked};
use crate::barriers::{Noticed, Wanted};
use crate::files::{
    FilePosition, Identity, Input, InputFile, Tail, expand, input_file, io_error, open_input, open_middle, other_file,
};
use crate::{ConnectError, OpenContext, Positions, SourceCounters};

/// Bytes that are read at once where text is thrown away.
const SKIP: usize = 1 << 20;

/// A file that is being read.
pub(super) struct Current<L> {
    /// Which of the source's files it is.
    pub number: usize,
    pub name: Arc<str>,
    /// Bytes read and not handed out.
    pub pending: Vec<u8>,
    /// The input is at its end.
    pub ended: bool,
    pub offset: u64,
    pub line: u64,
    pub layout: Arc<L>,
    input: Input,
    tail: Tail,
}

impl<F: Format> TextFiles<F> {
    /// Opens the files that a path stands for, or those of a checkpoint: the start of each is read and compared with what is declared.
    ///
    /// # Errors
    /// When one can't be read, doesn't fit, or isn't the one that the checkpoint knows.
    pub(crate) fn open(format: F, path: &str, options: TextOptions, cx: &OpenContext) -> Result<Self, ConnectError> {
        let files = match &cx.positions {
            Some(positions) => known_files(positions, path, cx.continues)?,
            None => expand(path)?.into_iter().map(Tracked::found).collect::<Result<_, _>>()?,
        };
        let this = TextFiles {
            format,
            counters: Arc::default(),
            options,
            tasks: cx.tasks.max(1),
            cancelled: cx.cancelled.clone(),
            wanted: Wanted::default(),
            total_bytes: files.iter().map(|tracked| tracked.file.size).sum(),
            once: read_once(&files),
            state: Mutex::new(State {
                files,
                next_file: 0,
                current: None,
                seq: 0,
                left: cx.limit_rows,
                target: options.chunk.unwrap_or(FIRST_CHUNK),
                done: cx.limit_rows == Some(0),
                noticed: Noticed::default(),
            }),
        };
        let mut state = this.state();
        let unread: Vec<usize> = (0..state.files.len()).filter(|&number| !state.files[number].ended).collect();
        if let Some(&first) = unread.first() {
            state.current = Some(this.open_file(first, &state.files[first], &this.counters)?);
            state.next_file = first + 1;
        }
        // Only to compare them: what is read here is read again in its turn. A pipe could be read only once.
        for &number in unread.iter().skip(1).filter(|&&number| state.files[number].file.size.is_some()) {
            let Tracked { file, at, .. } = &state.files[number];
            this.open_start(number, file, &Arc::default())?;
            if let Some(path) = file.path.as_ref().filter(|_| at.byte > 0 && options.is_plain(file)) {
                at.text_before(path, &file.name)?;
            }
        }
        drop(state);
        Ok(this)
    }

    /// Opens a file where it is to be read on.
    pub(super) fn open_file(
        &self,
        number: usize,
        tracked: &Tracked,
        counters: &Arc<SourceCounters>,
    ) -> Result<Current<F::Layout>, ConnectError> {
        let Tracked { file, at, .. } = tracked;
        let mut current = self.open_start(number, file, counters)?;
        if at.byte <= current.offset {
            return Ok(current);
        }
        match &file.path {
            Some(path) if self.options.is_plain(file) => {
                let before = at.text_before(path, &file.name)?;
                current.tail = Tail::default();
                current.tail.push(&before);
                current.input = open_middle(file, at.byte, counters)?;
                current.pending.clear();
                current.ended = file.size == Some(at.byte);
            }
            _ => self.skip(&mut current, at)?,
        }
        (current.offset, current.line) = (at.byte, at.line);
        current.end_line()?;
        Ok(current)
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
            current.pending.drain(..passed);
        }
        match current.tail.block() == at.before {
            true => Ok(()),
            false => Err(at.other_before(&current.name)),
        }
    }

    /// Opens a file at its first record.
    fn open_start(
        &self,
        number: usize,
        file: &InputFile,
        counters: &Arc<SourceCounters>,
    ) -> Result<Current<F::Layout>, ConnectError> {
        let mut input = open_input(file, self.options.compression, self.options.encoding, counters, &self.cancelled)?;
        let mut wanted = self.options.chunk.unwrap_or(64 << 10);
        let mut pending = Vec::new();
        let mut ended = false;
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
                let rest = pending.split_off(mark + start);
                let mut current = Current {
                    number,
                    input,
                    name: file.name.clone(),
                    pending: rest,
                    ended,
                    offset: 0,
                    line: 1,
                    layout: Arc::new(layout),
                    tail: Tail::default(),
                };
                current.pass(&pending);
                return Ok(current);
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
        fill(&mut self.input, &self.name, &mut self.pending, &mut self.ended, wanted)
    }

    /// The text is handed out; the number of its lines.
    pub(super) fn pass(&mut self, text: &[u8]) -> usize {
        let lines = memchr::memchr_iter(b'\n', text).count();
        self.offset += text.len() as u64;
        self.line += lines as u64;
        self.tail.push(text);
        lines
    }

    /// The last line may have had no end when the file was read to its own. What was added since must begin with it.
    fn end_line(&mut self) -> Result<(), ConnectError> {
        if self.tail.last() == Some(b'\n') {
            return Ok(());
        }
        self.fill(2)?;
        let end = match self.pending.as_slice() {
            [] => return Ok(()),
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => {
                return Err(other_file(&self.name, &format!("its line {} was read without its end", self.line))
                    .help("a line must be whole before it is read: `ready:` says how that is known"));
            }
        };
        let rest = self.pending.split_off(end);
        let text = std::mem::replace(&mut self.pending, rest);
        self.pass(&text);
        Ok(())
    }

    /// How far it was read.
    pub(super) fn position(&self, before: &FilePosition) -> FilePosition {
        FilePosition { byte: self.offset, line: self.line, before: self.tail.block(), file: before.file.clone() }
    }
}

impl Tracked {
    /// A file that was found just now.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) fn found(file: InputFile) -> Result<Self, ConnectError> {
        let identity = match (&file.path, file.size) {
            (Some(path), Some(size)) => {
                let identity = Identity::of(path).map_err(|e| io_error("read", &file.name, &e))?;
                Identity { size, ..identity }
            }
            _ => Identity::default(),
        };
        let at = FilePosition { line: 1, file: identity, ..FilePosition::default() };
        Ok(Tracked { file, at, ended: false })
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

/// The files of a checkpoint, as far as they were read there. With `continues` also those that came since, and what was added.
fn known_files(positions: &Positions, path: &str, continues: bool) -> Result<Vec<Tracked>, ConnectError> {
    let mut files = Vec::with_capacity(positions.splits.len());
    for split in &positions.splits {
        let at = FilePosition::from_value(&split.position, &split.split)?;
        let path = Path::new(&split.split);
        // What was read to its end and is gone by now isn't needed any more.
        if split.ended && !(continues && path.exists()) {
            let file =
                InputFile { path: Some(path.into()), name: split.split.as_str().into(), size: Some(at.file.size) };
            files.push(Tracked { file, at, ended: true });
            continue;
        }
        let mut file = input_file(path)?;
        let difference = at.file.difference(path).map_err(|e| io_error("read", &file.name, &e))?;
        if let Some(why) = difference {
            return Err(other_file(&file.name, &why));
        }
        let mut tracked = Tracked { ended: split.ended, file: file.clone(), at };
        if continues {
            tracked.grow()?;
        } else {
            file.size = Some(tracked.at.file.size);
            tracked.file = file;
        }
        files.push(tracked);
    }
    if continues {
        let known: std::collections::HashSet<Arc<str>> = files.iter().map(|f| f.file.name.clone()).collect();
        for file in expand(path)?.into_iter().filter(|file| !known.contains(&file.name)) {
            files.push(Tracked::found(file)?);
        }
    }
    Ok(files)
}

impl Tracked {
    /// Takes what was added to a file that was read before.
    fn grow(&mut self) -> Result<(), ConnectError> {
        let (Some(path), Some(size)) = (&self.file.path, self.file.size) else { return Ok(()) };
        if size == self.at.file.size {
            return Ok(());
        }
        let now = Identity::of(path).map_err(|e| io_error("read", &self.file.name, &e))?;
        self.at.file = Identity { size, ..now };
        self.ended = false;
        Ok(())
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
