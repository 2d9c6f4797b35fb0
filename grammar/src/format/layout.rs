//! Lays commands out in lines: the printer below the formatter.
//!
//! A list of [`Cmd`]s says what is printed and where a line may break; [`render`] decides. A *group* is laid flat if it
//! fits into what is left of the line together with what follows it up to the next possible break, otherwise each of its
//! own breaks becomes a line end. Knows nothing of the language.

use unicode_width::UnicodeWidthStr;

/// Columns of a line.
pub(super) const WIDTH: usize = 100;

/// The limit of a group that breaks last.
pub(super) const STIFF: usize = WIDTH + 1;

/// Columns of one step of indentation.
const STEP: usize = 4;

/// Blanks before a comment at a line's end.
const GAP: usize = 2;

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cmd<'a> {
    /// Prints a token.
    Text(&'a str),
    /// Prints a blank, except at the start of a line.
    Space,
    /// A place where the innermost group breaks; flat it is nothing or a blank. `blank`: broken, with an empty line above
    /// the next.
    Line { space: bool, blank: bool },
    /// A place where a list of small things breaks where the next one does not fit, each place for itself.
    Fill,
    /// Ends the line, and with it every group around.
    Hard { blank: bool },
    /// Ends the line unless it is empty so far, and breaks every group around.
    Fresh,
    /// Starts a group: flat only if no more than this many columns are needed, the line's beginning counted. What comes
    /// before a group with [`STIFF`] breaks rather than the group.
    Open { limit: usize },
    /// Ends a group.
    Close,
    /// One step to the right from the next line on.
    Indent,
    /// One step back.
    Dedent,
    /// Printed only where the innermost group is broken.
    IfBroken(&'static str),
    /// Printed only where it is flat.
    IfFlat(&'static str),
    /// A comment at the end of the line, whatever is printed before the line ends. No flat line may follow it.
    Comment(&'a str),
    /// The end of a line's first column, where the group is broken; a blank where it is flat.
    Column,
}

/// Lays the commands out; `end` ends every line but the last.
pub(super) fn render(cmds: &[Cmd<'_>], end: &str) -> String {
    let mut printer = Printer { cmds, lines: vec![Line::default()], indent: 0, flat: Vec::new() };
    for at in 0..cmds.len() {
        printer.step(at);
    }
    let mut lines = printer.lines;
    align_columns(&mut lines);
    align_comments(&mut lines);
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        if i > 0 {
            out.push_str(end);
        }
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', line.indent));
            out.push_str(&line.text);
        }
    }
    out
}

/// A line in the making.
#[derive(Debug, Default)]
struct Line {
    /// Columns before its text.
    indent: usize,
    text: String,
    /// Whether a blank comes before what is printed next.
    space: bool,
    /// Where the text of its second column begins, in bytes.
    column: Option<usize>,
    /// The comment at its end.
    comment: String,
    /// Whether it is nothing but a comment of its own.
    comment_only: bool,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.comment.is_empty()
    }

    /// Columns that are taken.
    fn width(&self) -> usize {
        match self.text.rsplit_once('\n') {
            Some((_, last)) => last.width(),
            None => self.indent + self.text.width(),
        }
    }

    /// Whether a text in it goes over several lines.
    fn is_tall(&self) -> bool {
        self.text.contains('\n')
    }
}

struct Printer<'c, 'a> {
    cmds: &'c [Cmd<'a>],
    lines: Vec<Line>,
    indent: usize,
    /// For each open group whether it is flat.
    flat: Vec<bool>,
}

impl Printer<'_, '_> {
    fn line(&mut self) -> &mut Line {
        let end = self.lines.len() - 1; // There is always the line in the making.
        &mut self.lines[end]
    }

    fn end_line(&mut self, blank: bool) {
        if blank {
            self.lines.push(Line::default());
        }
        let indent = self.indent;
        self.lines.push(Line { indent, ..Line::default() });
    }

    fn text(&mut self, text: &str) {
        let indent = self.indent;
        let line = self.line();
        if line.text.is_empty() {
            line.indent = indent;
            line.comment_only = text.starts_with("//");
        } else if line.space {
            line.text.push(' ');
        }
        line.space = false;
        line.text.push_str(text);
    }

    /// A blank before what is printed next; none at the end of a line.
    fn space(&mut self) {
        self.line().space = true;
    }

    fn is_flat(&self) -> bool {
        self.flat.last().copied().unwrap_or(false)
    }

    fn step(&mut self, at: usize) {
        match self.cmds[at] {
            Cmd::Text(text) => self.text(text),
            Cmd::Space => self.space(),
            Cmd::Line { blank, .. } if !self.is_flat() => self.end_line(blank),
            Cmd::Line { space: true, .. } => self.space(),
            Cmd::Line { .. } => {}
            Cmd::Fill if self.is_flat() || self.fits(at, WIDTH) => self.space(),
            Cmd::Fill => self.end_line(false),
            Cmd::Hard { blank } => self.end_line(blank),
            Cmd::Fresh => {
                if !self.line().is_empty() {
                    self.end_line(false);
                }
            }
            Cmd::Open { limit } => {
                let flat = self.is_flat() || self.fits(at, limit);
                self.flat.push(flat);
            }
            Cmd::Close => {
                self.flat.pop();
            }
            Cmd::Indent => self.indent += STEP,
            Cmd::Dedent => self.indent = self.indent.saturating_sub(STEP),
            Cmd::IfBroken(text) if !self.is_flat() => self.text(text),
            Cmd::IfFlat(text) if self.is_flat() => self.text(text),
            Cmd::IfBroken(_) | Cmd::IfFlat(_) => {}
            Cmd::Comment(text) => {
                let line = self.line();
                if !line.comment.is_empty() {
                    line.comment.push(' ');
                }
                line.comment.push_str(text);
            }
            Cmd::Column => {
                let flat = self.is_flat();
                self.space();
                let line = self.line();
                if !flat && line.column.is_none() && !line.is_tall() {
                    line.column = Some(line.text.len());
                }
            }
        }
    }

    /// Whether the group that opens at a command (or what follows a `Fill` up to the next) fits into the line flat.
    fn fits(&self, at: usize, limit: usize) -> bool {
        let line = &self.lines[self.lines.len() - 1];
        let start = if line.text.is_empty() { self.indent } else { line.width() + usize::from(line.space) };
        let Some(mut left) = limit.min(WIDTH).checked_sub(start) else { return false };
        let fill = matches!(self.cmds[at], Cmd::Fill);
        let mut commented = !line.comment.is_empty();
        // Groups open since; with none we are past the group in question.
        let mut depth = 1usize;
        // Stiff groups behind it, with the groups inside them.
        let mut stiff = 0usize;
        let mut first = fill;
        for cmd in &self.cmds[at + usize::from(!fill)..] {
            let inside = depth > 0;
            let columns = match *cmd {
                Cmd::Text(text) => match text.split_once('\n') {
                    Some((head, _)) => return measure(head, left).is_some(),
                    None => match measure(text, left) {
                        Some(columns) => columns,
                        None => return false,
                    },
                },
                Cmd::Space | Cmd::Column => 1,
                Cmd::Line { space, .. } if stiff > 0 => usize::from(space),
                Cmd::Fill if stiff > 0 => 1,
                Cmd::Line { .. } | Cmd::Fill if !inside => return true,
                Cmd::Line { .. } | Cmd::Fill if commented => return false,
                Cmd::Fill if first => {
                    first = false;
                    1
                }
                Cmd::Fill if fill && depth == 1 => return true,
                Cmd::Line { .. } if fill && depth == 1 => return true,
                Cmd::Line { space, .. } => usize::from(space),
                Cmd::Fill => 1,
                Cmd::Hard { .. } | Cmd::Fresh => return !inside,
                Cmd::Open { limit: 0 } if inside => return false,
                Cmd::Open { limit } => {
                    depth += usize::from(inside);
                    stiff += usize::from(stiff > 0 || (!inside && limit == STIFF));
                    0
                }
                Cmd::Close => {
                    depth = depth.saturating_sub(1);
                    stiff = stiff.saturating_sub(1);
                    0
                }
                Cmd::Indent | Cmd::Dedent => 0,
                Cmd::IfBroken(text) => usize::from(!inside || (fill && depth == 1)) * text.len(),
                Cmd::IfFlat(text) => usize::from(inside) * text.len(),
                Cmd::Comment(_) => {
                    commented = true;
                    0
                }
            };
            match left.checked_sub(columns) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
        true
    }
}

/// The columns of a text, if there are no more than `most`.
fn measure(text: &str, most: usize) -> Option<usize> {
    // Far too long, whatever its characters are.
    if text.len() > 64 * (most + 1) {
        return None;
    }
    Some(text.width()).filter(|width| *width <= most)
}

/// Puts the second columns of neighbouring lines below one another. An empty line, another indentation and a line without
/// columns end the table; lines of comment do not.
fn align_columns(lines: &mut [Line]) {
    let mut table: Vec<usize> = Vec::new();
    for i in 0..=lines.len() {
        let indent = match lines.get(i) {
            Some(line) if line.comment_only => continue,
            Some(line) => line.column.map(|_| line.indent),
            None => None,
        };
        if table.first().is_some_and(|first| indent != Some(lines[*first].indent)) {
            align(lines, &std::mem::take(&mut table));
        }
        if indent.is_some() {
            table.push(i);
        }
    }
}

/// Puts the second columns of these lines below one another.
fn align(lines: &mut [Line], table: &[usize]) {
    let head = |line: &Line| line.text[..line.column.unwrap_or(0)].width();
    let most = table.iter().map(|i| head(&lines[*i])).max().unwrap_or(0);
    for i in table {
        let missing = " ".repeat(most - head(&lines[*i]));
        if let Some(column) = lines[*i].column {
            lines[*i].text.insert_str(column, &missing);
        }
    }
}

/// Appends the comments at the ends of lines, those of neighbouring lines below one another.
fn align_comments(lines: &mut [Line]) {
    let mut from = 0;
    while from < lines.len() {
        let indent = lines[from].indent;
        let run = lines[from..].iter().take_while(|line| !line.comment.is_empty() && line.indent == indent).count();
        let most = lines[from..from + run].iter().map(Line::width).max().unwrap_or(0);
        for line in &mut lines[from..from + run] {
            if !line.text.is_empty() {
                let missing = most + GAP - line.width();
                line.text.push_str(&" ".repeat(missing));
            }
            line.text.push_str(&line.comment);
        }
        from += run.max(1);
    }
}
