//! Tests against real files.

use dfc_ir::plan::{OptionValue, SinkSpec, SourceSpec};
use dfc_ir::{Schema, Value};
use rusqlite::Connection;

use crate::database::testing::*;
use crate::testing::*;
use crate::{ConnectError, Ledger, OpenContext, SinkResume, open_source};

fn names(names: &[&str]) -> OptionValue {
    OptionValue::Names(names.iter().map(|n| n.to_string()).collect())
}

fn pairs<'a>(path: &str, more: &[(&'a str, OptionValue)]) -> Vec<(&'a str, OptionValue)> {
    std::iter::once(("path", text(path))).chain(more.iter().cloned()).collect()
}

fn source(path: &str, more: &[(&str, OptionValue)], fields: &str) -> SourceSpec {
    source_spec("sqlite", &pairs(path, more), &schema(fields))
}

fn target(path: &str, more: &[(&str, OptionValue)]) -> SinkSpec {
    SinkSpec { connector: "sqlite".into(), options: options(&pairs(path, more)) }
}

/// All rows in the order of the first column.
fn content(path: &str, table: &str) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\" ORDER BY 1")).unwrap();
    let width = statement.column_count();
    let row = |row: &rusqlite::Row| {
        let cells = (0..width).map(|i| match row.get::<_, rusqlite::types::Value>(i) {
            Ok(rusqlite::types::Value::Text(text)) => Ok(text),
            Ok(rusqlite::types::Value::Integer(n)) => Ok(n.to_string()),
            Ok(other) => Ok(format!("{other:?}")),
            Err(error) => Err(error),
        });
        Ok(cells.collect::<rusqlite::Result<Vec<_>>>()?.join("|"))
    };
    let mut rows = statement.query_map([], row).unwrap().collect::<rusqlite::Result<Vec<String>>>().unwrap();
    rows.sort();
    rows
}

fn run(path: &str, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

/// D8: every type, written to a table that the sink makes, comes back.
#[test]
fn every_type_comes_back() {
    let folder = Folder::new();
    let fields = "a: int8; b: string?; c: decimal(4,2); d: date; e: timestamp; f: float32; g: int64?; h: bool; i: bytes; j: json; k: time; l: duration; m: datetime; n: decimal(30,5)";
    let all = schema(fields);
    let made = read("generate", &[("rows", int(3000))], &all).unwrap();
    let path = folder.name("all.db");
    let (summary, errors) = write(
        "sqlite",
        &pairs(&path, &[("table", text("all")), ("create", name("if_missing"))]),
        &all,
        made.batches.clone(),
    )
    .unwrap();
    assert_eq!((summary.rows, errors.len()), (3000, 0));
    let back = read("sqlite", &pairs(&path, &[("table", text("all"))]), &all).unwrap();
    assert_eq!(back.errors, []);
    assert_eq!(back.rows, made.rows);
    // And the catalogue tells the types, where SQLite has a word for them.
    let found = crate::find_schema("sqlite", &options(&pairs(&path, &[("table", text("all"))]))).unwrap();
    let types: Vec<String> = found.fields.iter().map(|f| format!("{}: {}", f.name, f.ty)).collect();
    assert_eq!(
        types.join("; "),
        "a: int64; b: string?; c: decimal(4, 2); d: date; e: timestamp; f: float64; g: int64?; h: bool; i: bytes; j: json; k: time; l: string; m: datetime; n: string"
    );
}

/// A table of skewed, null and text keys.
fn table(path: &str, rows: i64) {
    run(
        path,
        &format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, at TEXT NOT NULL, n INTEGER);
             CREATE INDEX by_name ON t (name); CREATE INDEX by_at ON t (at, id); CREATE INDEX by_n ON t (n);
             WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < {rows})
             INSERT INTO t SELECT i * i, CASE WHEN i % 7 = 0 THEN NULL WHEN i % 3 = 0 THEN 'same' ELSE 'k' || (i * 7919 % 100003) END,
                 '2026-01-' || printf('%02d', 1 + i % 28), CASE WHEN i % 11 = 0 THEN NULL ELSE i / 1000 END FROM k"
        ),
    );
}

const T: &str = "id: int64; name: string?; at: string; n: int64?";

/// F4, F5: for skewed, null and text keys every row comes once, from however many readers, broken off wherever.
#[test]
fn every_row_comes_once_from_every_kind_of_split() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    table(&path, 50_000);
    let all =
        read("sqlite", &pairs(&path, &[("query", text("SELECT * FROM t"))]), &schema(T)).unwrap().texts(&schema(T));
    assert_eq!(all.len(), 50_000);
    let by = |more: &[(&str, OptionValue)]| source(&path, &[&[("table", text("t"))], more].concat(), T);
    for (seed, spec) in [
        by(&[]),
        by(&[("split_by", names(&["name"]))]),
        by(&[("split_by", names(&["n"]))]),
        by(&[("increment", names(&["at"]))]),
        by(&[("increment", names(&["n"])), ("nulls", name("first")), ("tiebreak", names(&["id"]))]),
        source(&path, &[("query", text("SELECT * FROM t;")), ("tiebreak", names(&["id"]))], T),
    ]
    .iter()
    .enumerate()
    {
        let splits = open_source(spec, &OpenContext { tasks: 3, ..context() }).unwrap().max_tasks();
        let keyed = spec.options.contains_key("split_by") || spec.options.contains_key("increment");
        assert!(splits > 1 || !keyed || seed == 5, "{:?} has {splits} splits", spec.options);
        for part in 0..3 {
            same_rows(read_in_parts(spec, seed as u64 * 10 + part), all.clone());
        }
    }
    let skipped = by(&[("increment", names(&["n"])), ("nulls", name("skip"))]);
    assert_eq!(read_in_parts(&skipped, 1).len(), 50_000 - 50_000 / 11);
}

fn open_error(spec: &SourceSpec) -> ConnectError {
    open_source(spec, &context()).err().expect("an error")
}

/// F5, F10: no key, no index, nulls, ties, an order that has changed.
#[test]
fn what_can_not_be_read_in_order_is_refused_by_name() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    table(&path, 100);
    run(&path, "CREATE TABLE loose (a INTEGER, b INTEGER); INSERT INTO loose VALUES (1, 2), (1, 3)");
    run(&path, "CREATE TABLE texts (a VARCHAR(9) PRIMARY KEY NOT NULL); INSERT INTO texts VALUES ('9'), ('10')");
    run(&path, "CREATE TABLE holes (a INTEGER, b TEXT PRIMARY KEY); INSERT INTO holes VALUES (1, 'x'), (NULL, 'y')");
    let asked = |sql: &str, tie: &str, fields: &str| {
        source(&path, &[("query", text(sql)), ("tiebreak", names(&[tie]))], fields)
    };
    let by = |table: &str, more: &[(&str, OptionValue)], fields: &str| {
        source(&path, &[&[("table", text(table))], more].concat(), fields)
    };
    let n = names(&["n"]);
    for (spec, code, what) in [
        (by("t", &[("increment", n.clone())], T), "R0233", "`n` of the table `t`"),
        (by("loose", &[("increment", names(&["a"]))], "a: int64; b: int64"), "R0233", "no key that tells"),
        (by("nix", &[], T), "R0231", "has no table `nix`"),
        (
            by("texts", &[("increment", names(&["a"]))], "a: int64"),
            "R0233",
            "declared VARCHAR(9), so SQLite compares its numbers as texts",
        ),
        (asked("SELECT * FROM holes", "a", "a: int64?"), "R0233", "is null in some rows, so it can't break ties"),
        (by("t", &[], "id: int64; other: int64"), "R0232", "has no column `other`"),
        (by("t", &[("poll", OptionValue::Value(Value::Duration(1)))], T), "R0202", "needs `increment`"),
        (by("t\0", &[], T), "R0231", "NUL"),
        (source(&path, &[("query", text("SELEC 1"))], "a: int64"), "R0231", "syntax error"),
        (source(&path, &[("query", text("DELETE FROM t"))], "a: int64"), "R0231", "syntax error"),
        (source(&folder.name("nix.db"), &[("table", text("t"))], T), "R0203", "no such file"),
        (
            source(
                &folder.file("text.db", "no database, but long enough to look".repeat(9)),
                &[("table", text("t"))],
                T,
            ),
            "R0231",
            "no SQLite file",
        ),
    ] {
        let error = open_error(&spec);
        assert!(error.code == code && error.message.contains(what), "{error:?}, not {what}");
    }
    // Without a key: one read, all or nothing.
    let loose = open_source(&by("loose", &[], "a: int64; b: int64"), &context()).unwrap();
    assert_eq!((loose.max_tasks(), loose.resumable().is_err()), (1, true));
    let holes = open_source(&by("holes", &[], "a: int64?; b: string"), &context()).unwrap();
    assert!(holes.resumable().is_err(), "a key that may hold nulls is none");
    assert!(open_source(&by("texts", &[], "a: int64"), &context()).is_ok());
    // The same increment twice is no trouble with a tie-breaker that has no index, if the user says so.
    let told = by(
        "loose",
        &[("increment", names(&["a"])), ("tiebreak", names(&["b"])), ("allow_unindexed", flag(true))],
        "a: int64; b: int64",
    );
    assert_eq!(open_error(&told).code, "R0233");
    let query = source(
        &path,
        &[("query", text("SELECT * FROM loose")), ("increment", names(&["a"])), ("tiebreak", names(&["b"]))],
        "a: int64; b: int64",
    );
    assert_eq!(read_in_parts(&query, 3).len(), 2);
    // Another order than that of the checkpoint.
    let source = open_source(&by("t", &[], T), &context()).unwrap();
    let (_, at) = read_to(&*source, &schema(T), 1, Some(0)).unwrap();
    let cx = OpenContext { positions: at, ..context() };
    let error = open_source(&by("t", &[("increment", names(&["at"]))], T), &cx).err().unwrap();
    assert!(error.message.contains("was read in the order of `id`, and would now be in that of `at`, `id`"), "{error}");
}

/// A1, F5: a later run takes what is new, ties included.
#[test]
fn a_later_run_takes_what_is_new() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    run(
        &path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT NOT NULL); CREATE INDEX by_at ON t (at);
        INSERT INTO t VALUES (1, 'a'), (2, 'b'), (4, 'b')",
    );
    let spec = source(&path, &[("table", text("t")), ("increment", names(&["at"]))], "id: int64; at: string");
    let (rows, at) = read_on(&spec, None);
    assert_eq!(rows, ["1|a", "2|b", "4|b"]);
    let (rows, at) = read_on(&spec, at);
    assert!(rows.is_empty(), "{rows:?}");
    // 3 has the same increment as the last row and a smaller tie-breaker.
    run(&path, "INSERT INTO t VALUES (5, 'b'), (6, 'c'), (3, 'b')");
    let (rows, at) = read_on(&spec, at);
    assert_eq!(rows, ["3|b", "5|b", "6|c"]);
    assert_eq!(at.as_ref().unwrap().splits[0].position["after"], serde_json::json!({"at": "c", "id": 6}));
    assert_eq!(read_on(&spec, at.clone()).0, [""; 0]);
    // Rows that have been read and were removed since do no harm.
    run(&path, "DELETE FROM t WHERE at = 'c'; INSERT INTO t VALUES (-1, 'c')");
    assert_eq!(read_on(&spec, at).0, ["-1|c"]);
}

/// F4, F5: a read that is broken off among many rows of one increment goes on exactly, whatever came late among them.
#[test]
fn late_ties_in_the_middle_are_read_once() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    run(
        &path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at INTEGER NOT NULL); CREATE INDEX by_at ON t (at);
        WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49999) INSERT INTO t SELECT i * 2, i / 30000 FROM n",
    );
    let spec = source(&path, &[("table", text("t")), ("increment", names(&["at"]))], "id: int64; at: int64");
    let mut all = read_in_parts(&spec, 5);
    assert_eq!(all.len(), 50_000);
    let (rows, at) = read_on(&spec, None);
    same_rows(rows, all.clone());
    // Among the last ones that are remembered, and after the end.
    run(&path, "INSERT INTO t VALUES (99991, 1), (90001, 1), (100001, 1), (100003, 2)");
    let (rows, at) = read_on(&spec, at);
    assert_eq!(rows, ["90001|1", "99991|1", "100001|1", "100003|2"]);
    assert_eq!(read_on(&spec, at).0, [""; 0]);
    all.extend(rows);
    same_rows(read_in_parts(&spec, 6), all);
}

/// F5: rows that appear late with a smaller value are waited for.
#[test]
fn a_source_that_follows_finds_new_rows_and_late_ones() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    run(&path, "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); INSERT INTO t VALUES (1, 'a'), (5, 'e')");
    let time = |millis: i64| OptionValue::Value(Value::Duration(millis * 1000));
    let more = [("table", text("t")), ("increment", names(&["id"])), ("poll", time(20)), ("lag", time(300))];
    let spec = source(&path, &more, "id: int64; x: string");
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            run(&path, "INSERT INTO t VALUES (3, 'late')");
            std::thread::sleep(std::time::Duration::from_millis(700));
            run(&path, "INSERT INTO t VALUES (9, 'new')");
        })
    };
    let source = open_source(&spec, &context()).unwrap();
    let mut reader = source.reader(0).unwrap();
    let mut rows = Vec::new();
    while rows.len() < 4 {
        match reader.next(&mut Vec::new()).unwrap() {
            crate::Next::Batch(batch) => rows.extend(texts(&batch, &spec.schema)),
            crate::Next::Wait(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
            _ => panic!("a source that follows doesn't end"),
        }
    }
    writer.join().unwrap();
    assert_eq!(rows, ["1|a", "3|late", "5|e", "9|new"]);
    // A barrier is answered while it waits.
    source.mark(4);
    assert!(matches!(reader.next(&mut Vec::new()).unwrap(), crate::Next::Barrier(4)));
    assert_eq!(source.positions(4).unwrap().splits[0].position["after"], serde_json::json!({"id": 9}));
}

/// What a source that follows says when it stops; rows that it gives before are taken.
fn failure_of(source: &dyn crate::Source, fields: &Schema) -> (Vec<String>, ConnectError) {
    let mut reader = source.reader(0).unwrap();
    let (mut rows, start) = (Vec::new(), std::time::Instant::now());
    loop {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "it goes on with {rows:?}");
        match reader.next(&mut Vec::new()) {
            Ok(crate::Next::Batch(batch)) => rows.extend(texts(&batch, fields)),
            Ok(crate::Next::Wait(_)) => std::thread::sleep(std::time::Duration::from_millis(5)),
            Ok(_) => panic!("a source that follows doesn't end"),
            Err(error) => return (rows, error),
        }
    }
}

/// A3, D8: a table that is changed while it is followed is refused by the column's name, before a row of it is given; what has only come
/// is left out. SQLite takes a name in double quotes that it doesn't know for a text.
#[test]
fn a_table_that_changes_while_it_is_followed_is_refused_by_name() {
    let folder = Folder::new();
    let rebuilt = "CREATE TABLE u (id INTEGER PRIMARY KEY, name BLOB, at INTEGER NOT NULL); INSERT INTO u SELECT id, name, at FROM t;
        DROP TABLE t; ALTER TABLE u RENAME TO t; CREATE INDEX by_at ON t (at)";
    for (number, change, what) in [
        (0, "ALTER TABLE t RENAME COLUMN name TO label", "has no column `name` any more"),
        (1, "ALTER TABLE t RENAME COLUMN at TO since", "has no column `at` any more"),
        (2, "ALTER TABLE t DROP COLUMN name", "has no column `name` any more"),
        (3, rebuilt, "the column `name` of the table `t`"),
        (4, "ALTER TABLE t RENAME TO gone", "has no table `t`"),
    ] {
        let path = folder.name(&format!("{number}.db"));
        run(
            &path,
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, at INTEGER NOT NULL); CREATE INDEX by_at ON t (at);
            INSERT INTO t VALUES (1, 'a', 1)",
        );
        let poll = OptionValue::Value(Value::Duration(10_000));
        let more = [("table", text("t")), ("increment", names(&["at"])), ("poll", poll)];
        let spec = source(&path, &more, "id: int64; name: string?");
        let source = open_source(&spec, &context()).unwrap();
        let rows = read_rows(&*source, &spec.schema, 1);
        assert_eq!(rows, ["1|a"], "{change}");
        // A column that has come concerns nobody.
        run(&path, "ALTER TABLE t ADD COLUMN more TEXT; INSERT INTO t (id, name, at) VALUES (2, 'b', 2)");
        assert_eq!(read_rows(&*source, &spec.schema, 1), ["2|b"], "{change}");
        // The change and the row after it are one.
        let values = if number == 4 { "" } else { "; INSERT INTO t (id, AT) VALUES (3, 3)" };
        let values = values.replace("AT", if number == 1 { "since" } else { "at" });
        run(&path, &format!("BEGIN; {change}{values}; COMMIT"));
        let (rows, error) = failure_of(&*source, &spec.schema);
        assert_eq!(rows, [""; 0], "{change}");
        assert!(error.message.contains(what), "{change}: {error:?}");
        assert_eq!(error.code, if number == 4 { "R0231" } else { "R0232" }, "{change}");
    }
}

/// So many rows of a source that follows.
fn read_rows(source: &dyn crate::Source, fields: &Schema, count: usize) -> Vec<String> {
    let mut reader = source.reader(0).unwrap();
    let (mut rows, start) = (Vec::new(), std::time::Instant::now());
    while rows.len() < count {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "no more than {rows:?}");
        match reader.next(&mut Vec::new()).unwrap() {
            crate::Next::Batch(batch) => rows.extend(texts(&batch, fields)),
            crate::Next::Wait(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
            _ => panic!("a source that follows doesn't end"),
        }
    }
    rows
}

/// A text in double quotes is a name that isn't there, as in SQLite's own shell.
#[test]
fn a_text_in_double_quotes_is_refused() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    run(&path, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'a')");
    let by = |query: &str| source(&path, &[("query", text(query)), ("tiebreak", names(&["id"]))], "id: int64");
    let error = open_error(&by("SELECT * FROM t WHERE name = \"a\""));
    assert!(error.code == "R0231" && error.message.contains("single-quotes"), "{error:?}");
    assert_eq!(read_on(&by("SELECT * FROM t WHERE \"name\" = 'a'"), None).0, ["1"]);
}

/// Names are data: quotes, keywords and statements in them do nothing.
#[test]
fn hostile_names_are_names() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    let evil = "\"; DROP TABLE t; --";
    run(&path, "CREATE TABLE t (a)");
    let fields = Schema {
        fields: vec![dfc_ir::Field { external: Some("select\"' --".into()), ..dfc_ir::Field::new("a", ty("int64")) }],
    };
    let made = batch(&fields, &[vec![Value::Int(7)]]);
    let more = [("table", text(evil)), ("create", name("if_missing"))];
    assert_eq!(write("sqlite", &pairs(&path, &more), &fields, vec![made]).unwrap().0.rows, 1);
    assert_eq!(content(&path, &evil.replace('"', "\"\"")), ["7"]);
    assert_eq!(read("sqlite", &pairs(&path, &more[..1]), &fields).unwrap().texts(&fields), ["7"]);
    assert!(content(&path, "t").is_empty());
}

fn rows_of(fields: &Schema, rows: &[(i64, &str)]) -> dfc_batch::Batch {
    let rows: Vec<Vec<Value>> =
        rows.iter().map(|(id, name)| vec![Value::Int((*id).into()), Value::str(name)]).collect();
    batch(fields, &rows)
}

/// D12, D13: an epoch becomes visible once, however often it is applied, and in another process too.
#[test]
fn epochs_are_applied_once() {
    let folder = Folder::new();
    let (path, spool) = (folder.name("t.db"), folder.path("spool"));
    run(&path, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL)");
    let fields = schema("id: int64; name: string");
    let spec = target(&path, &[("table", text("t"))]);
    let first = sink(&spec, &fields, &epochs(&spool, None)).unwrap();
    assert_eq!(first.ledger(), Ok(Ledger::Applied(0)));
    let one = seal(&*first, rows_of(&fields, &[(1, "a"), (2, "b")]), 1);
    let two = seal(&*first, rows_of(&fields, &[(3, "c")]), 2);
    assert!(content(&path, "t").is_empty(), "nothing is visible before it is applied");
    first.apply(&one).unwrap();
    first.apply(&one).unwrap();
    assert_eq!(content(&path, "t"), ["1|a", "2|b"]);
    // Rows that no checkpoint has are residue.
    put(&*first, vec![rows_of(&fields, &[(99, "lost")])]).unwrap();
    assert!(first.open_bytes() > 0);
    drop(first);
    let resume = SinkResume { number: 2, sealed: vec![one.clone(), two.clone()] };
    let second = sink(&spec, &fields, &epochs(&spool, Some(resume.clone()))).unwrap();
    // The first epoch's file goes when the next one is in the table, the residue went now.
    let spooled = || std::fs::read_dir(&spool).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(spooled().len(), 2, "{:?}", spooled());
    assert_eq!(second.ledger(), Ok(Ledger::Applied(1)));
    for sealed in [&one, &two] {
        second.apply(sealed).unwrap();
    }
    let empty = seal(&*second, rows_of(&fields, &[]), 5);
    second.apply(&empty).unwrap();
    assert_eq!(second.finish().unwrap().rows, 3);
    assert_eq!(second.finish().unwrap().rows, 3);
    assert_eq!(content(&path, "t"), ["1|a", "2|b", "3|c"]);
    assert_eq!(second.ledger(), Ok(Ledger::Applied(5)));
    // A process that was stopped, and wakes up, finds that it is over.
    let zombie = sink(&spec, &fields, &epochs(&spool, Some(resume))).unwrap();
    zombie.apply(&two).unwrap();
    assert_eq!(content(&path, "t").len(), 3);
}

/// Two processes with the same lineage: compare and set lets one through.
#[test]
fn two_writers_of_one_lineage_do_not_mix() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    run(&path, "CREATE TABLE t (id INTEGER, name TEXT)");
    let fields = schema("id: int64; name: string");
    let spec = target(&path, &[("table", text("t"))]);
    let a = sink(&spec, &fields, &epochs(&folder.path("a"), None)).unwrap();
    let resume = SinkResume { number: 0, sealed: Vec::new() };
    let b = sink(&spec, &fields, &epochs(&folder.path("b"), Some(resume))).unwrap();
    assert_eq!((a.ledger(), b.ledger()), (Ok(Ledger::Applied(0)), Ok(Ledger::Applied(0))));
    let (of_a, of_b) = (seal(&*a, rows_of(&fields, &[(1, "a")]), 1), seal(&*b, rows_of(&fields, &[(1, "b")]), 2));
    a.apply(&of_a).unwrap();
    let error = b.apply(&of_b).unwrap_err();
    assert!(error.code == "R0603" && error.message.contains("written by another process"), "{error}");
    assert_eq!(content(&path, "t"), ["1|a"]);
    // Another lineage of the same job that has not ended is refused, unless its state was given up.
    let other = |fresh| {
        let mut cx = epochs(&folder.path("c"), None);
        cx.fresh = fresh;
        cx.epochs.as_mut().unwrap().lineage = "ff".repeat(16);
        sink(&spec, &fields, &cx)
    };
    let refused = other(false).err().unwrap();
    assert!(refused.code == "R0603" && refused.message.contains("lineage 001122334455, epoch 1"), "{refused}");
    assert_eq!(other(true).unwrap().ledger(), Ok(Ledger::Applied(0)));
}

/// D16: a violation names constraint, row and key, and changes nothing.
#[test]
fn a_broken_constraint_is_named_and_nothing_changes() {
    let folder = Folder::new();
    let (path, spool) = (folder.name("t.db"), folder.path("spool"));
    run(
        &path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT CHECK (name <> 'x')); INSERT INTO t VALUES (3, 'old')",
    );
    let fields = schema("id: int64; name: string");
    let spec = target(&path, &[("table", text("t"))]);
    let sink = sink(&spec, &fields, &epochs(&spool, None)).unwrap();
    sink.ledger().unwrap();
    let sealed = seal(&*sink, rows_of(&fields, &[(1, "a"), (3, "b")]), 1);
    let error = sink.apply(&sealed).unwrap_err();
    assert_eq!(error.code, "R0601");
    assert!(error.message.ends_with("refuses row 2 of epoch 1 (id = 3): UNIQUE constraint failed: t.id"), "{error}");
    assert_eq!(content(&path, "t"), ["3|old"]);
    assert_eq!(sink.ledger(), Ok(Ledger::Applied(0)));
    // Corrected, it goes through.
    run(&path, "DELETE FROM t");
    sink.apply(&sealed).unwrap();
    let sealed = seal(&*sink, rows_of(&fields, &[(7, "x")]), 2);
    let error = sink.apply(&sealed).unwrap_err();
    assert!(
        error.code == "R0601" && error.message.contains("(id = 7, name = `x`): CHECK constraint failed"),
        "{error}"
    );
    // A spool that was changed is noticed before anything is committed.
    let good = seal(&*sink, rows_of(&fields, &[(8, "y"), (9, "z")]), 3);
    let file = spool.join(&good.files[0].path);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(sink.apply(&good).unwrap_err().code, "R0604");
    std::fs::write(&file, &bytes[..4]).unwrap();
    assert_eq!(sink.apply(&good).unwrap_err().code, "R0604");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(sink.apply(&good).unwrap_err().code, "R0604");
    assert_eq!(content(&path, "t"), ["1|a", "3|b"]);
}

#[test]
fn modes_do_what_they_say() {
    let fields = schema("id: int64; name: string");
    for (mode, key, before, after) in [
        ("insert", None, vec!["1|old", "1|a", "2|b", "3|c"], vec!["1|old", "1|a", "2|b", "3|c"]),
        ("upsert", Some("id"), vec!["1|a", "2|b", "3|c"], vec!["1|a", "2|b", "3|c"]),
        ("replace", None, vec!["1|old"], vec!["1|a", "2|b", "3|c"]),
        ("truncate", None, vec!["1|a", "2|b", "3|c"], vec!["1|a", "2|b", "3|c"]),
    ] {
        for checkpoints in [true, false] {
            let folder = Folder::new();
            let path = folder.name("t.db");
            let unique = if key.is_some() { "PRIMARY KEY" } else { "" };
            run(&path, &format!("CREATE TABLE t (id INTEGER {unique}, name TEXT); INSERT INTO t VALUES (1, 'old')"));
            let mut more = vec![("table", text("t")), ("mode", name(mode))];
            more.extend(key.map(|key| ("key", names(&[key]))));
            let spec = target(&path, &more);
            let sorted = |mut rows: Vec<&str>| {
                rows.sort_unstable();
                rows.into_iter().map(String::from).collect::<Vec<_>>()
            };
            if checkpoints {
                let sink = sink(&spec, &fields, &epochs(&folder.path("spool"), None)).unwrap();
                sink.ledger().unwrap();
                let one = seal(&*sink, rows_of(&fields, &[(1, "a"), (2, "b")]), 1);
                sink.apply(&one).unwrap();
                let two = seal(&*sink, rows_of(&fields, &[(3, "c")]), 2);
                sink.apply(&two).unwrap();
                assert_eq!(content(&path, "t"), sorted(before.clone()), "{mode}");
                sink.finish().unwrap();
                sink.finish().unwrap();
                assert_eq!(content(&path, "t"), sorted(after.clone()), "{mode}");
            } else {
                let sink = sink(&spec, &fields, &context()).unwrap();
                put(&*sink, vec![rows_of(&fields, &[(1, "a"), (2, "b")]), rows_of(&fields, &[(3, "c")])]).unwrap();
                assert_eq!(content(&path, "t"), ["1|old"]);
                assert_eq!(sink.finish().unwrap().rows, 3);
                assert_eq!(content(&path, "t"), sorted(after.clone()), "{mode}");
            }
            // Nothing of the job's own is left but the ledger.
            let tables = content(&path, "sqlite_master");
            assert!(tables.iter().all(|row| !row.contains("_dfc_0011")), "{tables:?}");
        }
    }
}

/// D7: the rows are compared with the table before the first is read.
#[test]
fn a_table_that_does_not_fit_is_refused_by_name() {
    let folder = Folder::new();
    let path = folder.name("t.db");
    run(
        &path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, made TEXT NOT NULL, twice INTEGER AS (id * 2))",
    );
    let open = |fields: &str, more: &[(&str, OptionValue)]| {
        let spec = target(&path, &[&[("table", text("t"))], more].concat());
        sink(&spec, &schema(fields), &context())
            .err()
            .map_or_else(String::new, |error| format!("{} {}", error.code, error.message))
    };
    let told = open("id: string; nome: string; name: string?; twice: int64", &[]);
    for what in [
        "`id` is INTEGER, the field is string",
        "no column `nome`",
        "`name` is NOT NULL, and the field may be null",
        "`twice` is computed",
        "`made` is NOT NULL and has no default",
    ] {
        assert!(told.starts_with("R0232") && told.contains(what), "{told}");
    }
    let upsert = |key: &[&str]| [("mode", name("upsert")), ("key", names(key))];
    let fields = "id: int64; name: string; made: string";
    assert!(open(fields, &upsert(&["name"])).contains("no unique key of `t`"), "{}", open(fields, &upsert(&["name"])));
    assert_eq!(open(fields, &upsert(&["id"])), "");
    assert!(open(fields, &[("mode", name("upsert"))]).starts_with("R0202"));
    // Values that the column can't keep are row errors.
    let all = schema("d: decimal(18,2); u: uint64");
    run(&path, "CREATE TABLE d (d DECIMAL(18, 2), u INTEGER)");
    let row = |d: i128, u: i128| vec![Value::Decimal(d), Value::Int(u)];
    let made = batch(&all, &[row(125, 1), row(10i128.pow(16), 2), row(1, u64::MAX.into())]);
    let (summary, errors) = write("sqlite", &pairs(&path, &[("table", text("d"))]), &all, vec![made]).unwrap();
    assert_eq!((summary.rows, errors.len()), (1, 2));
    assert_eq!(errors[0].rule, "SQLite keeps 15 digits of a number; a column of the type TEXT keeps all");
}
