//! The shape of a file: its items and their parts, what can be folded, what is selected around a place.
//!
//! Of one file alone; it may not know what names mean.

use std::path::Path;

use dfc_grammar::ast::{
    Arg, Call, Chain, Expr, ExprKind, FieldDecl, Ident, ItemKind, Setting, SettingValue, Span, Stmt, TypeExpr, TypeKind,
};
use dfc_grammar::{Token, TokenKind};

use super::TextRange;
use super::view::{View, range};
use crate::Compiler;
use crate::items::parse;
use crate::operators::type_text;

/// What a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// `job`
    Job,
    /// `param`
    Param,
    /// `const`
    Const,
    /// `record`
    Record,
    /// A field of a record.
    Field,
    /// `source`
    Source,
    /// `stream`
    Stream,
    /// `sink`
    Sink,
    /// `fn`
    Function,
    /// `operator`
    Operator,
    /// `use`
    Library,
}

/// An item or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name; of a sink what it writes.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// Its type, or the chain's head.
    pub detail: Option<String>,
    /// All of it.
    pub range: TextRange,
    /// Its name.
    pub name_range: TextRange,
    /// Its parts.
    pub children: Vec<Symbol>,
}

/// The items of a file, in source order; broken ones by their name only.
pub fn symbols(compiler: &Compiler, file: &Path) -> Vec<Symbol> {
    let view = View::new(compiler, file, file);
    let parsed = parse(view.db, view.file);
    let mut out: Vec<Symbol> = parsed
        .file
        .items
        .iter()
        .filter_map(|item| {
            symbol(&item.kind, item.start, TextRange::new(item.start as usize, (item.start + item.len) as usize))
        })
        .collect();
    out.extend(parsed.broken.iter().filter_map(|item| {
        let range = range(item.span);
        let kind = KINDS.iter().find(|(word, _)| Some(*word) == item.word)?.1;
        let name = item.name.clone().unwrap_or_else(|| item.word.unwrap_or_default().to_owned());
        Some(Symbol { name, kind, detail: None, range, name_range: range, children: Vec::new() })
    }));
    out.sort_by_key(|symbol| symbol.range);
    out
}

const KINDS: &[(&str, SymbolKind)] = &[
    ("job", SymbolKind::Job),
    ("param", SymbolKind::Param),
    ("const", SymbolKind::Const),
    ("record", SymbolKind::Record),
    ("source", SymbolKind::Source),
    ("stream", SymbolKind::Stream),
    ("sink", SymbolKind::Sink),
    ("fn", SymbolKind::Function),
    ("operator", SymbolKind::Operator),
    ("use", SymbolKind::Library),
];

fn symbol(kind: &ItemKind, start: u32, whole: TextRange) -> Option<Symbol> {
    let at = |span: Span| range(span.shift(start));
    let named = |kind: SymbolKind, name: &Ident, detail: Option<String>| Symbol {
        name: name.text.clone(),
        kind,
        detail,
        range: whole,
        name_range: at(name.span),
        children: Vec::new(),
    };
    Some(match kind {
        ItemKind::Job(job) => named(SymbolKind::Job, &job.name, None),
        ItemKind::Param(param) => named(SymbolKind::Param, &param.name, Some(type_text(&param.ty))),
        ItemKind::Const(constant) => named(SymbolKind::Const, &constant.name, constant.ty.as_ref().map(type_text)),
        ItemKind::Record(record) => Symbol {
            children: record.fields.iter().map(|field| self::field(field, start)).collect(),
            ..named(SymbolKind::Record, &record.name, None)
        },
        ItemKind::Source(source) => named(SymbolKind::Source, &source.name, head(&source.chain)),
        ItemKind::Stream(stream) => named(SymbolKind::Stream, &stream.name, head(&stream.chain)),
        ItemKind::Sink(sink) => {
            let ends = sink.chains.iter().filter_map(|chain| chain.links.last().map(|link| link.name.text.as_str()));
            Symbol {
                name: format!("sink {}", ends.collect::<Vec<_>>().join(", ")).trim_end().to_owned(),
                kind: SymbolKind::Sink,
                detail: None,
                range: whole,
                name_range: sink.chains.first().map_or(whole, |chain| at(chain.head.span)),
                children: Vec::new(),
            }
        }
        ItemKind::Fn(decl) => named(SymbolKind::Function, &decl.name, decl.result.as_ref().map(type_text)),
        ItemKind::Operator(decl) => named(SymbolKind::Operator, &decl.name, None),
        ItemKind::Use(used) => Symbol {
            name: used.path.clone(),
            kind: SymbolKind::Library,
            detail: None,
            range: whole,
            name_range: at(used.span),
            children: Vec::new(),
        },
        ItemKind::Native(_) => return None,
    })
}

fn field(decl: &FieldDecl, start: u32) -> Symbol {
    Symbol {
        name: decl.name.text.clone(),
        kind: SymbolKind::Field,
        detail: Some(type_text(&decl.ty)),
        range: range(decl.span.shift(start)),
        name_range: range(decl.name.span.shift(start)),
        children: Vec::new(),
    }
}

fn head(chain: &Chain) -> Option<String> {
    match &chain.head.kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Call(call) => Some(call.name.text.clone()),
        _ => None,
    }
}

/// What can be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FoldKind {
    /// Lines of comments.
    Comment,
    /// `use` lines.
    Uses,
    /// An item, or what is in brackets.
    Part,
}

/// A part that can be folded. Some are on one line only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fold {
    /// What of it is hidden.
    pub range: TextRange,
    /// What it is.
    pub kind: FoldKind,
}

/// What can be folded in a file, by place.
pub fn folds(compiler: &Compiler, file: &Path) -> Vec<Fold> {
    let view = View::new(compiler, file, file);
    let parsed = parse(view.db, view.file);
    let mut out = Vec::new();
    let mut fold = |start: u32, end: u32, kind: FoldKind| {
        out.push(Fold { range: TextRange::new(start as usize, end as usize), kind });
    };
    // Comments and doc lines that follow one another.
    let mut comments: Option<(u32, u32)> = None;
    // Brackets that are open.
    let mut open: Vec<Token> = Vec::new();
    for token in view.tokens {
        match token.kind {
            TokenKind::Comment | TokenKind::Doc | TokenKind::FileDoc => {
                comments = Some((comments.map_or(token.span.start, |(start, _)| start), token.span.end));
            }
            TokenKind::Whitespace if token.text(view.text).matches('\n').count() < 2 => {}
            _ => {
                if let Some((start, end)) = comments.take() {
                    fold(start, end, FoldKind::Comment);
                }
            }
        }
        match token.kind {
            TokenKind::LParen | TokenKind::LBracket | TokenKind::LBrace => open.push(*token),
            TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace => {
                if let Some(opener) = open.pop() {
                    fold(opener.span.end, token.span.start, FoldKind::Part);
                }
            }
            TokenKind::TripleString => fold(token.span.start + 3, token.span.end.saturating_sub(3), FoldKind::Part),
            _ => {}
        }
    }
    if let Some((start, end)) = comments {
        fold(start, end, FoldKind::Comment);
    }
    let mut uses: Option<(u32, u32)> = None;
    for item in &parsed.file.items {
        let end = item.start + item.len;
        match item.kind.as_ref() {
            ItemKind::Use(_) => uses = Some((uses.map_or(item.start, |(start, _)| start), end)),
            ItemKind::Source(_) | ItemKind::Stream(_) | ItemKind::Sink(_) | ItemKind::Fn(_) => {
                // The first line stays.
                let text = view.text.get(item.start as usize..end as usize).unwrap_or_default();
                let doc = text
                    .lines()
                    .take_while(|line| line.trim_start().starts_with("//"))
                    .map(|l| l.len() + 1)
                    .sum::<usize>();
                let line = text.get(doc..).and_then(|rest| rest.find('\n')).map(|at| at + doc);
                if let Some(line) = line {
                    fold(item.start + line as u32, end, FoldKind::Part);
                }
            }
            _ => {}
        }
    }
    if let Some((start, end)) = uses {
        fold(start, end, FoldKind::Uses);
    }
    out.retain(|fold| fold.range.start < fold.range.end);
    out.sort();
    out
}

/// The ranges around an offset, the narrowest first: the word, the expression, the argument, the link, the chain, the item,
/// the file.
pub fn selections(compiler: &Compiler, file: &Path, offset: usize) -> Vec<TextRange> {
    let view = View::new(compiler, file, file);
    let offset = view.offset(offset);
    let mut spans = vec![TextRange::new(0, view.text.len())];
    let touching = view.tokens.iter().map(|token| (token.kind, range(token.span)));
    spans.extend(touching.filter(|(kind, at)| !kind.is_trivia() && at.touches(offset)).map(|(_, at)| at));
    let parsed = parse(view.db, view.file);
    spans.extend(parsed.broken.iter().map(|item| range(item.span)));
    for item in &parsed.file.items {
        let whole = TextRange::new(item.start as usize, (item.start + item.len) as usize);
        if whole.touches(offset) {
            spans.push(whole);
            let mut walk = Spans { out: Vec::new() };
            walk.item(&item.kind);
            spans.extend(walk.out.into_iter().map(|span| range(span.shift(item.start))));
        }
    }
    spans.retain(|span| span.touches(offset) && span.end <= view.text.len());
    spans.sort_by_key(|span| (span.end - span.start, span.start));
    // Each must lie inside the next.
    let mut out: Vec<TextRange> = Vec::new();
    for span in spans {
        if out.last().is_none_or(|last| *last != span && span.contains(*last)) {
            out.push(span);
        }
    }
    out
}

/// Collects the spans of an item's parts.
struct Spans {
    out: Vec<Span>,
}

impl Spans {
    fn item(&mut self, kind: &ItemKind) {
        match kind {
            ItemKind::Job(job) => self.settings(&job.settings),
            ItemKind::Param(param) => {
                self.ty(&param.ty);
                param.default.iter().for_each(|e| self.expr(e));
            }
            ItemKind::Const(constant) => {
                constant.ty.iter().for_each(|ty| self.ty(ty));
                self.expr(&constant.value);
            }
            ItemKind::Record(record) => self.fields(&record.fields),
            ItemKind::Source(source) => self.chain(&source.chain),
            ItemKind::Stream(stream) => self.chain(&stream.chain),
            ItemKind::Sink(sink) => sink.chains.iter().for_each(|chain| self.chain(chain)),
            ItemKind::Fn(decl) => {
                self.out.extend(decl.params.iter().map(|param| param.span));
                self.expr(&decl.body);
            }
            ItemKind::Operator(decl) => {
                self.out.extend(decl.params.iter().map(|param| param.span));
                self.out.extend(decl.states.iter().map(|state| state.span));
                decl.handlers.iter().for_each(|handler| self.statements(&handler.body));
            }
            ItemKind::Use(used) => self.out.push(used.span),
            ItemKind::Native(_) => {}
        }
    }

    fn statements(&mut self, body: &[Stmt]) {
        for statement in body {
            match statement {
                Stmt::Let(_, e) | Stmt::Assign(_, e) | Stmt::Emit(e, _) => self.expr(e),
                Stmt::If(condition, then, otherwise) => {
                    self.expr(condition);
                    self.statements(then);
                    self.statements(otherwise);
                }
            }
        }
    }

    fn settings(&mut self, settings: &[Setting]) {
        for setting in settings {
            self.out.push(setting.span);
            match &setting.value {
                SettingValue::Expr(e) => self.expr(e),
                SettingValue::Block(inner) => self.settings(inner),
            }
        }
    }

    fn fields(&mut self, fields: &[FieldDecl]) {
        for field in fields {
            self.out.push(field.span);
            self.ty(&field.ty);
        }
    }

    fn ty(&mut self, ty: &TypeExpr) {
        self.out.push(ty.span);
        match &ty.kind {
            TypeKind::List(item) => self.ty(item),
            TypeKind::Record(fields) => self.fields(fields),
            TypeKind::Name(_) | TypeKind::Decimal(_) => {}
        }
    }

    fn chain(&mut self, chain: &Chain) {
        self.out.push(chain.span);
        self.expr(&chain.head);
        let start = chain.head.span;
        for link in &chain.links {
            // The chain up to this link is a stream of its own.
            self.out.push(start.to(link.span));
            self.call(link);
        }
    }

    fn call(&mut self, call: &Call) {
        self.out.push(call.span);
        if let (Some(first), Some(last)) = (call.args.first(), call.args.last()) {
            self.out.push(first.span.to(last.span));
        }
        self.args(&call.args);
    }

    fn args(&mut self, args: &[Arg]) {
        for arg in args {
            self.out.push(arg.span);
            self.expr(&arg.value);
        }
    }

    fn expr(&mut self, e: &Expr) {
        self.out.push(e.span);
        match &e.kind {
            ExprKind::Call(call) => self.call(call),
            ExprKind::Chain(chain) => self.chain(chain),
            ExprKind::List(items) => self.args(items),
            ExprKind::Type(ty) => self.ty(ty),
            kind => {
                e.for_each_child(&mut |child| self.expr(child));
                if let ExprKind::Cast { ty, .. } = kind {
                    self.ty(ty);
                }
            }
        }
    }
}
