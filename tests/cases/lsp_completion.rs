//! What the language server offers at each kind of place, through the protocol; with it what is shown of a job.

use serde_json::{Value, json};

use crate::support::session::Session;
use crate::support::write;

/// A session with a cursor written `$` in a pipeline; the labels there.
fn labels(line: &str) -> Vec<String> {
    let text = format!(
        "job j {{}}\n\nrecord Order {{ id: int64, at: date }}\n\nsource orders = csv(\"o.csv\", schema: Order)\n\n{}\n",
        line.replace('$', "")
    );
    Session::new(&text).labels(line)
}

fn has(line: &str, wanted: &[&str], unwanted: &[&str]) {
    let found = labels(line);
    for wanted in wanted {
        assert!(found.iter().any(|label| label == wanted), "{line}: no {wanted} among {found:?}");
    }
    for unwanted in unwanted {
        assert!(found.iter().all(|label| label != unwanted), "{line}: {unwanted} among {found:?}");
    }
}

#[test]
fn streams_where_a_sink_begins() {
    has("sink $ |> csv(\"x.csv\")", &["orders", "union"], &["csv", "filter", "record"]);
    has("sink or$ |> csv(\"x.csv\")", &["orders"], &["record"]);
    has("sink {\n    $ |> csv(\"x.csv\")\n}", &["orders"], &["record"]);
    has("stream a = $", &["orders", "union"], &["csv"]);
    has("source s = $", &["csv", "postgres", "jsonl"], &["orders", "print"]);
}

#[test]
fn types_and_classes_of_types() {
    for line in [
        "param x: $",
        "record R { a: $ }",
        "record R { a: list<$> }",
        "record R { a: list<$",
        "fn f(x: $) = x",
        "fn f(x: int64) -> $ = x",
    ] {
        has(line, &["int64", "string", "decimal", "Order"], &["orders", "id"]);
    }
    has("fn f(x: $) = x", &["any", "number", "temporal", "ordered"], &["row"]);
    has("fn f(x: int64, y: num$) = x", &["number"], &[]);
    has("record R { a: $ }", &[], &["number", "any", "row"]);
    has("operator o(x: $) -> input {}", &["row", "int64"], &[]);
    has("operator o(x: row $) -> input {}", &["any", "number", "int64"], &["row"]);
}

#[test]
fn names_that_a_parameter_takes() {
    has("stream a = orders |> join(orders, on: id, kind: $)", &["inner", "left", "semi", "anti"], &["id", "orders"]);
    has("stream a = orders |> sort(desc(id, nulls: $))", &["first", "last"], &["id"]);
    has("source s = csv(\"s.csv\", encoding: $)", &["utf8", "latin1"], &["orders"]);
}

#[test]
fn parameters_that_are_not_given_yet() {
    has("source s = csv(\"s.csv\", header: true, $)", &["schema", "delimiter", "nulls"], &["path", "header"]);
    has("stream a = orders |> aggregate(n: count(), $)", &["by"], &[]);
    has("stream a = orders |> aggregate(by: [at], $)", &[], &["by"]);
    has("stream a = orders |> lookup(orders, on: id, $)", &["take", "missing"], &["on", "table"]);
    // With documentation and its default.
    let text = "source s = csv(\"s.csv\", )\n";
    let mut s = Session::new(text);
    let items = s.ask("completion", "\"s.csv\", $)", json!({})).expect("an answer");
    let item = items.as_array().expect("a list").iter().find(|item| item["label"] == "delimiter").expect("a parameter");
    assert!(item["detail"].as_str().is_some_and(|detail| detail.contains("\",\"")), "{item}");
    assert!(item["documentation"]["value"].as_str().is_some_and(|doc| !doc.is_empty()), "{item}");
    assert_eq!(item["textEdit"]["newText"], "delimiter: \"$1\"");
}

#[test]
fn functions_by_what_they_give() {
    has("stream a = orders |> derive(x: $)", &["upper", "round", "year"], &["sum", "count"]);
    has("stream a = orders |> aggregate(by: [at], x: $)", &["sum", "count", "max"], &["upper1"]);
    let mut s = Session::new("fn half(x: int64) = x / 2\n\nconst a = ha\n");
    assert!(s.labels("= ha$").contains(&"half".to_owned()));
}

#[test]
fn files_in_a_path() {
    let mut s =
        Session::new("source s = csv(\"data/o\", schema: record { id: int64 })\n\nsource t = csv(path: \"\")\n");
    std::fs::create_dir(s.dir.path().join("data")).expect("a folder");
    for name in ["data/orders.csv", "data/old.csv", "data/users.csv", "top.csv"] {
        write(&s.dir.path().join(name), "");
    }
    assert_eq!(s.labels("data/o$\""), ["old.csv", "orders.csv"]);
    assert_eq!(s.labels("data/$o\""), ["old.csv", "orders.csv", "users.csv"]);
    let found = s.labels("path: \"$\"");
    assert!(found.contains(&"data".to_owned()) && found.contains(&"top.csv".to_owned()), "{found:?}");
}

#[test]
fn a_job_is_shown_with_what_it_guarantees_and_how_it_resumes() {
    let text =
        "job nightly {}\n\nsource s = csv(\"s.csv\", schema: record { id: int64 })\n\nsink s |> csv(\"out.csv\")\n";
    let mut s = Session::new(text);
    let hover = s.hover("job nigh$tly");
    assert!(hover.contains("exactly once"), "{hover}");
    assert!(hover.contains("resume") || hover.contains("goes on"), "{hover}");
    // Documentation of operators and functions.
    assert!(s.hover("|> c$sv").contains("path"), "{}", s.hover("|> c$sv"));
    let items: Value = s.ask("signatureHelp", "csv(\"s$.csv\"", json!({})).expect("an answer");
    assert_eq!(items["activeParameter"], 0);
}

#[test]
fn arguments_and_fields_of_fields_are_followed() {
    let text = r#"job j {}

record Address { city: string, geo: record { lat: float64, lon: float64 } }

record Person { id: int64, address: Address, home: Address? }

fn near(point: float64, other: float64 = 1.0) = point - other

operator tagged(tag: string, value: row int64) -> input {
    on row { emit { ...row }; }
}

source people = jsonl("p.jsonl", schema: Person)

stream a = people
    |> derive(place: address)
    |> filter(address.city != "" and place.city != "" and address.geo.lat > 0)

stream b = a |> join(people, on: id, take: [other: right.address]) |> filter(other.city != "x")

sink b |> derive(c: near(1.0, other: 2.0)) |> jsonl("out.jsonl")
"#;
    let mut s = Session::new(text);
    assert_eq!(s.definition("filter(address.ci$ty"), ["2:city"]);
    assert_eq!(s.definition("address.geo.la$t"), ["2:lat"]);
    assert_eq!(s.definition("address.ge$o.lat"), ["2:geo"]);
    assert_eq!(s.references("place.ci$ty"), ["2:city", "16:city", "16:city", "18:city"]);
    let renamed = s.rename("place.ci$ty", "town").expect("edits");
    let wanted = text
        .replace("{ city: string,", "{ town: string = \"city\",")
        .replace("address.city", "address.town")
        .replace("place.city", "place.town")
        .replace("other.city", "other.town");
    assert_eq!(renamed, wanted);
    let renamed = s.rename("geo.la$t", "north").expect("edits");
    assert!(
        renamed.contains("record { north: float64 = \"lat\"") && renamed.contains("address.geo.north > 0"),
        "{renamed}"
    );
    // A parameter and the label that gives it.
    assert_eq!(s.definition("near(1.0, oth$er:"), ["6:other"]);
    assert_eq!(s.references("point: float64, oth$er"), ["6:other", "6:other", "20:other"]);
    let renamed = s.rename("near(1.0, oth$er:", "origin").expect("edits");
    assert!(
        renamed.contains("origin: float64 = 1.0) = point - origin") && renamed.contains("origin: 2.0"),
        "{renamed}"
    );
    let used = format!("{text}\nstream c = people |> tagged(tag: \"x\", value: id)\n");
    s.replace(&used);
    assert_eq!(s.definition("tagged(ta$g: \"x\""), ["8:tag"]);
    let renamed = s.rename("tagged(tag: \"x\", val$ue: id", "number").expect("edits");
    assert!(renamed.contains("number: row int64") && renamed.contains("number: id"), "{renamed}");
}
