//! Signature help: which call, which declaration of it, which parameter.

use std::path::Path;

use dfc_compiler::ide::signature_help;

use crate::{MAIN, at};

/// The signature that fits, and its parameter at the cursor.
fn of(pipeline: &str) -> Option<(String, String)> {
    let (compiler, cursors) = at(pipeline);
    let help = signature_help(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0])?;
    let signature = &help.signatures[help.active];
    let parameter = help.parameter.map(|number| {
        let place = signature.params[number].label;
        signature.label[place.start..place.end].to_string()
    });
    Some((signature.label.clone(), parameter.unwrap_or_default()))
}

#[track_caller]
fn expect(pipeline: &str, head: &str, parameter: &str) {
    let (label, found) = of(pipeline).unwrap_or_else(|| panic!("no help: {pipeline}"));
    assert!(label.starts_with(head), "{label}");
    assert_eq!(found, parameter, "{pipeline}");
}

#[test]
fn operators() {
    expect("source s = csv($0)\n", "csv(path: string, ", "path: string");
    expect("source s = csv(\"a$0\", schema: Order)\n", "csv(", "path: string");
    expect("source s = csv(\"a\", header: tr$0)\n", "csv(", "header: bool = true");
    expect("stream a = orders |> filter($0", "filter(predicate: row bool?) -> input", "predicate: row bool?");
    expect("stream a = orders |> join(users, $0)\n", "join(", "on: pair bool?");
    expect("stream a = orders |> derive(x: price, y: $0)\n", "derive(", "...fields: row any");
    expect("sink orders |> csv(\"x\", mo$0)\n", "csv(", "schema: type?");
}

#[test]
fn functions() {
    expect("stream a = orders |> derive(x: upper($0))\n", "upper(s: string) -> string", "s: string");
    expect(
        "stream a = orders |> derive(x: substring(status, $0))\n",
        "substring(s: string, start: int64)",
        "start: int64",
    );
    expect(
        "stream a = orders |> derive(x: substring(status, 1, $0))\n",
        "substring(s: string, start: int64, count: int64)",
        "count: int64",
    );
    expect(
        "stream a = orders |> derive(x: net(price, $0))\n",
        "net(price: decimal(15, 2), discount: decimal(4, 2)?) -> decimal(21, 4)",
        "discount: decimal(4, 2)?",
    );
    expect("stream a = orders |> derive(x: concat(\"a\", \"b\", \"c\", $0))\n", "concat(", "...rest: string");
    // The innermost call.
    expect("stream a = orders |> derive(x: upper(trim($0)))\n", "trim(s: string)", "s: string");
    expect("stream a = orders |> derive(x: upper(trim(status)$0))\n", "upper(", "s: string");
    expect("stream a = orders |> sort(desc(id, $0))\n", "desc(", "nulls: first | last");
}

#[test]
fn nowhere_else() {
    for pipeline in ["stream a = ord$0ers\n", "fn f($0a: int64) = a\n", "// csv($0\n", "const x = (1 + $02)\n"] {
        assert_eq!(of(pipeline), None, "{pipeline}");
    }
}
