//! Tokens and tree as text, for `dfc plan --emit tokens|ast` and for golden files.
//!
//! Stable and readable: a line a token; an indented outline of items with expressions in prefix form, `(+ a (* b c))`.
//! Spans are shown for items only, so that a golden file of a tree changes with its meaning and not with its blanks.

use crate::Parse;
use crate::ast::*;
use std::fmt::Write;

/// One line a token: its place, its kind, its text.
pub fn dump_tokens(parse: &Parse, text: &str) -> String {
    let mut out = String::new();
    for token in &parse.tokens {
        let Span { start, end } = token.span;
        line(&mut out, 0, &format!("{start}..{end} {:?} {:?}", token.kind, token.text(text)));
    }
    out
}

/// The tree of a file as an indented outline.
pub fn dump_ast(parse: &Parse) -> String {
    let mut out = String::new();
    docs(&mut out, 0, &parse.file.doc);
    for item in &parse.file.items {
        docs(&mut out, 0, &item.doc);
        let place = format!("@{}..{}", item.start, item.start + item.len);
        dump_item(&mut out, &item.kind, &place);
    }
    out
}

/// One item's documentation and tree, without its place.
pub(crate) fn outline(item: &Item) -> String {
    let mut out = String::new();
    docs(&mut out, 0, &item.doc);
    dump_item(&mut out, &item.kind, "");
    out
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{:width$}{text}", "", width = depth * 2);
}

fn docs(out: &mut String, depth: usize, doc: &Option<String>) {
    if let Some(doc) = doc {
        line(out, depth, &format!("doc {doc:?}"));
    }
}

fn dump_item(out: &mut String, kind: &ItemKind, place: &str) {
    match kind {
        ItemKind::Job(job) => {
            line(out, 0, &format!("job {} {place}", job.name.text));
            settings(out, 1, &job.settings);
        }
        ItemKind::Param(Param { name, ty, default }) => {
            line(out, 0, &format!("param {}: {}{} {place}", name.text, type_text(ty), default_text(default)));
        }
        ItemKind::Const(Const { name, ty, value }) => {
            let ty = ty.as_ref().map(|ty| format!(": {}", type_text(ty))).unwrap_or_default();
            line(out, 0, &format!("const {}{ty} = {} {place}", name.text, expr_text(value)));
        }
        ItemKind::Record(record) => {
            line(out, 0, &format!("record {} {place}", record.name.text));
            for field in &record.fields {
                docs(out, 1, &field.doc);
                line(out, 1, &field_text(field));
            }
        }
        ItemKind::Source(source) => {
            line(out, 0, &format!("source {} {place}", source.name.text));
            chain(out, 1, &source.chain);
        }
        ItemKind::Stream(stream) => {
            line(out, 0, &format!("stream {} {place}", stream.name.text));
            chain(out, 1, &stream.chain);
        }
        ItemKind::Sink(sink) => {
            line(out, 0, &format!("sink{} {place}", if sink.block { " block" } else { "" }));
            sink.chains.iter().for_each(|c| chain(out, 1, c));
        }
        ItemKind::Fn(FnDecl { name, params: list, result, body }) => {
            let result = result.as_ref().map(|ty| format!(" -> {}", type_text(ty))).unwrap_or_default();
            line(out, 0, &format!("fn {}{result} {place}", name.text));
            params(out, 1, list);
            line(out, 1, &format!("= {}", expr_text(body)));
        }
        ItemKind::Operator(operator) => {
            line(out, 0, &format!("operator {} -> {} {place}", operator.name.text, output_text(&operator.output)));
            params(out, 1, &operator.params);
            for StateDecl { name, ty, init, by, .. } in &operator.states {
                let by: Vec<&str> = by.iter().map(|key| key.text.as_str()).collect();
                let (ty, init) = (type_text(ty), expr_text(init));
                line(out, 1, &format!("state {}: {ty} = {init} by [{}]", name.text, by.join(", ")));
            }
            for handler in &operator.handlers {
                line(out, 1, &format!("on {}", handler.event.text));
                statements(out, 2, &handler.body);
            }
        }
        ItemKind::Use(u) => line(out, 0, &format!("use {:?} {place}", u.path)),
        ItemKind::Native(native) => dump_native(out, native, place),
    }
}

fn dump_native(out: &mut String, native: &Native, place: &str) {
    let generics: Vec<String> =
        native.generics.iter().map(|(name, class)| format!("{}: {}", name.text, class.text)).collect();
    let generics = if generics.is_empty() { String::new() } else { format!("<{}>", generics.join(", ")) };
    let output = match &native.output {
        NativeOutput::Type(ty) => format!(" -> {}", type_text(ty)),
        NativeOutput::Rule(rule) => format!(" -> rule {}", rule.text),
        NativeOutput::Fields(rule) => format!(" -> {}", output_text(rule)),
        NativeOutput::None => String::new(),
    };
    let role = match native.role {
        NativeRole::Source => "source",
        NativeRole::Shuffle => "shuffle",
        NativeRole::Sink => "sink",
        NativeRole::Fn => "fn",
        NativeRole::Agg => "agg",
    };
    line(out, 0, &format!("native {role} {}{generics}{output} {place}", native.name.text));
    params(out, 1, &native.params);
    for clause in &native.clauses {
        let words: Vec<&str> =
            std::iter::once(&clause.name).chain(&clause.words).map(|word| word.text.as_str()).collect();
        line(out, 1, &format!("clause {}", words.join(" ")));
    }
}

fn settings(out: &mut String, depth: usize, list: &[Setting]) {
    for setting in list {
        match &setting.value {
            SettingValue::Expr(value) => line(out, depth, &format!("{}: {}", setting.name.text, expr_text(value))),
            SettingValue::Block(inner) => {
                line(out, depth, &setting.name.text);
                settings(out, depth + 1, inner);
            }
        }
    }
}

fn params(out: &mut String, depth: usize, list: &[DeclParam]) {
    for param in list {
        docs(out, depth, &param.doc);
        let kind = match &param.kind {
            ParamKind::Const(ty) => type_text(ty),
            ParamKind::Row(ty) => format!("row {}", type_text(ty)),
            ParamKind::Agg(ty) => format!("agg {}", type_text(ty)),
            ParamKind::Pair(ty) => format!("pair {}", type_text(ty)),
            ParamKind::Enum(names) => names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(" | "),
            ParamKind::Bare(name) => name.text.clone(),
        };
        let dots = if param.variadic { "..." } else { "" };
        let range = match &param.range {
            Some((low, high)) => format!(" range {}..{}", expr_text(low), expr_text(high)),
            None => String::new(),
        };
        line(out, depth, &format!("param {dots}{}: {kind}{}{range}", param.name.text, default_text(&param.default)));
    }
}

fn statements(out: &mut String, depth: usize, list: &[Stmt]) {
    for statement in list {
        match statement {
            Stmt::Let(name, value) => line(out, depth, &format!("let {} = {}", name.text, expr_text(value))),
            Stmt::Assign(name, value) => line(out, depth, &format!("{} = {}", name.text, expr_text(value))),
            Stmt::Emit(value, _) => line(out, depth, &format!("emit {}", expr_text(value))),
            Stmt::If(condition, then, otherwise) => {
                line(out, depth, &format!("if {}", expr_text(condition)));
                statements(out, depth + 1, then);
                if !otherwise.is_empty() {
                    line(out, depth, "else");
                    statements(out, depth + 1, otherwise);
                }
            }
        }
    }
}

fn chain(out: &mut String, depth: usize, chain: &Chain) {
    line(out, depth, &expr_text(&chain.head));
    for link in &chain.links {
        line(out, depth + 1, &format!("|> {}", call_text(link)));
    }
}

fn default_text(default: &Option<Expr>) -> String {
    default.as_ref().map(|value| format!(" = {}", expr_text(value))).unwrap_or_default()
}

fn field_text(field: &FieldDecl) -> String {
    let external = field.external.as_ref().map(|(name, _)| format!(" = {name:?}")).unwrap_or_default();
    format!("{}: {}{external}", field.name.text, type_text(&field.ty))
}

fn fields_text(fields: &[FieldDecl]) -> String {
    format!("{{{}}}", fields.iter().map(field_text).collect::<Vec<_>>().join(", "))
}

fn output_text(rule: &OutputRule) -> String {
    let mut out = String::new();
    for (i, (sign, term)) in rule.terms.iter().enumerate() {
        out.push_str(match (i, sign) {
            (0, _) => "",
            (_, Sign::Plus) => " + ",
            (_, Sign::Minus) => " - ",
        });
        match term {
            OutputTerm::Name(name) => out.push_str(&name.text),
            OutputTerm::Rule(name) => out.push_str(&format!("rule {}", name.text)),
            OutputTerm::Fields(fields) => out.push_str(&fields_text(fields)),
        }
    }
    out
}

fn type_text(ty: &TypeExpr) -> String {
    let mark = if ty.nullable { "?" } else { "" };
    let text = match &ty.kind {
        TypeKind::Name(name) => name.clone(),
        TypeKind::Decimal(None) => "decimal".to_owned(),
        TypeKind::Decimal(Some((p, s))) => format!("decimal({p}, {s})"),
        TypeKind::List(inner) => format!("list<{}>", type_text(inner)),
        TypeKind::Record(fields) => format!("record {}", fields_text(fields)),
    };
    format!("{text}{mark}")
}

fn call_text(call: &Call) -> String {
    format!("{}({})", call.name.text, args_text(&call.args))
}

fn args_text(args: &[Arg]) -> String {
    let one = |arg: &Arg| match &arg.label {
        Some(label) => format!("{}: {}", label.text, expr_text(&arg.value)),
        None => expr_text(&arg.value),
    };
    args.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// How each two-sided operator is written.
const OPERATORS: &[(BinaryOp, &str)] = &[
    (BinaryOp::Or, "or"),
    (BinaryOp::And, "and"),
    (BinaryOp::Eq, "=="),
    (BinaryOp::Ne, "!="),
    (BinaryOp::Lt, "<"),
    (BinaryOp::Le, "<="),
    (BinaryOp::Gt, ">"),
    (BinaryOp::Ge, ">="),
    (BinaryOp::Add, "+"),
    (BinaryOp::Sub, "-"),
    (BinaryOp::Mul, "*"),
    (BinaryOp::Div, "/"),
    (BinaryOp::IntDiv, "div"),
    (BinaryOp::Mod, "%"),
    (BinaryOp::Coalesce, "??"),
];

fn expr_text(expr: &Expr) -> String {
    let not = |negated: &bool| if *negated { "not-" } else { "" };
    match &expr.kind {
        ExprKind::Error => "<error>".to_owned(),
        ExprKind::Literal(literal) => literal_text(literal),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Call(call) => call_text(call),
        ExprKind::Field(value, name) => format!("(. {} {})", expr_text(value), name.text),
        ExprKind::Index(value, index) => format!("(index {} {})", expr_text(value), expr_text(index)),
        ExprKind::Unary(UnaryOp::Neg, value) => format!("(- {})", expr_text(value)),
        ExprKind::Unary(UnaryOp::Not, value) => format!("(not {})", expr_text(value)),
        ExprKind::Binary(op, _, a, b) => {
            let sign = OPERATORS.iter().find(|(known, _)| known == op).map_or("", |(_, sign)| sign);
            format!("({sign} {} {})", expr_text(a), expr_text(b))
        }
        ExprKind::Between { negated, value, low, high } => {
            format!("({}between {} {} {})", not(negated), expr_text(value), expr_text(low), expr_text(high))
        }
        ExprKind::In { negated, value, list } => {
            format!("({}in {} {})", not(negated), expr_text(value), expr_text(list))
        }
        ExprKind::Pattern { negated, regex, value, pattern } => {
            let name = if *regex { "matches" } else { "like" };
            format!("({}{name} {} {})", not(negated), expr_text(value), expr_text(pattern))
        }
        ExprKind::IsNull { negated, value } => format!("(is-{}null {})", not(negated), expr_text(value)),
        ExprKind::Cast { value, ty, fallible } => {
            format!("(as{} {} {})", if *fallible { "?" } else { "" }, expr_text(value), type_text(ty))
        }
        ExprKind::If(c, a, b) => format!("(if {} {} {})", expr_text(c), expr_text(a), expr_text(b)),
        ExprKind::Match { subject, arms, otherwise } => {
            let mut out = "(match".to_owned();
            if let Some(subject) = subject {
                out.push_str(&format!(" {}", expr_text(subject)));
            }
            for arm in arms {
                let patterns: Vec<String> = arm.patterns.iter().map(expr_text).collect();
                out.push_str(&format!(" [{} => {}]", patterns.join(", "), expr_text(&arm.value)));
            }
            if let Some(value) = otherwise {
                out.push_str(&format!(" [else => {}]", expr_text(value)));
            }
            out.push(')');
            out
        }
        ExprKind::List(elements) => format!("[{}]", args_text(elements)),
        ExprKind::Record(entries) => {
            let one = |entry: &RecordEntry| match entry {
                RecordEntry::Field(name, value) => format!("{}: {}", name.text, expr_text(value)),
                RecordEntry::Spread(value, _) => format!("...{}", expr_text(value)),
            };
            format!("{{{}}}", entries.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        ExprKind::Format(parts) => {
            let one = |part: &FormatPart| match part {
                FormatPart::Text(text) => format!("{text:?}"),
                FormatPart::Expr(value) => expr_text(value),
            };
            format!("(format {})", parts.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        ExprKind::Paren(inner) => format!("(paren {})", expr_text(inner)),
        ExprKind::Chain(chain) => {
            let links: Vec<String> = chain.links.iter().map(call_text).collect();
            format!("(|> {} {})", expr_text(&chain.head), links.join(" "))
        }
        ExprKind::Type(ty) => format!("(type {})", type_text(ty)),
    }
}

fn literal_text(literal: &Literal) -> String {
    match literal {
        Literal::Null => "null".to_owned(),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Decimal { mantissa, scale } => format!("{mantissa}e-{scale}d"),
        Literal::Float(bits) => format!("{:?}f", f64::from_bits(*bits)),
        Literal::String(text) => format!("{text:?}"),
        Literal::Date(days) => format!("date({days})"),
        Literal::Time(micros) => format!("time({micros})"),
        Literal::DateTime(micros) => format!("datetime({micros})"),
        Literal::Timestamp(micros) => format!("timestamp({micros})"),
        Literal::Duration(micros) => format!("duration({micros})"),
        Literal::Bytes(bytes) => format!("bytes({bytes})"),
    }
}
