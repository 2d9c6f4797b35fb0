//! Code actions: the fixes of the findings at a place, and rewritings of what is selected.

use std::path::Path;

use dfc_diagnostics::Diagnostic;
use dfc_grammar::ast::{Call, Chain, ExprKind, ItemKind, Source, Span, TypeExpr, TypeKind};
use dfc_ir::Field;
use dfc_ir::plan::Op;
use dfc_typeck::Namespace;

use super::cursor::{closes, opens};
use super::text::written;
use super::view::{View, range};
use super::{ActionKind, CodeAction, FileEdit, FileRange, TextEdit, TextRange};
use crate::Compiler;
use crate::check::item_check;
use crate::editor::Findings;
use crate::items::ItemNode;

/// Changes offered for a selection: the fixes of the findings that meet it, and rewritings of what is selected.
pub fn code_actions(compiler: &Compiler, root: &Path, file: &Path, range: TextRange) -> Vec<CodeAction> {
    let view = View::new(compiler, root, file);
    let range = TextRange::new(view.offset(range.start), view.offset(range.end.max(range.start)));
    let mut out = Vec::new();
    fixes(&view, &compiler.findings(root), range, &mut out);
    let actions = Actions { view: &view, range };
    for (item, kind, start) in view.items_in(range) {
        match kind {
            ItemKind::Source(source) => out.extend(actions.declare_record(item, source, start)),
            ItemKind::Stream(stream) => {
                out.extend(actions.extract(&stream.chain, stream.chain.links.len(), &stream.name.text, start));
            }
            ItemKind::Sink(sink) => {
                for chain in &sink.chains {
                    let name = match &chain.head.kind {
                        ExprKind::Name(name) => name.as_str(),
                        _ => "rows",
                    };
                    out.extend(actions.extract(chain, chain.links.len().saturating_sub(1), name, start));
                }
            }
            _ => {}
        }
    }
    for edit in out.iter_mut().flat_map(|action| &mut action.edits) {
        lines_of_file(&view, edit);
    }
    out
}

/// Ends the lines of new text as those of its file end.
fn lines_of_file(view: &View<'_>, edit: &mut FileEdit) {
    let text = view.text_of(&edit.file).unwrap_or_default();
    let end = dfc_grammar::line_end(text);
    for edit in edit.edits.iter_mut().filter(|edit| edit.text.contains('\n')) {
        edit.text = edit.text.replace("\r\n", "\n").replace('\n', end);
    }
}

/// The fixes of the findings that meet a range.
fn fixes(view: &View<'_>, findings: &Findings, wanted: TextRange, out: &mut Vec<CodeAction>) {
    let own = view.file.path(view.db);
    let file = |id: dfc_diagnostics::FileId| findings.files.get(id.0 as usize).map(|(path, _)| path);
    for finding in findings.diagnostics.iter() {
        let place = TextRange::new(finding.place.start as usize, finding.place.end as usize);
        if file(finding.place.file) != Some(own) || !place.meets(wanted) {
            continue;
        }
        let mends = Some((finding.code.to_string(), FileRange { file: own.clone(), range: place }));
        for fix in &finding.fixes {
            let Some(path) = file(fix.place.file) else { continue };
            let range = TextRange::new(fix.place.start as usize, fix.place.end as usize);
            let edits = vec![FileEdit { file: path.clone(), edits: vec![TextEdit { range, text: fix.text.clone() }] }];
            out.push(CodeAction {
                title: fix.title.clone(),
                kind: ActionKind::QuickFix,
                mends: mends.clone(),
                preferred: finding.fixes.len() == 1,
                edits,
            });
        }
        if let Some((title, edits)) = default_for_null(view, finding, place) {
            let edits = vec![FileEdit { file: own.clone(), edits }];
            let (kind, preferred) = (ActionKind::QuickFix, false);
            out.push(CodeAction { title, kind, mends: mends.clone(), preferred, edits });
        }
    }
}

/// `?? default` behind a value that may be null where none may be.
fn default_for_null(view: &View<'_>, finding: &Diagnostic, place: TextRange) -> Option<(String, Vec<TextEdit>)> {
    match finding.code {
        "E0452" => return default_before_sink(view, finding, place),
        "E0505" => {}
        _ => return None,
    }
    // The message says what to write instead of null.
    let (_, after) = finding.help.as_deref()?.split_once("?? ")?;
    let default = after.split('`').next()?.trim();
    if default.is_empty() || default == "…" {
        return None;
    }
    let text = view.text.get(place.start..place.end)?;
    let end = TextEdit { range: TextRange::empty(place.end), text: format!(" ?? {default}") };
    let edits = if is_one(text) {
        vec![end]
    } else {
        let open = TextEdit { range: TextRange::empty(place.start), text: "(".into() };
        vec![open, TextEdit { text: format!("){}", end.text), ..end }]
    };
    Some((format!("add `?? {default}`"), edits))
}

/// A `derive` in front of a sink whose field takes no null.
fn default_before_sink(view: &View<'_>, finding: &Diagnostic, place: TextRange) -> Option<(String, Vec<TextEdit>)> {
    // The message says it.
    let derive = finding.help.as_deref()?.split('`').find(|part| part.starts_with("derive("))?;
    let (_, default) = derive.strip_suffix(')')?.split_once("?? ")?;
    if default == "…" {
        return None;
    }
    let before = view.tokens.partition_point(|token| (token.span.start as usize) < place.start);
    let pipe = view.tokens[..before].iter().rev().find(|token| token.kind == dfc_grammar::TokenKind::Pipe)?;
    let at = pipe.span.start as usize;
    let line = view.text[..at].rfind('\n').map_or(0, |end| end + 1);
    let indent = &view.text[line..at];
    let gap = if indent.trim().is_empty() { format!("\n{indent}") } else { " ".into() };
    let edit = TextEdit { range: TextRange::empty(at), text: format!("|> {derive}{gap}") };
    Some((format!("add `?? {default}`"), vec![edit]))
}

/// Whether an expression stays one with something behind it: a name, a literal, a call, something in brackets.
fn is_one(text: &str) -> bool {
    let mut depth = 0usize;
    let solid: Vec<_> = dfc_grammar::lex(text).into_iter().filter(|token| !token.kind.is_trivia()).collect();
    let mut pieces = 0;
    for (at, token) in solid.iter().enumerate() {
        if closes(token.kind) {
            depth = depth.saturating_sub(1);
        } else if depth == 0 {
            // The bracket of a call and what is behind a dot belong to what is before.
            use dfc_grammar::TokenKind::{Dot, LBracket, LParen};
            let before = at.checked_sub(1).map(|before| solid[before].kind);
            let joined = token.kind == Dot
                || before == Some(Dot)
                || (matches!(token.kind, LParen | LBracket) && before.is_some_and(super::cursor::ends_value));
            pieces += usize::from(!joined);
        }
        if opens(token.kind) {
            depth += 1;
        }
    }
    pieces == 1
}

struct Actions<'a> {
    view: &'a View<'a>,
    range: TextRange,
}

impl Actions<'_> {
    fn file(&self, edits: Vec<TextEdit>) -> Vec<FileEdit> {
        vec![FileEdit { file: self.view.file.path(self.view.db).clone(), edits }]
    }

    /// A record of a source's fields, for a source that doesn't name one.
    fn declare_record(&self, item: ItemNode, source: &Source, start: u32) -> Option<CodeAction> {
        let ExprKind::Call(call) = &source.chain.head.kind else { return None };
        let name = self.free(Namespace::Record, &record_name(&source.name.text));
        let given = call.args.iter().find(|arg| arg.label.as_ref().is_some_and(|label| label.text == "schema"));
        let (fields, edit) = match given.map(|arg| (&arg.value.kind, arg.value.span)) {
            Some((ExprKind::Type(TypeExpr { kind: TypeKind::Record(_), .. }), span)) => {
                let body = self.view.text_at(item, span).strip_prefix("record")?.trim().to_string();
                (body, TextEdit { range: range(span.shift(start)), text: written(&name) })
            }
            Some(_) => return None,
            None => {
                let check = item_check(self.view.db, self.view.root, item);
                let schema = check.nodes.iter().find_map(|node| match &node.op {
                    Op::Source(spec) => Some(&spec.schema),
                    _ => None,
                })?;
                let lines: Vec<String> = schema.fields.iter().map(declared).collect();
                let edit = self.more_argument(call, start, &format!("schema: {}", written(&name)));
                (format!("{{\n{}}}", lines.concat()), edit)
            }
        };
        let record = TextEdit {
            range: TextRange::empty(start as usize),
            text: format!("record {} {fields}\n\n", written(&name)),
        };
        Some(CodeAction {
            title: format!("declare the record `{name}` from this source"),
            kind: ActionKind::Extract,
            mends: None,
            preferred: false,
            edits: self.file(vec![record, edit]),
        })
    }

    /// One more argument of a call.
    fn more_argument(&self, call: &Call, start: u32, text: &str) -> TextEdit {
        match call.args.last() {
            Some(last) => {
                let at = range(last.span.shift(start)).end;
                TextEdit { range: TextRange::empty(at), text: format!(", {text}") }
            }
            None => {
                // In front of the closing bracket.
                let at = range(call.span.shift(start)).end.saturating_sub(1);
                TextEdit { range: TextRange::empty(at), text: text.to_string() }
            }
        }
    }

    /// The first links of a chain, to the last one selected, as a stream of their own. `most`: links that may move out.
    fn extract(&self, chain: &Chain, most: usize, name: &str, start: u32) -> Option<CodeAction> {
        if self.range.start == self.range.end {
            return None;
        }
        let absolute = |span: Span| range(span.shift(start));
        let selected = |link: &Call| {
            let link = absolute(link.span);
            link.start < self.range.end && self.range.start < link.end
        };
        let last = chain.links.iter().take(most).rposition(selected)?;
        // The head alone would be a stream under another name.
        let end = self.with_comment(absolute(chain.links[last].span).end);
        let moved = TextRange::new(absolute(chain.head.span).start, end);
        let new = self.free(Namespace::Stream, &format!("{name}_part"));
        let text = self.view.text.get(moved.start..moved.end)?;
        let stream = TextEdit {
            range: TextRange::empty(start as usize),
            text: format!("stream {} = {text}\n\n", written(&new)),
        };
        let rest = TextEdit { range: moved, text: written(&new) };
        let names: Vec<&str> = chain.links[..=last].iter().map(|link| link.name.text.as_str()).collect();
        Some(CodeAction {
            title: format!("extract `{}` into the stream `{new}`", names.join(" |> ")),
            kind: ActionKind::Extract,
            mends: None,
            preferred: false,
            edits: self.file(vec![stream, rest]),
        })
    }

    /// A place behind the comment that stands at the end of the line there, if nothing else does.
    fn with_comment(&self, end: usize) -> usize {
        let behind = self.view.tokens.partition_point(|token| (token.span.start as usize) < end);
        let mut tokens = self.view.tokens[behind..].iter();
        let comment = tokens.find(|token| {
            let blank = token.kind == dfc_grammar::TokenKind::Whitespace && !token.text(self.view.text).contains('\n');
            !blank
        });
        match comment.filter(|token| token.kind == dfc_grammar::TokenKind::Comment) {
            Some(comment) => end + self.view.text[end..comment.span.end as usize].trim_end().len(),
            None => end,
        }
    }

    /// A name that is not taken yet.
    fn free(&self, namespace: Namespace, wanted: &str) -> String {
        let taken = |name: &str| self.view.find(namespace, name).is_some();
        let numbered = (2..).map(|number| format!("{wanted}{number}"));
        let mut names = std::iter::once(wanted.to_string()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }
}

/// `    created_at: datetime = "Created At"`
fn declared(field: &Field) -> String {
    let outside = match &field.external {
        Some(name) => format!(" = \"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
        None => String::new(),
    };
    format!("    {}{outside}\n", super::text::field(&field.name, &field.ty))
}

/// What a row of a source is called: `orders` → `Order`, `daily_rates` → `DailyRate`.
fn record_name(source: &str) -> String {
    let one = match source {
        name if name.ends_with("ies") && name.len() > 4 => format!("{}y", &name[..name.len() - 3]),
        name if name.ends_with('s') && !name.ends_with("ss") && name.len() > 2 => name[..name.len() - 1].to_string(),
        name => name.to_string(),
    };
    let parts = one.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    let name: String = parts
        .map(|part| {
            let mut letters = part.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
        })
        .collect();
    // A record may not be called as a type is.
    if name.is_empty() || crate::globals::TYPE_NAMES.contains(&name.as_str()) { "Row".into() } else { name }
}
