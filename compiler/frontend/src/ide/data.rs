//! What editors are answered, as plain data: byte ranges of files, texts, lists.
//!
//! Nothing here knows a protocol: columns, lines and UTF-16 are counted by whoever speaks to an editor.

use std::path::PathBuf;

/// A half-open byte range of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TextRange {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl TextRange {
    /// A range from `start` to `end`, in bytes.
    pub fn new(start: usize, end: usize) -> Self {
        TextRange { start, end }
    }

    /// Nothing, at a place.
    pub fn empty(at: usize) -> Self {
        TextRange { start: at, end: at }
    }

    /// Whether an offset is inside or at one of the ends.
    pub fn touches(self, offset: usize) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// Whether two ranges have a byte or an end in common.
    pub fn meets(self, other: TextRange) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether `other` lies inside.
    pub fn contains(self, other: TextRange) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A range of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileRange {
    /// The file, as the compiler knows it: the root's path as asked, a library's as its `use` led to it.
    pub file: PathBuf,
    /// The range.
    pub range: TextRange,
}

/// A change of one place in a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextEdit {
    /// What is replaced; empty where text is put in.
    pub range: TextRange,
    /// By what.
    pub text: String,
}

/// The changes of one file. They don't overlap, and all of them are places in the text as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileEdit {
    /// The file.
    pub file: PathBuf,
    /// Its changes, by place.
    pub edits: Vec<TextEdit>,
}

/// What a completion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompletionKind {
    /// A field of the row at this point of the chain.
    Field,
    /// A stream or a source.
    Stream,
    /// `left` or `right`.
    Side,
    /// An operator: a source, a shuffle or a sink.
    Operator,
    /// A parameter of an operator that is not given yet.
    Parameter,
    /// One of the names that a parameter takes.
    EnumValue,
    /// A function.
    Function,
    /// A constant.
    Const,
    /// A parameter of the pipeline, or of the function whose body this is.
    Param,
    /// A built-in type.
    Type,
    /// A record.
    Record,
    /// A setting of the job.
    Setting,
    /// A word of the language.
    Keyword,
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// Something that may be written at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What is shown.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// Its type or signature, on one line.
    pub detail: Option<String>,
    /// Its documentation, as Markdown.
    pub doc: Option<String>,
    /// What is replaced: the word that was begun.
    pub range: TextRange,
    /// By what. Where `snippet` is true, with places to fill in: `$1`, `${1:text}`, `$0`; `$`, `}` and `\` are escaped by `\`.
    pub insert: String,
    /// Whether `insert` holds places to fill in.
    pub snippet: bool,
    /// The order among the others, by text: what fits best comes first.
    pub sort: String,
}

/// What is shown of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    /// The word that it is about.
    pub range: TextRange,
    /// Markdown.
    pub text: String,
}

/// The signatures of the call around a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHelp {
    /// The signatures, at least one.
    pub signatures: Vec<Signature>,
    /// Which of them fits what is written.
    pub active: usize,
    /// Which of its parameters the place belongs to; `None` where it belongs to none.
    pub parameter: Option<usize>,
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// `substring(s: string, start: int64, length: int64?) -> string`
    pub label: String,
    /// Documentation, as Markdown.
    pub doc: Option<String>,
    /// The parameters, in order.
    pub params: Vec<SignatureParam>,
}

/// A parameter of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureParam {
    /// Its place in the signature's label, in bytes.
    pub label: TextRange,
    /// Documentation, as Markdown.
    pub doc: Option<String>,
}

/// What an inlay hint tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HintKind {
    /// A type that is not written.
    Type,
    /// What a link does to the fields.
    Change,
}

/// A text shown inside the line that isn't written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlayHint {
    /// After which byte.
    pub offset: usize,
    /// The text, without blanks around it.
    pub text: String,
    /// What it tells. A [`HintKind::Change`] wants a blank before it.
    pub kind: HintKind,
    /// More, as Markdown: the whole row where the text is cut.
    pub tooltip: Option<String>,
}

/// What kind of change a code action makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActionKind {
    /// Mends a finding.
    QuickFix,
    /// Moves a part out, under a name.
    Extract,
    /// Writes the same in another way.
    Rewrite,
}

/// A change that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAction {
    /// What it does.
    pub title: String,
    /// What kind of change.
    pub kind: ActionKind,
    /// The finding that it mends: its code and place.
    pub mends: Option<(String, FileRange)>,
    /// Whether it is the one to take.
    pub preferred: bool,
    /// The changes.
    pub edits: Vec<FileEdit>,
}

/// What a lens does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LensCommand {
    /// `dfc check`
    Check,
    /// `dfc run`
    Run,
    /// `dfc plan`
    Plan,
}

/// A command shown above a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLens {
    /// The name that it stands above.
    pub range: TextRange,
    /// What is shown.
    pub title: String,
    /// What it does, with the file it stands in.
    pub command: LensCommand,
}

/// Where a field comes from: a tree from the place asked about back to the sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// The field at the place asked about.
    pub root: LineageStep,
    /// The same as text, one step a line, what comes from further back further in.
    pub text: String,
}

/// A field at one point of its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageStep {
    /// The field's name at this point.
    pub field: String,
    /// Its type, where it is known.
    pub ty: Option<String>,
    /// What happened here, a few words: "computed by `derive`", "a field of the source `orders`".
    pub words: String,
    /// The source or stream this happens in; `None` in a sink.
    pub stream: Option<String>,
    /// Where.
    pub place: Option<FileRange>,
    /// What it is made of, each one step nearer to the sources.
    pub from: Vec<LineageStep>,
}
