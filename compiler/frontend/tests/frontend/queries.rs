//! How much is computed anew after an edit.

use std::path::Path;

use crate::{HEAD, held};

const TAIL: &str = "stream a = orders |> filter(id > 1)
stream b = a |> derive(x: id + 1)
stream c = orders |> derive(y: id * 2)
sink { b |> print() c |> print() }
";

/// How often items were checked after an edit.
fn checks_after(edit: impl Fn(&str) -> String) -> usize {
    let text = format!("{HEAD}{TAIL}");
    let mut compiler = held(&[("main.df", &text)]);
    let root = Path::new("main.df");
    assert!(compiler.check(root).diagnostics.is_empty());
    let first = compiler.query_counts();
    assert_eq!(first.get("item_check"), Some(&5), "{first:?}");
    compiler.set_file(root, edit(&text));
    compiler.check(root);
    let again = compiler.query_counts();
    assert_eq!(again.get("parse"), Some(&1), "{again:?}");
    again.get("item_check").copied().unwrap_or(0)
}

#[test]
fn blanks_between_items_check_nothing_anew() {
    assert_eq!(checks_after(|text| text.replace("stream b", "\n\n// a comment\nstream b")), 0);
    assert_eq!(checks_after(|text| format!("\n{text}\n")), 0);
}

#[test]
fn blanks_inside_an_item_check_only_it_anew() {
    assert_eq!(checks_after(|text| text.replace("filter(id > 1)", "filter(  id > 1)")), 1);
    assert_eq!(checks_after(|text| text.replace("record User { id", "record User {  id")), 0);
}

#[test]
fn an_edit_that_keeps_the_fields_checks_only_the_item() {
    assert_eq!(checks_after(|text| text.replace("filter(id > 1)", "filter(id > 2)")), 1);
}

#[test]
fn an_edit_that_changes_the_fields_checks_what_depends_on_them() {
    // `a`, `b` and the sink; not `orders`, not `c`.
    assert_eq!(checks_after(|text| text.replace("filter(id > 1)", "derive(z: 1)")), 3);
}

#[test]
fn nothing_changed_runs_nothing() {
    let text = format!("{HEAD}{TAIL}");
    let mut compiler = held(&[("main.df", &text)]);
    let root = Path::new("main.df");
    compiler.check(root);
    compiler.query_counts();
    compiler.set_file(root, text);
    compiler.check(root);
    assert!(compiler.query_counts().is_empty());
}

/// A pipeline of many streams in chains of ten, each end written by the sink.
fn long(streams: usize) -> String {
    let mut text = String::from(HEAD);
    let mut sink = String::from("sink {\n");
    for stream in 0..streams {
        let from = if stream % 10 == 0 { "orders".to_owned() } else { format!("s_{}", stream - 1) };
        text +=
            &format!("stream s_{stream} = {from}\n    |> filter(id > {stream})\n    |> derive(f_{stream}: id + 1)\n\n");
        if stream % 10 == 9 {
            sink += &format!("    s_{stream} |> csv(\"{stream}.csv\")\n");
        }
    }
    text + &sink + "}\n"
}

#[test]
fn one_edit_in_a_long_pipeline_runs_few_queries() {
    let text = long(400);
    let mut compiler = held(&[("main.df", &text)]);
    let root = Path::new("main.df");
    let found = compiler.check(root).diagnostics;
    assert!(found.is_empty(), "{found:?}");
    assert!(compiler.query_counts().values().sum::<usize>() > 400 * 3);
    compiler.set_file(root, text.replace("filter(id > 77)", "filter(id > 78)"));
    compiler.check(root);
    let again = compiler.query_counts();
    assert_eq!(again.get("item_check"), Some(&1), "{again:?}");
    assert!(again.values().sum::<usize>() <= 60, "{again:?}");
}

/// A field more comes to one target of forty: the streams on its way, the sink, and that target's chain.
#[test]
fn a_new_field_checks_the_chains_that_it_comes_to() {
    let text = long(400);
    let mut compiler = held(&[("main.df", &text)]);
    let root = Path::new("main.df");
    compiler.check(root);
    assert_eq!(compiler.query_counts().get("chain_check"), Some(&40));
    compiler.set_file(root, text.replace("derive(f_77: id + 1)", "derive(f_77: id + 1, more: id + 2)"));
    let found = compiler.check(root).diagnostics;
    assert!(found.is_empty(), "{found:?}");
    let again = compiler.query_counts();
    assert_eq!((again.get("item_check"), again.get("chain_check")), (Some(&4), Some(&1)), "{again:?}");
    // Of the other targets nobody asks again what they read.
    assert!(again.get("read_of").is_none_or(|count| *count <= 6), "{again:?}");
    // Of the other streams nobody asks again whether they compute in vain.
    assert!(again.get("unused").is_some_and(|count| *count <= 4), "{again:?}");
}
