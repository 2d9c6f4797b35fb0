//! Code actions: fixes of findings, records of sources, streams out of chains, defaults for null.

use std::path::Path;

use dfc_compiler::ide::{ActionKind, CodeAction, code_actions};
use dfc_compiler::{Catalog, Compiler, NotFound, Request};
use dfc_ir::{DataType, Field, Schema, Type};

use crate::{HEAD, MAIN, apply, at, between, text};

fn all(pipeline: &str) -> (Compiler, Vec<CodeAction>) {
    let (compiler, cursors) = at(pipeline);
    let main = Path::new(MAIN);
    let actions = code_actions(&compiler, main, main, between(&cursors));
    (compiler, actions)
}

/// The pipeline after the action whose title starts so.
#[track_caller]
fn after(pipeline: &str, title: &str) -> String {
    let (mut compiler, actions) = all(pipeline);
    let titles: Vec<&str> = actions.iter().map(|action| action.title.as_str()).collect();
    let action = actions.iter().find(|action| action.title.starts_with(title));
    let action = action.unwrap_or_else(|| panic!("no {title:?} among {titles:?}"));
    let changed = apply(&text(&compiler), &action.edits);
    compiler.set_file(Path::new(MAIN), changed.clone());
    changed.strip_prefix(HEAD).unwrap_or(&changed).to_string()
}

#[test]
fn fixes_are_those_of_the_findings() {
    let (compiler, actions) = all("sink orders |> filter(pric$0e1 > 1) |> print()\n");
    let findings = compiler.findings(Path::new(MAIN));
    let finding = findings.diagnostics.iter().find(|finding| finding.code == "E0410").expect("the mistake");
    let action = actions.iter().find(|a| a.kind == ActionKind::QuickFix).expect("a fix");
    assert_eq!(action.title, finding.fixes[0].title);
    assert_eq!(action.mends.as_ref().map(|(code, _)| code.as_str()), Some(finding.code));
    assert!(action.preferred);
    assert_eq!(
        after("sink orders |> filter(pric$0e1 > 1) |> print()\n", "write `price`"),
        "sink orders |> filter(price > 1) |> print()\n"
    );
    // Elsewhere there are none.
    assert!(all("sink or$0ders |> filter(price1 > 1) |> print()\n").1.is_empty());
    // A syntax error's too.
    assert_eq!(
        after("sink orders |> filter(id > 1 &$0& id < 3) |> print()\n", "write `and`"),
        "sink orders |> filter(id > 1 and id < 3) |> print()\n"
    );
}

#[test]
fn a_default_for_null() {
    assert_eq!(after("fn g(x: int64?) -> int64 = x$0\n", "add `?? 0`"), "fn g(x: int64?) -> int64 = x ?? 0\n");
    assert_eq!(
        after("fn g(x: int64?) -> int64 = x$0 + 1\n", "add `?? 0`"),
        "fn g(x: int64?) -> int64 = (x + 1) ?? 0\n"
    );
    assert_eq!(
        after("fn g(x: string?) -> string = upper($0x)\n", "add"),
        "fn g(x: string?) -> string = upper(x) ?? \"\"\n"
    );
}

#[test]
fn a_record_of_a_source() {
    let declared =
        after("source other_rates = csv(\"r.csv\", sche$0ma: record { id: int64, rate: float64? })\n", "declare");
    assert_eq!(
        declared,
        "record OtherRate { id: int64, rate: float64? }\n\nsource other_rates = csv(\"r.csv\", schema: OtherRate)\n"
    );
    // It has one.
    assert!(all("source s = csv(\"r.csv\", sche$0ma: Order)\n").1.is_empty());
}

#[test]
fn a_stream_out_of_a_chain() {
    assert_eq!(
        after("stream a = orders |> $0filter(id > 1) |> derive(x: 1)$0 |> select(id)\nsink a |> print()\n", "extract"),
        "stream a_part = orders |> filter(id > 1) |> derive(x: 1)\n\nstream a = a_part |> select(id)\nsink a |> print()\n"
    );
    assert_eq!(
        after("sink orders |> $0filter(id > 1)$0 |> print()\n", "extract `filter`"),
        "stream orders_part = orders |> filter(id > 1)\n\nsink orders_part |> print()\n"
    );
    // The connector stays.
    assert!(all("sink orders |> $0print()$0\n").1.is_empty());
    // Without a selection nothing is offered.
    assert!(all("sink orders |> fil$0ter(id > 1) |> print()\n").1.is_empty());
    let taken =
        "stream orders_part = orders\nsink { orders |> $0filter(id > 1)$0 |> print() orders_part |> print() }\n";
    assert!(after(taken, "extract").contains("stream orders_part2 = orders |> filter(id > 1)"));
}

/// Knows the fields of every file.
struct Known;

impl Catalog for Known {
    fn schema(&self, _: &Request) -> Result<Schema, NotFound> {
        let number = Field::new("id", DataType::of(Type::INT64));
        let renamed = Field {
            external: Some("Created At".into()),
            ..Field::new("created_at", DataType::optional(Type::DateTime))
        };
        Ok(Schema { fields: vec![number, renamed] })
    }
}

#[test]
fn a_record_of_what_a_file_holds() {
    let (mut compiler, cursors) = at("source s = cs$0v(\"r.csv\")\n");
    let main = Path::new(MAIN);
    compiler.set_catalog(std::sync::Arc::new(Known));
    let actions = code_actions(&compiler, main, main, between(&cursors));
    let action = actions.iter().find(|action| action.title.starts_with("declare")).expect("an action");
    let changed = apply(&text(&compiler), &action.edits);
    assert!(
        changed.ends_with(
            "record S {\n    id: int64\n    created_at: datetime? = \"Created At\"\n}\n\n\
             source s = csv(\"r.csv\", schema: S)\n"
        ),
        "{changed}"
    );
}
