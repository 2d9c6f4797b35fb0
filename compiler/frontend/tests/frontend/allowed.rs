//! What a comment switches off stays switched off when the file is formatted.

use crate::codes;

/// Chains that compute `tax`, which nothing reads, with a comment that says so.
const CHAINS: &[&str] = &[
    "orders |> derive(tax: price * 2) |> select(id, price) // allow W0401",
    "orders |> derive(tax: price * 2) // allow W0401\n    |> select(id, price)",
    "orders\n    |> derive(tax: price * 2, more: price * 3) // allow W0401\n    |> select(id, price)",
    "orders\n    |> derive(\n        tax: price * 2, // allow W0401\n        more: price * 3, // allow W0401\n    )\n    |> select(id, price)",
    "orders\n    |> derive(tax: price * 2, // allow W0401\n        more: price * 3) // allow W0401\n    |> select(id, price)",
    "orders\n    |> derive(tax: price * 2, // allow W0401\n        kept: price * 3)\n    |> select(id, price, kept)",
    "orders\n    |> derive(kept: price * 3,\n        tax: price * 2) // allow W0401\n    |> select(id, price, kept)",
    "orders\n    |> derive(\n        kept: price * 3, tax: price * 2, // allow W0401\n    )\n    |> select(id, price, kept)",
    "orders\n    |> derive( // allow W0401\n        kept: price * 3, tax: price * 2\n    ) |> select(id, price, kept)",
    "orders\n    // allow W0401\n    |> derive(tax: price * 2, kept: price * 3)\n    |> select(id, price, kept)",
    "union(orders |> derive(tax: price * 2) |> select(id, price), // allow W0401\n    orders |> derive(tax: price * 4) |> select(id, price)) // allow W0401",
    "union(\n    orders |> select(id, price), // both\n    orders |> derive(tax: price * 2) |> select(id, price), // allow W0401\n)",
    "orders\n    |> join(\n        orders |> derive(tax: price * 2) |> select(id, price), // allow W0401\n        on: id,\n        take: [again: price],\n    )",
];

#[test]
fn a_lint_that_is_switched_off_stays_so_when_formatted() {
    for chain in CHAINS {
        let text = |chain: &str| format!("stream a = {chain}\nsink a |> csv(\"a.csv\")\n");
        let lint = |text: &str| codes(text).contains(&"W0401");
        assert!(lint(&text(&chain.replace("// allow", "//"))), "nothing to switch off: {chain}");
        let mut text = text(chain);
        assert!(!lint(&text), "{text}");
        for _ in 0..2 {
            text = dfc_grammar::format(&text).text;
            assert!(!lint(&text), "formatted: {text}");
        }
    }
}
