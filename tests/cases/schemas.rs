//! Schemas from outside (D8, F10): what is found in files, the lock file, `check --connect`, `dfc schema`, drift at the start.

use crate::support::databases::{psql, server, sqlite};
use crate::support::{Output, binary, dfc, folder, read, run, write};

const ORDERS: &str = "id,code,price,Created At,note\n1,001,12.50,2026-01-31,\n2,002,3,2026-02-01,x\n";

const PIPELINE: &str = r#"job report {}
source orders = csv("data/orders.csv")
sink orders |> csv("out.csv")
"#;

fn project() -> tempfile::TempDir {
    folder(&[("orders.df", PIPELINE), ("data/orders.csv", ORDERS)])
}

/// The fields that `dfc schema` prints for a source over this file.
fn fields(connector: &str, file: &str, data: &str) -> String {
    let call = format!("job j {{}}\nsource s = {connector}\nsink s |> discard()\n");
    let dir = folder(&[("p.df", &call), (file, data)]);
    let output = dfc(dir.path(), &["schema", "p.df", "s"]);
    assert_eq!(output.code, 0, "{connector}: {}", output.stderr);
    output.stdout
}

#[test]
fn a_record_to_paste_is_printed_and_fits() {
    let dir = project();
    let output = dfc(dir.path(), &["schema", "orders.df", "orders"]);
    assert_eq!(
        output.stdout,
        "record Orders {\n    id: int64,\n    code: string,\n    price: decimal(18, 2),\n    `Created At`: date,\n    note: string?,\n}\n"
    );
    // Pasted, it means the same.
    let pasted = format!(
        "{}\n{}",
        output.stdout,
        PIPELINE.replace("csv(\"data/orders.csv\")", "csv(\"data/orders.csv\", schema: Orders)")
    );
    write(&dir.path().join("pasted.df"), &pasted);
    let [bare, pasted] = ["orders.df", "pasted.df"].map(|file| dfc(dir.path(), &["check", "-v", file]));
    assert_eq!((bare.code, pasted.code, bare.stdout), (0, 0, pasted.stdout));
    // A source that is declared can be asked all the same.
    assert_eq!(dfc(dir.path(), &["schema", "pasted.df", "orders"]).stdout, output.stdout);
}

#[test]
fn a_source_that_is_not_there_is_named_with_those_that_are() {
    let dir = project();
    let output = dfc(dir.path(), &["schema", "orders.df", "users"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("no source `users`") && output.stderr.contains("`orders`"), "{}", output.stderr);
    write(
        &dir.path().join("none.df"),
        "job j {}\nsource s = generate(rows: 1, schema: record { a: int64 })\nsink s |> discard()\n",
    );
    let output = dfc(dir.path(), &["schema", "none.df", "s"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
}

#[test]
fn types_of_text_are_found_with_care() {
    let record = fields(
        "csv(\"a.csv\")",
        "a.csv",
        "zip,big,huge,rate,flag,at,moment,time,zero,all_null,word\n\
         007,9223372036854775808,1,1e3,true,2026-01-31 10:00:00,2026-01-31T10:00:00Z,10:00:00,0000-00-00,,null\n\
         1,1,-9223372036854775809,2,FALSE,2026-02-01T10:00:00.5,2026-01-31T10:00:00+08:00,23:59:59,2026-01-31,,2\n",
    );
    let wanted = "record S {\n    zip: string,\n    big: uint64,\n    huge: decimal(38, 0),\n    rate: float64,\n    flag: bool,\n    at: datetime,\n    moment: timestamp,\n    time: time,\n    zero: string,\n    all_null: string?,\n    word: string,\n}\n";
    assert_eq!(record, wanted);
}

#[test]
fn arguments_decide_what_is_found() {
    let data = "# made by hand\na;b\n1;\"x\"\n2;NULL\n";
    let found = fields("csv(\"a.csv\", delimiter: \";\", comment: \"#\", nulls: \"NULL\")", "a.csv", data);
    assert_eq!(found, "record S {\n    a: int64,\n    b: string?,\n}\n");
    let found = fields("csv(\"a.csv\", header: false)", "a.csv", "1,x\n,y\n");
    assert_eq!(found, "record S {\n    column_1: int64?,\n    column_2: string,\n}\n");
    let found = fields("csv(\"a.csv\", date_format: \"%Y%m%d\")", "a.csv", "day,n\n20260131,20269999\n");
    assert_eq!(found, "record S {\n    day: date,\n    n: int64,\n}\n");
    let found = fields("csv(\"a.csv\", quote: \"\")", "a.csv", "a`b,\u{7},\"c\"\n1,2,3\n");
    let wanted =
        "record S {\n    column_1: int64 = \"a`b\",\n    column_2: int64 = \"\\u{7}\",\n    `\"c\"`: int64,\n}\n";
    assert_eq!(found, wanted);
}

#[test]
fn fields_of_json_lines() {
    let data = r#"{"id": 1, "price": 1.25, "ratio": 0.1234567890123456, "when": "2026-01-31T10:00:00", "zip": "001", "tags": ["a"], "who": {"name": "x", "age": 3}}
{"id": 2, "price": 3, "ratio": 1, "when": "2026-01-31T10:00:01", "zip": "2", "tags": [], "who": {"name": "y"}, "odd": [1, "x"], "mixed": {"a": 1}}

{"id": 3, "price": null, "ratio": 1e5, "when": "2026-01-31T10:00:01", "zip": "3", "tags": ["b"], "who": {"name": "z"}, "odd": null, "mixed": 4}
"#;
    assert_eq!(
        fields("jsonl(\"a.jsonl\")", "a.jsonl", data),
        "record S {\n    id: int64,\n    price: decimal(18, 2)?,\n    ratio: float64,\n    when: datetime,\n    zip: string,\n    \
         tags: list<string>,\n    who: record { name: string, age: int64? },\n    odd: list<string>?,\n    mixed: json?,\n}\n"
    );
}

#[test]
fn fields_of_parquet_are_those_of_the_footer() {
    let record = "record { id: int64, code: string?, price: decimal(18, 2), day: date, tags: list<string> }";
    let make =
        format!("job j {{}}\nsource s = jsonl(\"a.jsonl\", schema: {record})\nsink s |> parquet(\"a.parquet\")\n");
    let line = r#"{"id": 1, "code": null, "price": 1.5, "day": "2026-01-31", "tags": ["x"]}"#;
    let dir = folder(&[
        ("make.df", &make),
        ("a.jsonl", line),
        ("p.df", "job j {}\nsource s = parquet(\"a.parquet\")\nsink s |> csv(\"out.csv\")\n"),
    ]);
    assert_eq!(dfc(dir.path(), &["run", "make.df"]).code, 0);
    let output = dfc(dir.path(), &["schema", "p.df", "s"]);
    assert_eq!(
        output.stdout,
        "record S {\n    id: int64,\n    code: string?,\n    price: decimal(18, 2),\n    day: date,\n    tags: list<string>,\n}\n",
        "{}",
        output.stderr
    );
}

#[test]
fn a_late_file_of_a_pattern_is_looked_at_too() {
    let dir = folder(&[
        ("p.df", "job j {}\nsource s = csv(\"data/*.csv\")\nsink s |> csv(\"out.csv\")\n"),
        ("data/2026-01.csv", "id,n\n1,2\n"),
        ("data/2026-02.csv", "n,id\n1.5,x\n"),
    ]);
    let output = dfc(dir.path(), &["schema", "p.df", "s"]);
    assert_eq!(output.stdout, "record S {\n    id: string,\n    n: decimal(18, 1),\n}\n");
}

#[test]
fn the_sample_is_bounded() {
    let mut data = String::from("id,n\n");
    for id in 0..200_000 {
        data.push_str(&format!("{id},{id}\n"));
    }
    // Behind the first mebibyte: not looked at, and a row error by name where it is read.
    data.push_str("late,1\n");
    let dir =
        folder(&[("p.df", "job j {}\nsource s = csv(\"a.csv\")\nsink s |> csv(\"out.csv\")\n"), ("a.csv", &data)]);
    assert_eq!(dfc(dir.path(), &["schema", "p.df", "s"]).stdout, "record S {\n    id: int64,\n    n: int64,\n}\n");
    let output = dfc(dir.path(), &["run", "p.df"]);
    assert!(
        output.code == 1 && output.stderr.contains("`late`") && output.stderr.contains("line 200002"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_first_run_pins_the_fields_and_later_checks_need_no_data() {
    let dir = project();
    let first = dfc(dir.path(), &["check", "orders.df"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let lock = dir.path().join("orders.df.lock");
    assert!(!lock.exists(), "a check writes nothing");
    let run = dfc(dir.path(), &["run", "orders.df"]);
    assert!(run.code == 0 && run.stderr.contains("kept in `orders.df.lock`"), "{}", run.stderr);
    assert_eq!(read(&dir.path().join("out.csv")), ORDERS.replace(",3,", ",3.00,"));
    let text = read(&lock);
    assert!(
        text.contains("source orders = csv(path: \"data/orders.csv\", schema: record {\n    id: int64,\n"),
        "{text}"
    );
    // The same again changes nothing; without the data the check says the same.
    assert!(!dfc(dir.path(), &["run", "orders.df"]).stderr.contains("orders.df.lock"));
    let with_data = dfc(dir.path(), &["check", "-v", "orders.df"]);
    std::fs::remove_dir_all(dir.path().join("data")).expect("the data can be removed");
    assert_eq!(dfc(dir.path(), &["check", "-v", "orders.df"]), with_data);
    // From another folder it is the same lock file.
    let above = dir.path().parent().expect("a parent");
    let name = dir.path().file_name().and_then(|name| name.to_str()).expect("a plain name");
    let output = dfc(above, &["check", &format!("{name}/orders.df")]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(read(&lock), text);
}

#[test]
fn the_lock_file_is_of_the_source_not_of_its_name() {
    let dir = project();
    assert_eq!(dfc(dir.path(), &["run", "orders.df"]).code, 0);
    std::fs::remove_dir_all(dir.path().join("data")).expect("the data can be removed");
    let renamed = PIPELINE.replace("orders = ", "sales = ").replace("sink orders", "sink sales");
    write(&dir.path().join("orders.df"), &renamed);
    assert_eq!(dfc(dir.path(), &["check", "orders.df"]).code, 0);
    // With another delimiter it is another source.
    write(&dir.path().join("orders.df"), &PIPELINE.replace(".csv\")\nsink", ".csv\", delimiter: \";\")\nsink"));
    let output = dfc(dir.path(), &["check", "orders.df"]);
    assert!(output.code == 1 && output.stderr.contains("[E0703]"), "{}", output.stderr);
}

#[test]
fn a_path_over_parameters_has_one_entry_whatever_their_values() {
    let pipeline = "job j {}\nparam day: string\nsource s = csv(f\"data/{day}.csv\")\nsink s |> csv(\"out.csv\")\n";
    let dir = folder(&[("p.df", pipeline), ("data/1.csv", "id\n1\n"), ("data/2.csv", "id\n2\n")]);
    let output = dfc(dir.path(), &["check", "p.df"]);
    assert!(output.stderr.contains("depends on a parameter without a value"), "{}", output.stderr);
    assert_eq!(dfc(dir.path(), &["run", "p.df", "--set", "day=1"]).code, 0);
    let text = read(&dir.path().join("p.df.lock"));
    assert!(text.contains("source s = csv(path: f\"data/{day}.csv\", schema:"), "{text}");
    assert_eq!(dfc(dir.path(), &["run", "p.df", "--set", "day=2"]).code, 0);
    assert_eq!(read(&dir.path().join("p.df.lock")), text);
    // What is known needs no value for a check.
    assert_eq!(dfc(dir.path(), &["check", "p.df"]).code, 0);
}

#[test]
fn connecting_names_what_has_changed_and_renews_the_lock() {
    let dir = project();
    let data = dir.path().join("data/orders.csv");
    let connect = || dfc(dir.path(), &["check", "--connect", "orders.df"]);
    let first = connect();
    assert!(first.code == 0 && first.stderr.contains("wrote `orders.df.lock`"), "{}", first.stderr);
    let lock = read(&dir.path().join("orders.df.lock"));
    let second = connect();
    assert!(second.code == 0 && !second.stderr.contains("lock"), "{}", second.stderr);
    // A column that has come, and another order: the pipeline means the same.
    write(&data, "code,id,price,Created At,note,extra\n001,1,12.50,2026-01-31,,7\n");
    let harmless = connect();
    assert_eq!(harmless.code, 0, "{}", harmless.stderr);
    for words in ["`extra` (int64) has come", "another order", "renewed"] {
        assert!(harmless.stderr.contains(words), "{words}: {}", harmless.stderr);
    }
    // Gone, and of another type: a drift.
    write(&data, "code,id,price,note\n001,x,12.50,y\n");
    let drift = connect();
    assert_eq!(drift.code, 1, "{}", drift.stderr);
    for words in ["`Created At` is gone", "`id` was int64 and is string now", "`note` was string? and is string now"] {
        assert!(drift.stderr.contains(words), "{words}: {}", drift.stderr);
    }
    assert!(
        drift.stderr.ends_with("orders.df: its sources have changed, or can't be asked: see above\n"),
        "{}",
        drift.stderr
    );
    assert!(!drift.stderr.contains("no errors"), "{}", drift.stderr);
    // It was taken in: now all is as it was.
    let taken = connect();
    assert!(taken.code == 0 && taken.stderr.ends_with("orders.df: no errors\n"), "{}", taken.stderr);
    // A source that can't be asked keeps its fields.
    let before = read(&dir.path().join("orders.df.lock"));
    assert_ne!(before, lock);
    std::fs::remove_file(&data).expect("the data can be removed");
    let gone = connect();
    assert!(gone.code == 1 && gone.stderr.contains("can't be asked"), "{}", gone.stderr);
    assert_eq!(read(&dir.path().join("orders.df.lock")), before);
    // Without a source that needs it, there is no lock file.
    write(&data, ORDERS);
    let declared = PIPELINE.replace(".csv\")\nsink", ".csv\", schema: record { id: int64 })\nsink");
    write(&dir.path().join("orders.df"), &declared);
    assert_eq!(connect().code, 0);
    assert!(!dir.path().join("orders.df.lock").exists());
}

#[test]
fn connecting_compares_declared_fields_too() {
    let dir = project();
    let declared = PIPELINE.replace(".csv\")\nsink", ".csv\", schema: record { id: int64, gone: string? })\nsink");
    write(&dir.path().join("orders.df"), &declared);
    assert_eq!(dfc(dir.path(), &["check", "orders.df"]).code, 0, "what is declared needs no look at the file");
    let output = dfc(dir.path(), &["check", "--connect", "orders.df"]);
    assert!(output.code == 1 && output.stderr.contains("no column `gone`"), "{}", output.stderr);
}

/// What a run says of a file that has changed since the fields were pinned.
fn run_after(changed: &str, args: &[&str]) -> (i32, String, bool) {
    let dir = project();
    assert_eq!(dfc(dir.path(), &["run", "orders.df"]).code, 0);
    std::fs::remove_file(dir.path().join("out.csv")).expect("the result can be removed");
    write(&dir.path().join("data/orders.csv"), changed);
    let output = dfc(dir.path(), &[&["run", "orders.df"], args].concat());
    (output.code, output.stderr, dir.path().join("out.csv").exists())
}

#[test]
fn drift_at_the_start() {
    // A column gone: refused by name before a row is read.
    let (code, text, written) = run_after("id,code,price,note\nx,001,1,y\n", &[]);
    assert!(code == 1 && !written && text.contains("R0210") && text.contains("no column `Created At`"), "{text}");
    assert!(text.contains("`dfc check --connect orders.df`"), "{text}");
    // A column that has come: left out, and said where it is asked for.
    let more = "id,code,price,Created At,note,extra\n1,001,1,2026-01-31,,7\n";
    let (code, text, written) = run_after(more, &["-v"]);
    assert!(code == 0 && written && text.contains("orders: the column `extra` is not in the schema"), "{text}");
    let (_, text, _) = run_after(more, &["--log-format", "json"]);
    assert!(text.contains("\"event\":\"column_left_out\"") && text.contains("\"column\":\"extra\""), "{text}");
    let (_, text, _) = run_after(more, &[]);
    assert!(!text.contains("extra"), "{text}");
    // Another order: matched by name.
    let (code, text, written) = run_after("note,Created At,price,code,id\n,2026-01-31,1,001,1\n", &["-v"]);
    assert!(code == 0 && written && !text.contains("schema"), "{text}");
    // Another type in text is a row error with its field and its line.
    let (code, text, written) = run_after(&ORDERS.replace("\n2,", "\nx2,"), &[]);
    assert!(code == 1 && !written && text.contains("field `id`") && text.contains("line 3"), "{text}");
}

#[test]
fn the_type_of_a_parquet_column_changes() {
    let make = |ty: &str| {
        format!(
            "job j {{}}\nsource s = generate(rows: 3, schema: record {{ id: {ty} }})\nsink s |> parquet(\"a.parquet\")\n"
        )
    };
    let read_it = "job j {}\nsource s = parquet(\"a.parquet\")\nsink s |> csv(\"out.csv\")\n";
    let dir = folder(&[("make.df", &make("int64")), ("p.df", read_it)]);
    assert_eq!(dfc(dir.path(), &["run", "make.df"]).code, 0);
    assert_eq!(dfc(dir.path(), &["run", "p.df"]).code, 0);
    write(&dir.path().join("make.df"), &make("string"));
    assert_eq!(dfc(dir.path(), &["run", "make.df"]).code, 0);
    let output = dfc(dir.path(), &["run", "p.df"]);
    assert!(output.code == 1 && output.stderr.contains("R0213") && output.stderr.contains("`id`"), "{}", output.stderr);
    assert!(output.stderr.contains("string") && output.stderr.contains("int64"), "{}", output.stderr);
}

#[test]
fn a_hostile_lock_file_is_an_error_by_name() {
    let long = format!("source orders = csv(path: \"{}\", schema: record {{ id: int64 }})\n", "x".repeat(17 << 20));
    let deep = format!("source o = csv(path: {}1, schema: record {{ id: int64 }})\n", "(".repeat(100_000));
    for text in ["\0\0\0", "}}}}", "source", "use \"/etc/passwd\"\n", long.as_str(), deep.as_str()] {
        let dir = project();
        write(&dir.path().join("orders.df.lock"), text);
        for command in [&["check", "orders.df"][..], &["run", "orders.df"], &["check", "--connect", "orders.df"]] {
            let output = dfc(dir.path(), command);
            let shown: String = text.chars().take(40).collect();
            assert!(output.code == 1 && output.stderr.contains("[E0704]"), "{shown:?}: {}", output.stderr);
            assert_eq!(read(&dir.path().join("orders.df.lock")), text, "what can't be used stays as it is");
        }
    }
    // No text at all, and a folder.
    let dir = project();
    std::fs::write(dir.path().join("orders.df.lock"), b"\xFF\xFE").expect("written");
    assert!(dfc(dir.path(), &["check", "orders.df"]).stderr.contains("[E0704]"));
    std::fs::remove_file(dir.path().join("orders.df.lock")).expect("removed");
    std::fs::create_dir(dir.path().join("orders.df.lock")).expect("made");
    assert!(dfc(dir.path(), &["check", "orders.df"]).stderr.contains("it is a folder"));
}

#[test]
fn a_lock_file_that_was_deleted_is_written_anew() {
    let dir = project();
    let lock = dir.path().join("orders.df.lock");
    assert_eq!(dfc(dir.path(), &["run", "orders.df"]).code, 0);
    let text = read(&lock);
    std::fs::remove_file(&lock).expect("removed");
    assert_eq!(dfc(dir.path(), &["run", "orders.df", "--limit-rows", "1"]).code, 0);
    assert_eq!(read(&lock), text);
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 5, "the checkpoints' folder, and nothing else, is left: {left:?}");
}

#[test]
fn sources_of_a_library_and_inline_ones_are_pinned_too() {
    let dir = folder(&[
        (
            "jobs/p.df",
            "job j {}\nuse \"../lib/sources.df\"\nstream a = orders |> lookup(csv(\"users.csv\"), on: user == right.id)\nsink a |> csv(\"out.csv\")\n",
        ),
        ("lib/sources.df", "source orders = csv(\"orders.csv\")\n"),
        ("lib/orders.csv", "n,user\n1,7\n"),
        ("jobs/users.csv", "id,name\n7,x\n"),
    ]);
    let output = dfc(dir.path(), &["run", "jobs/p.df"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let text = read(&dir.path().join("jobs/p.df.lock"));
    assert!(text.contains("source orders = csv(path: \"../lib/orders.csv\""), "{text}");
    assert!(text.contains("source csv = csv(path: \"users.csv\""), "{text}");
    assert_eq!(read(&dir.path().join("jobs/out.csv")), "n,user,name\n1,7,x\n");
}

/// A database with a table `t`, and what changes it.
struct Outside<'a> {
    /// The source's call, without its schema.
    call: &'a str,
    /// Runs a statement.
    sql: &'a dyn Fn(&str),
    /// What a column of numbers is called there, and what it is read as.
    number: (&'a str, &'a str),
    /// An environment for `dfc`.
    url: &'a str,
}

/// A3, D8, F10: the record to paste, the lock file, `check --connect`, and drift at the start of a run.
fn follows_a_database(outside: &Outside) {
    let Outside { call, sql, number: (declared, read_as), url } = outside;
    let text = format!("job report {{}}\nsource s = {call}\nsink s |> csv(\"out.csv\")\n");
    let dir = folder(&[("p.df", &text)]);
    let call_dfc = |args: &[&str]| -> Output { run(binary().current_dir(dir.path()).env("PG_URL", url).args(args)) };
    let fails = |output: &Output, words: &[&str]| {
        assert_eq!(output.code, 1, "{}", output.stderr);
        for words in words {
            assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
        }
    };
    sql(&format!("CREATE TABLE t (id {declared} PRIMARY KEY, name TEXT NOT NULL, note TEXT)"));
    sql("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', 'x')");
    let record = call_dfc(&["schema", "p.df", "s"]);
    assert_eq!(
        record.stdout,
        format!("record S {{\n    id: {read_as},\n    name: string,\n    note: string?,\n}}\n"),
        "{}",
        record.stderr
    );
    let lock = dir.path().join("p.df.lock");
    let connect = || call_dfc(&["check", "--connect", "p.df"]);
    let first = connect();
    assert!(first.code == 0 && first.stderr.contains("wrote `p.df.lock`"), "{}", first.stderr);
    assert!(read(&lock).contains("name: string,\n"), "{}", read(&lock));
    let output = call_dfc(&["run", "p.df"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(read(&dir.path().join("out.csv")), "id,name,note\n1,a,\n2,b,x\n");
    // A column that has come is left out of a run, and taken in by a look at the table.
    sql("ALTER TABLE t ADD COLUMN more TEXT");
    let output = call_dfc(&["run", "p.df", "--fresh"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(read(&dir.path().join("out.csv")), "id,name,note\n1,a,\n2,b,x\n");
    let more = connect();
    assert!(more.code == 0 && more.stderr.contains("`more` (string?) has come"), "{}", more.stderr);
    // One that is gone stops a run before a row is read.
    std::fs::remove_file(dir.path().join("out.csv")).expect("the result can be removed");
    sql("ALTER TABLE t RENAME COLUMN name TO label");
    fails(&call_dfc(&["run", "p.df", "--fresh"]), &["[R0232]", "no column `name`", "`label`"]);
    assert!(!dir.path().join("out.csv").exists());
    let gone = connect();
    fails(&gone, &["`name` is gone", "`label` (string) has come", "renewed"]);
    assert!(gone.stderr.ends_with("p.df: its sources have changed, or can't be asked: see above\n"), "{}", gone.stderr);
    assert_eq!(connect().code, 0);
    assert_eq!(call_dfc(&["run", "p.df", "--fresh"]).code, 0);
    // A column of another type, whose values may still be numbers: the first that is none stops the run.
    sql("DROP TABLE t");
    sql("CREATE TABLE t (id TEXT PRIMARY KEY NOT NULL, label TEXT NOT NULL, note TEXT, more TEXT)");
    sql("INSERT INTO t VALUES ('x1', 'a', NULL, NULL)");
    let output = call_dfc(&["run", "p.df", "--fresh"]);
    fails(&output, &["field `id`", "x1"]);
    fails(&connect(), &[&format!("`id` was {read_as} and is string now")]);
    // The table itself.
    sql("DROP TABLE t");
    fails(&call_dfc(&["run", "p.df", "--fresh"]), &["[R0231]", "no table `t`"]);
    let before = read(&lock);
    fails(&connect(), &["can't be asked", "no table `t`"]);
    assert_eq!(read(&lock), before);
}

#[test]
fn fields_of_a_sqlite_table_are_pinned_and_compared() {
    let outside = folder(&[]);
    let file = outside.path().join("t.db");
    let call = format!("sqlite({:?}, table: \"t\")", file.to_str().expect("a plain path"));
    follows_a_database(&Outside {
        call: &call,
        sql: &|statement| drop(sqlite(outside.path(), "t.db", statement)),
        number: ("INTEGER", "int64"),
        url: "",
    });
}

#[test]
fn fields_of_a_postgres_table_are_pinned_and_compared() {
    let Some(server) = server() else { return };
    let name = format!("schemas_{}", std::process::id());
    psql(&server, &format!("CREATE DATABASE {name}"));
    let url = format!("{}/{name}", server.rsplit_once('/').expect("a URL").0);
    follows_a_database(&Outside {
        call: "postgres(secret(\"PG_URL\"), table: \"t\")",
        sql: &|statement| drop(psql(&url, statement)),
        number: ("bigint", "int64"),
        url: &url,
    });
    psql(&server, &format!("DROP DATABASE {name} WITH (FORCE)"));
}
