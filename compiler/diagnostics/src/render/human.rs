//! For people: the source lines with labels, drawn by ariadne.

use std::fmt::Write as _;
use std::ops::Range;

use ariadne::{Color, Config, IndexType, Label, Report, ReportKind};

use super::FileText;
use crate::{Diagnostic, Place, Severity};

/// Bytes of the longest line that is shown; a file with longer ones was not written by hand.
const LONGEST_LINE: usize = 2000;

/// The diagnostics as text for a terminal, with colours if wanted. Lines have no trailing blanks.
pub fn human(diagnostics: &[Diagnostic], files: &[FileText], color: bool) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let text = one(diagnostic, files, color);
        let text = if color { text } else { without_colors(&text) };
        for line in text.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

fn one(diagnostic: &Diagnostic, files: &[FileText], color: bool) -> String {
    let kind = match diagnostic.severity {
        Severity::Error => ReportKind::Custom("error", Color::Red),
        Severity::Warning => ReportKind::Custom("warning", Color::Yellow),
    };
    let main = match diagnostic.severity {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
    };
    // What concerns a file as a whole has no place to show.
    let nowhere = diagnostic.label.is_empty() && diagnostic.place.start == diagnostic.place.end;
    let Some(span) = span(diagnostic.place, files).filter(|_| !nowhere) else { return plain(diagnostic) };
    let places = diagnostic.related.iter().map(|(place, _)| *place).chain([diagnostic.place]);
    if places.into_iter().any(|place| line_length(place, files) > LONGEST_LINE) {
        let (line, column) = files[diagnostic.place.file.0 as usize].position(diagnostic.place.start);
        return format!("{}\n  at {}:{line}:{column}", plain(diagnostic), span.0);
    }
    let mut report = Report::build(kind, span.clone())
        .with_config(Config::default().with_color(color).with_index_type(IndexType::Byte).with_compact(false))
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message);
    let mut labels =
        vec![(diagnostic.place, Label::new(span).with_message(&diagnostic.label).with_color(main).with_priority(1))];
    for (place, words) in &diagnostic.related {
        if let Some(at) = self::span(*place, files) {
            labels.push((*place, Label::new(at).with_message(words).with_color(Color::Cyan)));
        }
    }
    // ariadne begins a new frame where the order goes back to a line above, so each file's labels follow the text.
    // Within a line the last one comes first, so that no label crosses another.
    labels.sort_by_key(|(place, _)| {
        (place.file != diagnostic.place.file, place.file, line(*place, files), std::cmp::Reverse(place.start))
    });
    for (order, (_, label)) in labels.into_iter().enumerate() {
        report.add_label(label.with_order(order as i32));
    }
    for note in &diagnostic.notes {
        report.add_note(note);
    }
    if let Some(help) = &diagnostic.help {
        report.add_help(help);
    }
    let cache = ariadne::sources(files.iter().map(|file| (file.name.clone(), file.text.clone())));
    let mut bytes = Vec::new();
    match report.finish().write(cache, &mut bytes) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => plain(diagnostic),
    }
}

/// Takes the terminal's colour sequences out: ariadne colours the heading of a kind of our own whatever it is told.
fn without_colors(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// Without a place to show.
fn plain(diagnostic: &Diagnostic) -> String {
    let word = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("[{}] {word}: {}", diagnostic.code, diagnostic.message);
    for note in &diagnostic.notes {
        // Writing to a String can't fail.
        let _ = write!(text, "\n  note: {note}");
    }
    if let Some(help) = &diagnostic.help {
        let _ = write!(text, "\n  help: {help}");
    }
    text
}

/// The length in bytes of the line that a place starts on.
fn line_length(place: Place, files: &[FileText]) -> usize {
    let Some(file) = files.get(place.file.0 as usize) else { return 0 };
    let (before, after) = file.text.as_bytes().split_at(file.floor(place.start));
    let is_end = |byte: &u8| *byte == b'\n';
    before.iter().rev().take_while(|b| !is_end(b)).count() + after.iter().take_while(|b| !is_end(b)).count()
}

/// The line that a place ends on.
fn line(place: Place, files: &[FileText]) -> usize {
    let text = files.get(place.file.0 as usize).map_or("", |file| file.text.as_str());
    let end = (place.end.saturating_sub(1).max(place.start) as usize).min(text.len());
    text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count()
}

/// The place with its file's name, on character boundaries.
fn span(place: Place, files: &[FileText]) -> Option<(String, Range<usize>)> {
    let file = files.get(place.file.0 as usize).filter(|file| !file.text.is_empty())?;
    let start = file.floor(place.start);
    Some((file.name.clone(), start..file.ceil(place.end).max(start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileId;

    fn files() -> Vec<FileText> {
        vec![FileText { name: "a.df".into(), text: "stream 金额 = orders\n  |> filter(x)\n".into() }]
    }

    fn place(start: u32, end: u32) -> Place {
        Place { file: FileId(0), start, end }
    }

    #[test]
    fn a_label_and_a_help_are_drawn() {
        let d = Diagnostic::error("E0410", place(35, 36), "there is no field `x`", "unknown field")
            .help("did you mean `y`?");
        let text = human(&[d], &files(), false);
        assert!(text.contains("E0410") && text.contains("there is no field `x`"), "{text}");
        assert!(text.contains("unknown field") && text.contains("did you mean `y`?"), "{text}");
        assert!(text.contains("a.df:2:13") && !text.contains('\u{1b}'), "{text}");
        assert!(text.lines().all(|line| line.trim_end() == line));
    }

    #[test]
    fn spans_off_a_boundary_or_past_the_end_do_no_harm() {
        for start in 0..60 {
            for end in start..64 {
                let d = Diagnostic::warning("W0501", place(start, end), "m", "l").related(place(end, end), "there");
                assert!(human(&[d], &files(), true).contains("W0501"));
            }
        }
    }

    #[test]
    fn a_diagnostic_without_a_file_is_still_said() {
        let d = Diagnostic::error("E0207", place(0, 0), "can't read `b.df`", "").note("why").help("do");
        assert_eq!(human(&[d], &[], false), "[E0207] error: can't read `b.df`\n  note: why\n  help: do\n\n");
    }
}
