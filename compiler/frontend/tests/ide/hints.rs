//! Inlay hints: what links do to the fields, and types that aren't written.

use std::path::Path;

use dfc_compiler::ide::{HintKind, TextRange, code_lenses, inlay_hints};

use crate::{HEAD, MAIN, at};

/// The pipeline's own lines with its hints in them, between `‹` and `›`.
fn shown(pipeline: &str) -> String {
    let (compiler, _) = at(pipeline);
    let main = Path::new(MAIN);
    let mut text = crate::text(&compiler);
    let hints = inlay_hints(&compiler, main, main, TextRange::new(0, text.len()));
    for hint in hints.iter().rev() {
        text.insert_str(hint.offset, &format!("‹{}›", hint.text));
    }
    let own = text.find("source users").and_then(|at| text[at..].find('\n').map(|end| at + end + 1)).unwrap_or(0);
    text[own..].to_string()
}

#[test]
fn what_links_do() {
    assert_eq!(
        shown(
            "sink orders\n    |> derive(revenue: price * (1 - discount ?? 0))\n    |> drop(discount, price)\n    |> print()\n"
        ),
        "sink orders\n    |> derive(revenue: price * (1 - discount ?? 0))‹+ revenue: decimal(21, 4)›\n    \
         |> drop(discount, price)‹− price, − discount›\n    |> print()\n"
    );
    assert_eq!(
        shown("sink orders |> filter(id > 1) |> rename(buyer: user_id) |> cast(id as string) |> print()\n"),
        "sink orders |> filter(id > 1) |> rename(buyer: user_id)‹user_id → buyer› |> cast(id as string)‹~ id: string› |> print()\n"
    );
    assert_eq!(
        shown("sink orders |> filter(discount is not null) |> print()\n"),
        "sink orders |> filter(discount is not null)‹~ discount: decimal(4, 2)› |> print()\n"
    );
    assert_eq!(
        shown("sink orders |> aggregate(by: [user_id], n: count()) |> print()\n"),
        "sink orders |> aggregate(by: [user_id], n: count())‹+ n: int64, − id, − status, − price, … 2 more› |> print()\n"
    );
    // The chain of the other side too.
    assert_eq!(
        shown("sink orders |> select(id) |> join(users |> select(id, nick: name), on: id) |> print()\n"),
        "sink orders |> select(id)‹− user_id, − status, − price, … 2 more› \
         |> join(users |> select(id, nick: name)‹+ nick: string, − name, − country›, on: id)‹+ nick: string› |> print()\n"
    );
}

#[test]
fn types_that_are_not_written() {
    assert_eq!(shown("const a = 1.5\n"), "const a‹: decimal(2, 1)› = 1.5\n");
    assert_eq!(shown("const a: decimal(4, 1) = 1.5\n"), "const a: decimal(4, 1) = 1.5\n");
    assert_eq!(shown("fn f(a: int32) = a * 2\n"), "fn f(a: int32)‹-> int32› = a * 2\n");
    assert_eq!(shown("fn f(a: any) = a\n"), "fn f(a: any) = a\n");
    assert_eq!(shown("stream a = orders\n"), "stream a‹: { id, user_id, status, … 3 more }› = orders\n");
}

#[test]
fn only_what_is_in_the_range() {
    let (compiler, _) = at("const a = 1\nconst b = 2\n");
    let main = Path::new(MAIN);
    let line = HEAD.len() + "const a = 1\n".len();
    let hints = inlay_hints(&compiler, main, main, TextRange::new(line, line + 11));
    assert_eq!(hints.len(), 1);
    assert_eq!((hints[0].kind, hints[0].text.as_str()), (HintKind::Type, ": int64"));
}

#[test]
fn nothing_of_what_is_broken_and_all_of_the_rest() {
    assert_eq!(
        shown("sink orders |> derive(x: nope * 2, y: id) |> print()\n"),
        "sink orders |> derive(x: nope * 2, y: id)‹+ x: ?, + y: int64› |> print()\n"
    );
    assert!(shown("const a = 1\nstream b = orders |> filter(\nconst c = 2\n").contains("‹: int64› = 2"));
}

#[test]
fn lenses_stand_above_a_job() {
    let (compiler, _) = at("");
    let main = Path::new(MAIN);
    let lenses = code_lenses(&compiler, main, main);
    let titles: Vec<&str> = lenses.iter().map(|lens| lens.title.as_str()).collect();
    assert_eq!(titles, ["Check", "Run", "Plan"]);
    assert_eq!(&HEAD[lenses[0].range.start..lenses[0].range.end], "example");
}
