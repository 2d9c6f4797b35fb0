//! Lineage: where a field comes from, from the place asked about back to the sources, as a tree and as text.
//!
//! The chains are walked backwards with the fields that the checker had at each point; operators that pass a field on as it
//! is are no steps of its way.

use std::path::Path;
use std::sync::Arc;

use dfc_grammar::ast::{Arg, Call, Chain, Expr, ExprKind, ItemKind, Span};
use dfc_ir::DataType;
use dfc_typeck::{Column, Namespace};

use super::meanings::{Meanings, TokenClass, meanings};
use super::text::written;
use super::view::{View, range};
use super::{FileRange, Lineage, LineageStep};
use crate::Compiler;
use crate::check::{Trace, shown_columns, trace};
use crate::cycles::is_cyclic;
use crate::db::SourceFile;
use crate::items::ItemNode;
use crate::operators::{Kind, Role, table};

/// Steps that an answer has at most: fields of joins of unions of joins are many.
const STEPS: usize = 2000;
/// Steps behind one another at most.
const DEPTH: usize = 200;

/// Where the field at a place comes from. On a sink's connector or a stream's name: one answer for each of its fields.
pub fn lineage(compiler: &Compiler, root: &Path, file: &Path, offset: usize) -> Vec<Lineage> {
    let view = View::new(compiler, root, file);
    let offset = view.offset(offset);
    let Some(item) = view.item_at(offset) else { return Vec::new() };
    let at = (offset - item.start(view.db) as usize) as u32;
    let words = meanings(view.db, view.root, item);
    let Some(word) = words.at(at) else { return Vec::new() };
    let name = |span: Span| view.text_at(item, span).trim_matches('`').to_string();
    let mut walk = Walk { view: &view, left: STEPS };
    let steps: Vec<LineageStep> = match word.class {
        TokenClass::Stream => {
            let stream = name(word.span);
            let Some(stream) = view.find(Namespace::Stream, &stream) else { return Vec::new() };
            let columns = shown_columns(view.db, view.root, stream).clone();
            let columns = columns.as_deref().map(Vec::as_slice).unwrap_or_default();
            columns.iter().filter_map(|column| walk.stream(stream, &column.name, 0)).collect()
        }
        TokenClass::Field | TokenClass::Operator => {
            let Some(context) = Context::new(&view, item) else { return Vec::new() };
            let Some(point) = chains(item.kind(view.db)).iter().find_map(|chain| point(chain, at, word.class)) else {
                return Vec::new();
            };
            match word.class {
                TokenClass::Operator => {
                    let columns = context.columns(point.chain, point.links).unwrap_or_default().to_vec();
                    columns.iter().filter_map(|c| walk.chain(&context, point.chain, point.links, &c.name, 0)).collect()
                }
                _ => {
                    let field = name(word.span);
                    let links = if word.declares { point.links + 1 } else { point.links };
                    let own = walk.chain(&context, point.chain, links, &field, 0);
                    let other = point.other.and_then(|arg| walk.argument(&context, arg, &field, 0));
                    let before = view.text_at(item, Span { start: 0, end: word.span.start });
                    let right = before.trim_end().ends_with("right.");
                    if right { other.or(own) } else { own.or(other) }.into_iter().collect()
                }
            }
        }
        _ => Vec::new(),
    };
    steps.into_iter().map(|root| Lineage { text: text(&view, &root), root }).collect()
}

/// The chains of an item.
fn chains(kind: &ItemKind) -> Vec<&Chain> {
    match kind {
        ItemKind::Source(source) => vec![&source.chain],
        ItemKind::Stream(stream) => vec![&stream.chain],
        ItemKind::Sink(sink) => sink.chains.iter().collect(),
        _ => Vec::new(),
    }
}

/// A point of a chain.
struct Point<'c> {
    chain: &'c Chain,
    /// Links before it.
    links: usize,
    /// The other side of the link there.
    other: Option<&'c Arg>,
}

/// The innermost chain's point at an offset: before the link that holds it; for an operator's name behind it.
fn point(chain: &Chain, at: u32, class: TokenClass) -> Option<Point<'_>> {
    let inside = |span: Span| span.start <= at && at <= span.end;
    if !inside(chain.span) && !chain.links.iter().any(|link| inside(link.span)) {
        return None;
    }
    let head = match &chain.head.kind {
        ExprKind::Call(call) => Some(call),
        _ => None,
    };
    for arg in chain.links.iter().chain(head).flat_map(|call| &call.args) {
        if let ExprKind::Chain(inner) = &arg.value.kind
            && let Some(found) = point(inner, at, class)
        {
            return Some(found);
        }
    }
    let (number, link) = chain.links.iter().enumerate().find(|(_, link)| inside(link.span))?;
    let shuffle = table().get(&link.name.text, Role::Shuffle);
    let behind = class == TokenClass::Operator && shuffle.is_some();
    Some(Point { chain, links: number + usize::from(behind), other: other_side(link) })
}

/// The argument that is the other side of a join or lookup.
fn other_side(link: &Call) -> Option<&Arg> {
    let operator = table().get(&link.name.text, Role::Shuffle).filter(|operator| operator.name != "union")?;
    let position = operator.params.iter().position(|p| matches!(p.kind, Kind::Stream | Kind::Source))?;
    let name = &operator.params[position].name;
    let labelled = link.args.iter().find(|arg| arg.label.as_ref().is_some_and(|label| label.text == *name));
    labelled.or_else(|| link.args.get(position).filter(|arg| arg.label.is_none()))
}

/// An item with its fields at every point.
struct Context {
    item: ItemNode,
    file: SourceFile,
    trace: Trace,
    words: Arc<Meanings>,
    /// The stream's name; `None` in a sink.
    stream: Option<String>,
}

impl Context {
    fn new(view: &View<'_>, item: ItemNode) -> Option<Self> {
        let (key, kind) = (item.key(view.db), item.kind(view.db));
        if matches!(kind.as_ref(), ItemKind::Stream(_)) && is_cyclic(view.db, view.root, item) {
            return None;
        }
        Some(Context {
            item,
            file: view.file_of(key)?,
            trace: trace(view.db, view.root, key, kind, false),
            words: meanings(view.db, view.root, item).clone(),
            stream: (key.namespace == Namespace::Stream).then(|| key.name.clone()),
        })
    }

    /// The fields behind so many links.
    fn columns<'c>(&'c self, chain: &Chain, links: usize) -> Option<&'c [Column]> {
        let span = match links.checked_sub(1) {
            None => chain.head.span,
            Some(last) => chain.links.get(last)?.span,
        };
        self.trace.after(span)
    }

    fn column<'c>(&'c self, chain: &Chain, links: usize, name: &str) -> Option<&'c Column> {
        self.columns(chain, links)?.iter().find(|column| column.name == name)
    }

    fn place(&self, view: &View<'_>, span: Span) -> Option<FileRange> {
        if self.item.remembered(view.db) {
            return None;
        }
        let range = range(span.shift(self.item.start(view.db)));
        Some(FileRange { file: self.file.path(view.db).clone(), range })
    }
}

struct Walk<'a> {
    view: &'a View<'a>,
    /// Steps that may still be taken.
    left: usize,
}

impl<'a> Walk<'a> {
    /// A field of a source or stream.
    fn stream(&mut self, item: ItemNode, name: &str, depth: usize) -> Option<LineageStep> {
        let view = self.view;
        let column = |column: &&Column| column.name == name;
        match item.kind(view.db).as_ref() {
            ItemKind::Source(_) => {
                self.left = self.left.checked_sub(1)?;
                let columns = shown_columns(view.db, view.root, item);
                let found = columns.as_deref().map(Vec::as_slice).unwrap_or_default().iter().find(column)?;
                let source = item.key(view.db).name.clone();
                Some(LineageStep {
                    field: name.to_string(),
                    ty: ty(found),
                    words: format!("a field of the source `{source}`"),
                    stream: Some(source),
                    place: found.path.first().and_then(|step| view.place(&step.loc)),
                    from: Vec::new(),
                })
            }
            ItemKind::Stream(stream) => {
                let context = Context::new(view, item)?;
                self.chain(&context, &stream.chain, stream.chain.links.len(), name, depth + 1)
            }
            _ => None,
        }
    }

    /// A field of a chain behind so many links.
    fn chain(&mut self, cx: &Context, chain: &Chain, links: usize, name: &str, depth: usize) -> Option<LineageStep> {
        if depth > DEPTH {
            return None;
        }
        // Links that pass the field on as it is are walked over.
        let mut links = links;
        while let Some(at) = links.checked_sub(1) {
            let link = chain.links.get(at)?;
            let made = self.made(cx, chain, at, link, name, depth);
            match made {
                Made::Step(step) => return Some(step),
                Made::Nothing => return None,
                Made::Passed => links = at,
            }
        }
        self.head(cx, &chain.head, name, depth + 1)
    }

    /// A field of what a chain starts with.
    fn head(&mut self, cx: &Context, head: &Expr, name: &str, depth: usize) -> Option<LineageStep> {
        if depth > DEPTH {
            return None;
        }
        match &head.kind {
            ExprKind::Name(stream) => {
                let item = self.view.find(Namespace::Stream, stream)?;
                self.stream(item, name, depth)
            }
            ExprKind::Paren(inner) => self.head(cx, inner, name, depth + 1),
            ExprKind::Chain(chain) => self.chain(cx, chain, chain.links.len(), name, depth + 1),
            ExprKind::Call(call) => {
                let column = cx.trace.after(head.span)?.iter().find(|column| column.name == name)?;
                let operator = call.name.text.as_str();
                if operator == "union" {
                    let mut from = Vec::new();
                    for arg in call.args.iter().filter(|arg| arg.label.is_none()) {
                        from.extend(self.argument(cx, arg, name, depth + 1));
                    }
                    return self.step(
                        cx,
                        name,
                        Some(&column.ty),
                        "brought together by `union`".into(),
                        call.span,
                        from,
                    );
                }
                let place = column.path.first().and_then(|step| self.view.place(&step.loc));
                let words = format!("read by `{operator}`");
                let step = self.step(cx, name, Some(&column.ty), words, call.span, Vec::new())?;
                Some(LineageStep { place: place.or(step.place), ..step })
            }
            _ => None,
        }
    }

    /// A field of a stream in an argument's place.
    fn argument(&mut self, cx: &Context, arg: &Arg, name: &str, depth: usize) -> Option<LineageStep> {
        self.head(cx, &arg.value, name, depth + 1)
    }

    fn step(
        &mut self,
        cx: &Context,
        name: &str,
        ty: Option<&DataType>,
        words: String,
        at: Span,
        from: Vec<LineageStep>,
    ) -> Option<LineageStep> {
        self.left = self.left.checked_sub(1)?;
        Some(LineageStep {
            field: name.to_string(),
            ty: ty.map(ToString::to_string),
            words,
            stream: cx.stream.clone(),
            place: cx.place(self.view, at),
            from,
        })
    }

    /// What a link does to a field that comes out of it.
    fn made(&mut self, cx: &Context, chain: &Chain, at: usize, link: &Call, name: &str, depth: usize) -> Made {
        let after = cx.column(chain, at + 1, name);
        let Some(operator) = table().get(&link.name.text, Role::Shuffle) else {
            // What no operator is passes on what it is given, as far as anybody can tell.
            return if after.is_some() && cx.column(chain, at, name).is_some() { Made::Passed } else { Made::Nothing };
        };
        if after.is_none() && cx.columns(chain, at + 1).is_some() {
            return Made::Nothing;
        }
        let after_ty = after.filter(|column| !column.broken).map(|column| &column.ty);
        let param_of =
            |arg: &Arg| arg.label.as_ref().and_then(|label| operator.param(&label.text)).filter(|p| !p.variadic);
        // A name that an argument gives.
        for arg in &link.args {
            let inner: Vec<&Arg> = match (param_of(arg), &arg.value.kind) {
                (Some(param), ExprKind::List(items)) if param.kind == Kind::Fields && param.name != "take" => {
                    items.iter().collect()
                }
                (Some(_), _) => continue,
                (None, _) => vec![arg],
            };
            let value = inner.into_iter().find(|value| value.label.as_ref().is_some_and(|label| label.text == name));
            let Some(value) = value.filter(|_| operator.output != "input") else { continue };
            return self.computed(cx, chain, at, link, value, name, after_ty, depth);
        }
        if operator.name == "cast"
            && let Some(arg) = link.args.iter().find(|arg| cast_field(arg) == Some(name))
        {
            let ExprKind::Cast { ty, .. } = &arg.value.kind else { return Made::Nothing };
            let from = self.chain(cx, chain, at, name, depth + 1).into_iter().collect();
            let words = format!("cast to {} by `cast`", crate::operators::type_text(ty));
            return Made::of(self.step(cx, name, after_ty, words, arg.span, from));
        }
        let before = cx.column(chain, at, name);
        if let Some(other) = other_side(link) {
            if before.is_none() {
                return self.taken(cx, link, other, name, after_ty, depth);
            }
            // The other side's key, where the rows of it stay alone.
            let words = match (before.filter(|b| !b.broken), after_ty) {
                (Some(before), Some(after)) if before.ty != *after => format!("made {after} by `{}`", link.name.text),
                _ => return Made::Passed,
            };
            let from = self.chain(cx, chain, at, name, depth + 1).into_iter().collect();
            return Made::of(self.step(cx, name, after_ty, words, link.name.span, from));
        }
        if before.is_none() && cx.columns(chain, at).is_some() {
            return Made::Nothing;
        }
        Made::Passed
    }

    /// A field that an argument with a label gives.
    #[allow(clippy::too_many_arguments)] // one place of a chain and what is asked of it
    fn computed(
        &mut self,
        cx: &Context,
        chain: &Chain,
        at: usize,
        link: &Call,
        value: &Arg,
        name: &str,
        ty: Option<&DataType>,
        depth: usize,
    ) -> Made {
        let operator = &link.name.text;
        if let ExprKind::Name(old) = &value.value.kind
            && cx.columns(chain, at).is_none_or(|columns| columns.iter().any(|column| column.name == *old))
        {
            let from = self.chain(cx, chain, at, old, depth + 1).into_iter().collect();
            let words = format!("`{}`, renamed by `{operator}`", written(old));
            return Made::of(self.step(cx, name, ty, words, value.span, from));
        }
        let mut from = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        let inside = |span: Span| value.value.span.start <= span.start && span.end <= value.value.span.end;
        for word in cx.words.words.iter().filter(|word| word.class == TokenClass::Field && inside(word.span)) {
            let used = text_in(self.view, cx, word.span).trim_matches('`').to_string();
            if !seen.contains(&used) {
                from.extend(self.chain(cx, chain, at, &used, depth + 1));
                seen.push(used);
            }
        }
        let expression = text_in(self.view, cx, value.value.span).split_whitespace().collect::<Vec<_>>().join(" ");
        let words = format!("computed by `{operator}`: {}", short(&expression));
        Made::of(self.step(cx, name, ty, words, value.span, from))
    }

    /// A field that a join or lookup takes from its other side.
    fn taken(
        &mut self,
        cx: &Context,
        link: &Call,
        other: &Arg,
        name: &str,
        ty: Option<&DataType>,
        depth: usize,
    ) -> Made {
        let take = link.args.iter().find(|arg| arg.label.as_ref().is_some_and(|label| label.text == "take"));
        let elements: &[Arg] = match take.map(|arg| &arg.value.kind) {
            Some(ExprKind::List(items)) => items,
            _ => &[],
        };
        let element = elements.iter().find(|item| item.label.as_ref().is_some_and(|label| label.text == name));
        let there = match element.map(|item| &item.value.kind) {
            Some(ExprKind::Name(old)) => old.clone(),
            Some(ExprKind::Field(_, old)) => old.text.clone(),
            _ => name.to_string(),
        };
        let from = self.argument(cx, other, &there, depth + 1).into_iter().collect();
        let renamed = if there == name { String::new() } else { format!("`{}`, ", written(&there)) };
        let words = format!("{renamed}taken from the other side of `{}`", link.name.text);
        Made::of(self.step(cx, name, ty, words, element.map_or(link.name.span, |item| item.span), from))
    }
}

/// What a link does to a field.
enum Made {
    /// It gives it.
    Step(LineageStep),
    /// It passes it on.
    Passed,
    /// There is no such field behind it.
    Nothing,
}

impl Made {
    fn of(step: Option<LineageStep>) -> Made {
        step.map_or(Made::Nothing, Made::Step)
    }
}

/// The field that an argument of `cast` converts.
fn cast_field(arg: &Arg) -> Option<&str> {
    match &arg.value.kind {
        ExprKind::Cast { value, .. } => super::rows::bare_name(&value.kind),
        _ => None,
    }
}

fn ty(column: &Column) -> Option<String> {
    (!column.broken).then(|| column.ty.to_string())
}

/// The text of a span of an item.
fn text_in<'v>(view: &'v View<'_>, cx: &Context, span: Span) -> &'v str {
    let Some(place) = cx.place(view, span) else { return "" };
    let text = cx.file.text(view.db).as_ref().map_or("", |text| &**text);
    text.get(place.range.start..place.range.end).unwrap_or("")
}

/// A text cut to what fits on a line.
fn short(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// A lineage as text.
fn text(view: &View<'_>, root: &LineageStep) -> String {
    let mut out = String::new();
    let mut open = vec![(root, 0usize)];
    while let Some((step, depth)) = open.pop() {
        let name = match &step.ty {
            Some(ty) => format!("{}: {ty}", written(&step.field)),
            None => written(&step.field),
        };
        let place = step.place.as_ref().map(|place| format!(" ({})", line_of(view, place))).unwrap_or_default();
        out.push_str(&format!("{}{name}  {}{place}\n", "  ".repeat(depth), step.words));
        open.extend(step.from.iter().rev().map(|from| (from, depth + 1)));
    }
    out
}

/// `orders.df:12`
fn line_of(view: &View<'_>, place: &FileRange) -> String {
    let text = view.text_of(&place.file).unwrap_or("");
    let line = text.get(..place.range.start).unwrap_or("").matches('\n').count() + 1;
    let name = place.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{name}:{line}")
}
