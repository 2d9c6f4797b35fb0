//! Plans: nodes, paths, sites.

use std::path::Path;

use dfc_ir::plan::{JoinKind, MatchMode};
use dfc_ir::{Op, Plan};

use crate::{HEAD, compiler};

fn plan(text: &str) -> Plan {
    let text = format!("{HEAD}{text}");
    match compiler(&[("p/main.df", &text)]).plan(Path::new("p/main.df")) {
        Ok(plan) => plan,
        Err(checked) => panic!("{}", dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false)),
    }
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|n| n.name.as_str()).collect()
}

#[test]
fn inputs_stand_before_their_consumers_and_paths_are_resolved() {
    let plan = plan(
        "stream a = orders |> filter(id > 1)\nstream b = a |> filter(id < 9) |> filter(id != 5)\nsink { b |> csv(\"../out/b.csv\") a |> csv(\"-\") }\n",
    );
    assert_eq!(names(&plan), ["orders", "a.filter", "b.filter", "b.filter.2", "sink.csv", "sink.csv.2"]);
    for (position, node) in plan.nodes.iter().enumerate() {
        assert!(node.inputs.iter().all(|input| input.0 < position));
    }
    let path = |i: usize| match &plan.nodes[i].op {
        Op::Source(spec) => spec.options["path"].text().map(str::to_string),
        Op::Sink(spec) => spec.options["path"].text().map(str::to_string),
        _ => None,
    };
    assert_eq!(path(0).as_deref(), Some("p/orders.csv"));
    assert_eq!(path(4).as_deref(), Some("out/b.csv"));
    assert_eq!(path(5).as_deref(), Some("-"));
}

#[test]
fn aggregates_with_arithmetic_get_a_projection() {
    let simple = plan("sink orders |> aggregate(by: [user_id], n: count(), total: sum(price)) |> print()\n");
    assert_eq!(names(&simple), ["orders", "sink.aggregate", "sink.print"]);
    let shared = plan("sink orders |> aggregate(by: [user_id], n: count(), mean: sum(price) / count()) |> print()\n");
    assert_eq!(names(&shared), ["orders", "sink.aggregate", "sink.aggregate.2", "sink.print"]);
    let Op::Aggregate { aggregates, .. } = &shared.nodes[1].op else { panic!("{:?}", shared.nodes[1]) };
    assert_eq!(aggregates.len(), 2, "count() is computed once");
    assert_eq!(shared.nodes[1].schema.len(), 3);
}

#[test]
fn lookups_become_joins() {
    let plan = plan(
        "sink orders |> lookup(csv(\"u.csv\", schema: User), on: user_id == right.id and right.country == \"NL\", take: [name], match: first) |> print()\n",
    );
    let Some(Op::Join(join)) = plan.nodes.iter().map(|n| &n.op).find(|op| matches!(op, Op::Join(_))) else { panic!() };
    assert_eq!((join.kind, join.matches, join.required, join.left_width), (JoinKind::Left, MatchMode::First, false, 6));
    assert_eq!(join.left_keys.len(), 1);
    assert!(join.residual.is_some());
    assert_eq!(join.output.len(), 7);
}

#[test]
fn a_requirement_without_a_message_says_its_condition() {
    let plan =
        plan("sink orders |> require(price\n   > 0) |> require(id > 0, message: \"ids are positive\") |> print()\n");
    let messages: Vec<&str> = plan
        .nodes
        .iter()
        .filter_map(|n| if let Op::Require { message, .. } = &n.op { Some(message.as_str()) } else { None })
        .collect();
    assert_eq!(messages, ["`price > 0` does not hold", "ids are positive"]);
}

#[test]
fn sites_say_file_line_and_text() {
    let plan = plan("sink orders |> derive(x: price\n  / id) |> print()\n");
    let site = plan.sites.iter().find(|s| s.text == "price / id").expect("the division's site");
    assert_eq!((site.file.as_str(), site.line, site.column), ("p/main.df", 5, 26));
    assert_eq!(plan.sites[0], Default::default());
}

#[test]
fn a_stream_may_be_only_another_name() {
    let plan = plan("stream a = orders\nstream b = a\nsink b |> print()\n");
    assert_eq!(names(&plan), ["orders", "sink.print"]);
}

#[test]
fn a_long_chain_of_streams_is_no_problem() {
    let mut text = String::from("stream s0 = orders |> filter(id > 0)\n");
    for i in 1..300 {
        text.push_str(&format!("stream s{i} = s{} |> filter(id > {i})\n", i - 1));
    }
    text.push_str("sink s299 |> print()\n");
    assert_eq!(plan(&text).nodes.len(), 302);
}
