//! Hover: rows with their fields, fields with their ways, documentation, values, guarantees.

use std::path::Path;

use dfc_compiler::ide::hover;

use crate::{MAIN, at};

fn text(pipeline: &str) -> String {
    let (compiler, cursors) = at(pipeline);
    hover(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0]).map(|hover| hover.text).unwrap_or_default()
}

#[track_caller]
fn holds(pipeline: &str, wanted: &[&str]) {
    let text = text(pipeline);
    for part in wanted {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn streams_with_their_rows() {
    holds(
        "stream a$0 = orders |> select(id, total: price)\n",
        &["stream a", "| `id` | `int64` |", "| `total` | `decimal(15, 2)` |"],
    );
    holds(
        "stream a = ord$0ers |> select(id)\n",
        &["source orders = csv(…)", "| `discount` | `decimal(4, 2)?` |", "declared here"],
    );
    holds("sink ord$0ers |> print()\n", &["source orders"]);
    holds("stream a = orders |> join(us$0ers, on: user_id == right.id)\n", &["source users"]);
    holds("stream a = nothing$0 |> filter(x)\nstream b$0 = a |> filter(y > 1)\n", &[]);
}

#[test]
fn links_with_the_row_behind_them() {
    holds(
        "stream a = orders |> der$0ive(revenue: price * 2) |> select(id)\n",
        &["shuffle derive(", "Adds fields", "`revenue`", "computed here"],
    );
    holds("sink orders |> select(id) |> pr$0int()\n", &["sink print(", "The row it is given", "| `id` | `int64` |"]);
    holds("stream a = orders |> select(id) $0|> filter(id > 1)\n", &["The row here", "| `id` |"]);
    // Half written.
    holds("stream a = orders |> sel$0ect(id) |> filter(id > \n", &["shuffle select(", "| `id` |"]);
}

#[test]
fn fields_with_their_ways() {
    holds(
        "stream a = orders |> rename(buyer: user_id) |> filter(buy$0er > 1)\n",
        &["buyer: int64", "declared here (line 5)", "renamed from `user_id`"],
    );
    holds("stream a = orders |> derive(rev$0enue: price * 2)\n", &["revenue: decimal(", "computed here"]);
    holds(
        "stream a = orders |> lookup(users, on: user_id == right.id)\nstream b = a |> filter(na$0me == \"x\")\n",
        &["name: string?", "made optional by this lookup"],
    );
    holds("stream a = orders |> join(users, on: user_id == right.i$0d)\n", &["id: int64"]);
    holds("stream a = orders |> join(users, on: user_id == ri$0ght.id)\n", &["right side", "`country`"]);
    holds("record R { va$0lue: int64? = \"v\" }\n", &["value: int64?", "called `v`"]);
    holds("stream a = orders |> aggregate(by: [user_id], n: count() + user$0_id)\n", &["user_id: int64", "A key"]);
    holds("stream a = orders |> derive(x: f\"{sta$0tus}\")\n", &["status: string"]);
}

#[test]
fn functions_and_parameters() {
    holds("stream a = orders |> derive(x: up$0per(status))\n", &["upper(s: string) -> string", "capital letters"]);
    holds(
        "stream a = orders |> derive(x: ne$0t(price, discount))\n",
        &["fn net(", "-> decimal(21, 4)", "without the discount"],
    );
    holds("source s = csv(\"s.csv\", head$0er: false, schema: Order)\n", &["header: bool = true", "first line"]);
    holds("stream a = orders |> join(users, on: id, kind: le$0ft)\n", &["kind: inner | left"]);
    holds("stream a = orders |> sort(de$0sc(id))\n", &["desc(x, nulls: last)"]);
}

#[test]
fn values_and_types() {
    holds("stream a = orders |> filter(date(at) >= sin$0ce)\n", &["param since: date = 1995-01-01"]);
    holds("stream a = orders |> derive(x: price * va$0t)\n", &["const vat: decimal(2, 2) = 0.19"]);
    holds("stream a = orders |> derive(x: 1.2$05)\n", &["1.25: decimal(3, 2)"]);
    holds("stream a = orders |> filter(status == \"pa$0id\")\n", &["\"paid\": string"]);
    holds("stream a = orders |> derive(x: @2026-01$0-31)\n", &["date"]);
    holds(
        "source s = csv(\"s.csv\", schema: Ord$0er)\n",
        &["record Order {", "discount: decimal(4, 2)?", "at: datetime = \"Created At\"", "What was bought."],
    );
    holds("record R { a: str$0ing }\n", &["Text, UTF-8"]);
    holds("stream a = orders |> derive(x: price as flo$0at64)\n", &["floating point"]);
    holds("fn f(first: int64) = fir$0st + 1\n", &["first: int64"]);
}

#[test]
fn the_job_with_its_guarantee() {
    let pipeline = "sink orders |> csv(\"out.csv\")\n";
    let (compiler, _) = at(pipeline);
    let main = Path::new(MAIN);
    let at = crate::text(&compiler).find("example").expect("the job");
    let text = hover(&compiler, main, main, at).expect("an answer").text;
    for part in ["job example", "delivery: exactly once", "source orders (csv)", "sink csv"] {
        assert!(text.contains(part), "{text}");
    }
    let word = hover(&compiler, main, main, 1).expect("an answer").text;
    assert!(word.contains("delivery"), "{word}");
}

#[test]
fn nothing_where_nothing_is_known() {
    for pipeline in ["// or$0ders\n", "stream a = noth$0ing |> filter(id > 1)\n", "\n\n$0\n\n"] {
        assert_eq!(text(pipeline), "", "{pipeline}");
    }
}
