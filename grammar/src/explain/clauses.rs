//! Words of SQL and of other languages where an operator or an item begins, and what stands for them here.

use super::{Answer, ITEM_WORDS, Place, Repair};
use crate::error::{self, SyntaxError};
use crate::symbols::Word;
use crate::token::TokenKind as T;

/// Clauses of SQL in a chain, and the link that does it here.
const CLAUSES: &[(&str, &str)] = &[
    ("group", "aggregate(by: [status], orders: count())"),
    ("order", "sort(desc(price), day)"),
    ("where", "filter(status == \"paid\")"),
    ("having", "filter(orders > 1)"),
    ("limit", "take(10)"),
    ("join", "join(other, on: id)"),
    ("left", "join(other, on: id, kind: left)"),
    ("right", "join(other, on: id, kind: right)"),
    ("full", "join(other, on: id, kind: full)"),
    ("outer", "join(other, on: id, kind: full)"),
    ("inner", "join(other, on: id)"),
    ("union", ""),
    ("cross", "join(other, on: id)"),
    ("copy", "csv(\"out.csv\")"),
    ("into", "csv(\"out.csv\")"),
];

/// Words that begin an item elsewhere, and the item here.
const ITEMS: &[(&str, &str)] = &[
    ("import", "use"),
    ("include", "use"),
    ("require", "use"),
    ("from", "use"),
    ("def", "fn"),
    ("function", "fn"),
    ("func", "fn"),
    ("let", "const"),
    ("var", "const"),
    ("val", "const"),
    ("table", "stream"),
    ("view", "stream"),
    ("cte", "stream"),
    ("dataset", "stream"),
    ("input", "source"),
    ("read", "source"),
    ("output", "sink"),
    ("write", "sink"),
    ("print", "sink"),
    ("copy", "sink"),
    ("unload", "sink"),
    ("export", "sink"),
    ("save", "sink"),
    ("struct", "record"),
    ("class", "record"),
    ("type", "record"),
    ("schema", "record"),
    ("pipeline", "job"),
    ("workflow", "job"),
];

/// The item that another language's word stands for, with how it is written; `name` is the word behind it.
pub(super) fn foreign_item(word: &str, name: Option<&str>) -> Option<String> {
    let lower = word.to_lowercase();
    if lower == "rem" {
        return Some("a comment starts with `//`".to_owned());
    }
    let (_, item) = ITEMS.iter().find(|(theirs, _)| *theirs == lower)?;
    Some(match name {
        Some(name) if *item == "job" => format!("write `job {name} {{}}`"),
        _ => form(item),
    })
}

/// What to write for a chain that no item begins: `orders |> csv("out.csv")`.
pub(super) fn bare_chain(name: &str) -> String {
    format!("a chain stands in an item: `sink {name} |> …` writes its rows, `stream x = {name} |> …` names them")
}

/// How an item is written.
pub(super) fn form(item: &str) -> String {
    let form = match item {
        "job" => "job nightly { parallelism: 4 }",
        "param" => "param since: date = @2026-01-31",
        "const" => "const rate = 0.19",
        "record" => "record Order { id: int64, note: string? }",
        "source" => "source orders = csv(\"orders.csv\", schema: Order)",
        "stream" => "stream paid = orders |> filter(status == \"paid\")",
        "sink" => "sink paid |> csv(\"out.csv\")",
        "fn" => "fn next(x: int64) = x + 1",
        "operator" => "operator kept() -> input { on row { emit row; } }",
        "use" => "use \"lib.df\"",
        _ => return items(),
    };
    format!("write `{form}`")
}

/// What stands for a statement of SQL that begins with this word.
pub(super) fn statement(word: &str) -> &'static str {
    match word.to_lowercase().as_str() {
        "create" => "fields are declared by `record Order { id: int64 }`; a table that is written is named by a sink",
        "insert" | "update" | "delete" | "into" | "values" => {
            "rows are written by a sink: `sink paid |> postgres(url: secret(\"URL\"), table: \"paid\")`"
        }
        "with" => "name each part as a stream: `stream paid = orders |> filter(status == \"paid\")`",
        "set" => "a value is named by `const rate = 0.19`, or given at the start by `param rate: decimal(4, 2)`",
        _ => "write a chain: `stream x = orders |> filter(…) |> select(…)`",
    }
}

/// What a file consists of.
pub(super) fn items() -> String {
    let words = ITEM_WORDS.iter().filter(|(_, word)| *word != Word::Native).map(|(word, _)| format!("`{word}`"));
    format!("a file consists of {}", words.collect::<Vec<_>>().join(", "))
}

impl<'a> Place<'_, 'a> {
    /// `|> group by status`, `|> left join users on …`
    pub(super) fn clause(&self) -> Option<Answer<'a>> {
        let (name, pipe) = (self.before(1)?, self.before(2)?);
        if !name.is_name() || !pipe.is(T::Pipe) || !self.expected.has("(") {
            return None;
        }
        let lower = self.source(name).to_lowercase();
        let (_, link) = CLAUSES.iter().find(|(clause, _)| *clause == lower)?;
        let second =
            self.here().filter(|s| ["by", "join", "outer", "all"].contains(&self.source(s).to_lowercase().as_str()));
        let span = second.map_or(name.span, |second| name.span.to(second.span));
        let text = super::source(self.text, span);
        let fault = SyntaxError::new(
            error::SQL,
            span,
            format!("`{text}` is a clause of SQL, not an operator"),
            "not an operator",
        )
        .help(match *link {
            "" => "streams are joined at the start of a chain: `union(a, b) |> …`".to_owned(),
            link => format!("write `|> {link}`"),
        });
        Some((Some(fault), Repair::Region))
    }
}
