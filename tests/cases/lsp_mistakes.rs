//! What the language server still knows behind a mistake: fields keep their names while a line is wrong, and what it finds stays
//! what `dfc check` says.

use crate::support::session::Session;

const TEXT: &str = r#"job j {}

record Order {
    id: int64
    name: string?
    price: decimal(9, 2)
}

source orders = csv("o.csv", schema: Order)

stream a = orders |> filter(price > 1)

stream b = a |> derive(net: price * 2) |> filter(net > 1)

sink b |> csv("out.csv")
"#;

/// A mistake in the text: what was right, what is wrong, and the one error that it gives.
const MISTAKES: &[(&str, &str, &str)] = &[
    // Of meaning.
    ("name: string?", "name: strin?", "E0423"),
    ("schema: Order", "schema: Ordr", "E0423"),
    ("schema: Order", "schema: Or", "E0423"),
    ("schema: Order", "shema: Order", "E0601"),
    ("csv(\"o.csv\"", "cvs(\"o.csv\"", "E0401"),
    ("stream a = orders", "stream a = ordrs", "E0302"),
    ("|> filter(price > 1)", "|> fliter(price > 1)", "E0401"),
    ("|> filter(price > 1)", "|> filter()", "E0602"),
    ("|> filter(price > 1)", "|> csv(\"x\") |> filter(price > 1)", "E0305"),
    // Of syntax.
    ("name: string?", "name string?", "E0113"),
    ("price > 1)", "price > )", "E0109"),
    ("price > 1)", "price > 1", "E0106"),
    ("schema: Order)", "schema: Order", "E0106"),
    ("schema: Order)", "schema: )", "E0109"),
];

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// The fields before a link, whatever became of the link before.
#[test]
fn fields_stay_behind_a_mistake_from_the_start() {
    for (right, wrong, _) in MISTAKES {
        let text = TEXT.replace(right, wrong);
        let mut s = Session::new(&text);
        assert_eq!(sorted(s.fields("filter($net")), ["id", "name", "net", "price"], "{wrong}");
        assert_eq!(sorted(s.fields("derive($net")), ["id", "name", "price"], "{wrong}");
        assert!(s.hints().iter().any(|(_, hint)| hint.starts_with("+ net")), "{wrong}: {:?}", s.hints());
        let hover = s.hover("stream b$");
        assert!(hover.contains("| `net` |") && hover.contains("| `id` |"), "{wrong}: {hover}");
    }
}

/// The same where the text was right before.
#[test]
fn fields_stay_while_a_line_is_being_written() {
    for (right, wrong, _) in MISTAKES {
        let mut s = Session::new(TEXT);
        assert_eq!(sorted(s.fields("filter($net")), ["id", "name", "net", "price"]);
        s.replace(&TEXT.replace(right, wrong));
        assert_eq!(sorted(s.fields("filter($net")), ["id", "name", "net", "price"], "{wrong}");
    }
}

/// What is guessed for the editor is said nowhere: one mistake is one message.
#[test]
fn one_mistake_is_one_message_all_the_same() {
    for (right, wrong, code) in MISTAKES {
        let mut s = Session::new(&TEXT.replace(right, wrong));
        s.fields("filter($net");
        let found = s.codes();
        assert_eq!(found, [*code], "{wrong}");
    }
}

#[test]
fn a_field_of_an_unknown_type_keeps_its_name() {
    let text = TEXT.replace("name: string?", "name: strin?").replace("price > 1", "name == \"\" and price > 1");
    let mut s = Session::new(&text);
    assert!(s.hover("filter(na$me").contains("not known"), "{}", s.hover("filter(na$me"));
    assert!(s.hover("and pri$ce").contains("decimal(9, 2)"));
    assert_eq!(s.definition("filter(na$me"), ["4:name"]);
    assert!(s.hover("schema: Ord$er").contains("name: strin?"));
    assert!(s.labels("schema: Ord$er").contains(&"Order".to_owned()));
    let nested = "record Address { city: string, zip: intt }\n\nrecord Person { id: int64, address: Address }\n\n\
                  source people = jsonl(\"p.jsonl\", schema: Person)\n\nstream a = people |> filter(address.city != \"\")\n";
    let mut s = Session::new(nested);
    assert_eq!(s.fields("address.$city"), ["city"]);
}

#[test]
fn both_sides_of_a_join_stay_behind_a_wrong_condition() {
    let text = "record A { id: int64, x: string }\n\nrecord B { id: int64, y: string }\n\n\
                source a = csv(\"a.csv\", schema: A)\n\nsource b = csv(\"b.csv\", schema: B)\n\n\
                stream c = a |> join(b, on: idd) |> filter(id > 1)\n\n\
                stream d = a |> lookup(b, on: idd, take: [z: y]) |> filter(id > 2)\n\n\
                stream e = union(a, missing) |> filter(id > 3)\n";
    let mut s = Session::new(text);
    assert_eq!(sorted(s.fields("filter($id > 1)")), ["id", "x", "y"]);
    assert_eq!(sorted(s.fields("filter($id > 2)")), ["id", "x", "z"]);
    assert_eq!(sorted(s.fields("filter($id > 3)")), ["id", "x"]);
}

#[test]
fn a_library_stays_while_its_use_is_being_written() {
    let library = "record Order { id: int64, price: decimal(9, 2) }\n\nsource orders = csv(\"o.csv\", schema: Order)\n";
    let main = "use \"lib.df\"\n\njob j {}\n\nstream a = orders |> filter(id > 1)\n\nsink a |> csv(\"x.csv\")\n";
    let mut s = Session::new(main);
    crate::support::write(&s.dir.path().join("lib.df"), library);
    let changed =
        serde_json::json!({ "changes": [{ "uri": format!("{}", s.uri.replace("main.df", "lib.df")), "type": 1 }] });
    s.client.notify("workspace/didChangeWatchedFiles", changed);
    assert_eq!(s.fields("filter($id"), ["id", "price"]);
    for wrong in ["use \"li.df\"", "use \"lib", "use ", "use \"other.df\""] {
        s.replace(&main.replace("use \"lib.df\"", wrong));
        assert_eq!(s.fields("filter($id"), ["id", "price"], "{wrong}");
        assert!(!s.codes().is_empty(), "{wrong}");
    }
    s.replace(main);
    assert_eq!(s.codes(), Vec::<String>::new());
    // A `use` that is taken out is not remembered.
    s.replace(&main.replace("use \"lib.df\"\n\n", ""));
    assert_eq!(s.fields("filter($id"), Vec::<String>::new());
}

/// Guesses that lead back to where they came from end.
#[test]
fn streams_that_may_mean_each_other_are_no_circle() {
    let text = "record R { id: int64 }\n\nsource s = csv(\"s.csv\", schema: R)\n\nstream firsts = seconds1 |> filter(id > 1)\n\n\
                stream seconds = firsts1 |> filter(id > 1)\n\nstream third = seconds |> filter(id > 2)\n";
    let mut s = Session::new(text);
    s.fields("|> filter($id > 2)");
    assert!(s.hover("stream thi$rd").contains("third"));
    assert_eq!(s.client.leave(), Some(0));
}

/// Behind an operator that doesn't exist a field is still followed; where nobody can tell, the new name is refused.
#[test]
fn renaming_behind_an_unknown_operator_misses_nothing() {
    let text = TEXT.replace("|> filter(price > 1)", "|> fliter(price > 1) |> filter(price > 2)");
    let mut s = Session::new(&text);
    let renamed = s.rename("    pri$ce:", "cost").expect("edits");
    assert_eq!(renamed.matches("price").count(), 1, "only the name outside is left: {renamed}");
    for wrong in ["|> derve(price: price * 2)", "|> filter(x.price > 1) |> drop(price) |> filter(price > 1)"] {
        let text = TEXT.replace("|> filter(price > 1)", wrong);
        let mut s = Session::new(&text);
        let error = s.rename("    pri$ce:", "cost").expect_err(wrong);
        assert!(error.contains("also stands in line 11"), "{wrong}: {error}");
    }
}
