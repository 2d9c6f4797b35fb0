//! Tests against a real server, whose URL is in `DFC_POSTGRES` (`tests/servers/postgres start FOLDER` prints one).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dfc_ir::plan::{OptionValue, Secret, SinkSpec, SourceSpec};
use dfc_ir::{DataType, Schema, Type, Value};

use super::address::Address;
use super::session::Session;
use crate::database::testing::*;
use crate::testing::*;
use crate::{ConnectError, Ledger, Next, OpenContext, SinkResume, open_source};

/// A database of its own for a test.
struct Db {
    url: String,
    session: Session,
}

/// `None`, said loudly: there is no server. Where everything must be tested that is a failure.
fn db() -> Option<Db> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let Ok(server) = std::env::var("DFC_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "DFC_POSTGRES isn't set: PostgreSQL is not tested");
        eprintln!("NOT TESTED: PostgreSQL is missing (DFC_POSTGRES=$(tests/servers/postgres start /tmp/dfc-postgres))");
        return None;
    };
    let name = format!("t{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let admin = Session::open(&Address::parse(&server).unwrap(), true).unwrap();
    admin.run(&format!("CREATE DATABASE {name}")).unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
    Some(Db { session: Session::open(&Address::parse(&url).unwrap(), true).unwrap(), url })
}

impl Db {
    fn run(&self, sql: &str) {
        self.session.run(sql).unwrap();
    }

    /// The rows of a query as texts, sorted.
    fn rows(&self, sql: &str) -> Vec<String> {
        let rows = self.session.ask(&format!("SELECT q::text FROM ({sql}) q ORDER BY 1"), &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn pairs<'a>(&self, more: &[(&'a str, OptionValue)]) -> Vec<(&'a str, OptionValue)> {
        let url = OptionValue::Secret(Secret::Given(self.url.clone()));
        std::iter::once(("url", url)).chain(more.iter().cloned()).collect()
    }

    fn source(&self, more: &[(&str, OptionValue)], fields: &str) -> SourceSpec {
        source_spec("postgres", &self.pairs(more), &schema(fields))
    }

    fn target(&self, more: &[(&str, OptionValue)]) -> SinkSpec {
        SinkSpec { connector: "postgres".into(), options: options(&self.pairs(more)) }
    }
}

fn names(names: &[&str]) -> OptionValue {
    OptionValue::Names(names.iter().map(|n| n.to_string()).collect())
}

fn rows_of(fields: &Schema, rows: &[(i64, &str)]) -> dfc_batch::Batch {
    let rows: Vec<Vec<Value>> =
        rows.iter().map(|(id, name)| vec![Value::Int((*id).into()), Value::str(name)]).collect();
    batch(fields, &rows)
}

/// D8: every type, written to a table that the sink makes, comes back; the catalogue tells the types.
#[test]
fn every_type_comes_back() {
    let Some(db) = db() else { return };
    let fields = "a: int8; b: string?; c: decimal(4,2); d: date; e: timestamp; f: float32; g: uint64?; h: bool; i: bytes; j: json; k: time; l: duration; m: datetime; n: decimal(30,5); o: float64?";
    let mut all = schema(fields);
    let list = Type::List(Box::new(DataType::optional(Type::String)));
    all.fields.push(dfc_ir::Field::new("p", DataType::of(list)));
    let made = read("generate", &[("rows", int(3000))], &all).unwrap();
    let more = [("table", text("all")), ("create", name("if_missing"))];
    let (summary, errors) = write("postgres", &db.pairs(&more), &all, made.batches.clone()).unwrap();
    assert_eq!((summary.rows, errors), (3000, vec![]));
    let back =
        drain(&*open_source(&source_spec("postgres", &db.pairs(&more[..1]), &all), &context()).unwrap(), &all).unwrap();
    assert_eq!(back.errors, []);
    assert_eq!(back.rows, made.rows);
    let found = crate::find_schema("postgres", &options(&db.pairs(&more[..1]))).unwrap();
    let types: Vec<String> = found.fields.iter().map(|f| format!("{}: {}", f.name, f.ty)).collect();
    assert_eq!(
        types.join("; "),
        "a: int16; b: string?; c: decimal(4, 2); d: date; e: timestamp; f: float32; g: decimal(20, 0)?; h: bool; i: bytes; j: json; k: time; l: duration; m: datetime; n: decimal(30, 5); o: float64?; p: list<string?>"
    );
}

/// Types that only PostgreSQL has, and values that only it has.
#[test]
fn types_of_the_servers_own_are_read_as_text_or_refused_row_by_row() {
    let Some(db) = db() else { return };
    db.run(
        "CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN small AS integer CHECK (value < 100);
         CREATE TABLE t (id uuid PRIMARY KEY, m mood, s small, i inet, n numeric, b jsonb, c char(4), at timestamptz, l interval, a int[], d date, big numeric(50, 10));
         INSERT INTO t VALUES
           ('00000000-0000-0000-0000-000000000001', 'good', 5, '10.0.0.1', 1.5, '{\"a\":1}', 'x', '2026-01-31 10:00:00.000001+08', '1 day 2 hours', '{1,NULL,3}', '2026-01-31', 12.5),
           ('00000000-0000-0000-0000-000000000002', NULL, NULL, NULL, 'NaN', NULL, NULL, 'infinity', '1 month', NULL, 'infinity', 1e39)",
    );
    let mut all = schema(
        "id: string; m: string?; s: int32?; i: string?; n: decimal(9,2)?; b: json?; c: string?; at: timestamp?; l: duration?; d: date?; big: string",
    );
    all.fields.push(dfc_ir::Field::new("a", DataType::optional(Type::List(Box::new(DataType::optional(Type::INT32))))));
    let read_as = |fields: &Schema| {
        let spec = source_spec("postgres", &db.pairs(&[("table", text("t"))]), fields);
        drain(&*open_source(&spec, &context()).unwrap(), fields).unwrap()
    };
    let back = read_as(&all);
    assert_eq!(
        back.texts(&all),
        [
            "00000000-0000-0000-0000-000000000001|good|5|10.0.0.1/32|1.50|{\"a\": 1}|x   |2026-01-31T02:00:00.000001Z|1d2h|2026-01-31|12.5000000000|[1, null, 3]"
        ]
    );
    assert_eq!(back.errors.len(), 1);
    let error = &back.errors[0];
    assert_eq!((error.field.as_deref(), error.rule.as_str()), (Some("n"), "`NaN` is no decimal(9, 2)"));
    assert_eq!(error.place.as_ref().unwrap().source, "t (id = 00000000-0000-0000-0000-000000000002)");
    for (fields, rule) in [
        ("id: string; at: timestamp?", "an infinite time is no timestamp"),
        ("id: string; l: duration?", "an interval of months, which have no fixed length, is no duration"),
        ("id: string; d: date?", "an infinite date is no date"),
        ("id: string; m: string", "null, where string is never null; `string?` takes nulls"),
        ("id: string; c: int64?", "is not a number of type int64"),
    ] {
        let told = read_as(&schema(fields));
        assert!(told.errors.iter().any(|error| error.rule.contains(rule)), "{:?}, not {rule}", told.errors);
    }
    // D7: a column of another type is refused before a row is read.
    let spec = db.source(&[("table", text("t"))], "id: string; at: date");
    let error = open_source(&spec, &context()).err().unwrap();
    assert_eq!(error.code, "R0232");
    assert!(error.message.ends_with("is timestamp with time zone, which can't be read as date"), "{error}");
    let found = crate::find_schema("postgres", &options(&db.pairs(&[("table", text("t"))]))).unwrap();
    let types: Vec<String> = found.fields.iter().map(|f| f.ty.to_string()).collect();
    assert_eq!(
        types.join(" "),
        "string string? int32? string? string? json? string? timestamp? duration? list<int32?>? date? string?"
    );
    // And written: a text for an enumeration, a UUID; what doesn't fit is a row error.
    db.run("DELETE FROM t");
    let fields = schema("id: string; m: string?; i: string?");
    let row = |id: &str, mood: &str, ip: &str| vec![Value::string(id), Value::string(mood), Value::string(ip)];
    let good = "00000000-0000-0000-0000-000000000009";
    let made = batch(
        &fields,
        &[row(good, "bad", "::1"), row("nix", "bad", "::1"), row(good, "so so", "::1"), row(good, "good", "\0")],
    );
    let (summary, errors) = write("postgres", &db.pairs(&[("table", text("t"))]), &fields, vec![made]).unwrap();
    assert_eq!(summary.rows, 1);
    let rules: Vec<&str> = errors.iter().map(|error| error.rule.as_str()).collect();
    assert_eq!(
        rules,
        [
            "the text is no UUID",
            "the text is none of the column's values, `good`, `bad`",
            "the text holds a NUL character, which PostgreSQL doesn't store"
        ]
    );
    let bad = batch(&fields, &[row("00000000-0000-0000-0000-00000000000a", "bad", "300.1.1.1")]);
    let error = write("postgres", &db.pairs(&[("table", text("t"))]), &fields, vec![bad]).err().unwrap();
    assert!(error.code == "R0602" && error.message.contains("line 1, column i"), "{error}");
}

const T: &str = "id: int64; name: string?; at: timestamp; n: decimal(9,2)?";

fn table(db: &Db, rows: i64) {
    db.run(&format!(
        "CREATE TABLE t (id bigint PRIMARY KEY, name text, at timestamptz NOT NULL, n numeric(9, 2));
         CREATE INDEX by_name ON t (name); CREATE INDEX by_at ON t (at, id); CREATE INDEX by_n ON t (n);
         INSERT INTO t SELECT i::bigint * i, CASE WHEN i % 7 = 0 THEN NULL WHEN i % 3 = 0 THEN 'it''s' ELSE 'k' || (i * 7919 % 100003) END,
           '2026-01-01'::timestamptz + (i % 1000) * interval '1 second 3 microseconds', CASE WHEN i % 11 = 0 THEN NULL ELSE i / 1000 END
         FROM generate_series(1, {rows}) i;
         ANALYZE t"
    ));
}

/// F4, F5: for skewed, null and text keys every row comes once, from however many readers, broken off wherever.
#[test]
fn every_row_comes_once_from_every_kind_of_split() {
    let Some(db) = db() else { return };
    table(&db, 100_000);
    let query = db.source(&[("query", text("SELECT * FROM t;"))], T);
    let all = drain(&*open_source(&query, &context()).unwrap(), &schema(T)).unwrap().texts(&schema(T));
    assert_eq!(all.len(), 100_000);
    let by = |more: &[(&str, OptionValue)]| db.source(&[&[("table", text("t"))], more].concat(), T);
    for (seed, spec) in [
        by(&[]),
        by(&[("split_by", names(&["name"]))]),
        by(&[("split_by", names(&["n"]))]),
        by(&[("increment", names(&["at"]))]),
        by(&[("increment", names(&["n"])), ("nulls", name("first")), ("tiebreak", names(&["id"]))]),
        db.source(&[("query", text("SELECT * FROM t")), ("tiebreak", names(&["id"]))], T),
    ]
    .iter()
    .enumerate()
    {
        let splits = open_source(spec, &OpenContext { tasks: 3, ..context() }).unwrap().max_tasks();
        assert!(splits > 2, "{:?} has {splits} splits", spec.options);
        for part in 0..2 {
            eprintln!("split {:?}, {splits} ranges", spec.options.get("split_by").or(spec.options.get("increment")));
            same_rows(read_in_parts(spec, seed as u64 * 10 + part), all.clone());
        }
    }
    let skipped = by(&[("increment", names(&["n"])), ("nulls", name("skip"))]);
    assert_eq!(read_in_parts(&skipped, 1).len(), 100_000 - 100_000 / 11);
    let error = open_source(&by(&[("increment", names(&["n"]))]), &context()).err().unwrap();
    assert!(error.code == "R0233" && error.message.contains("`n` of the table `t`"), "{error}");
}

/// Reads for so long.
fn read_for(source: &dyn crate::Source, schema: &Schema, time: Duration) -> Vec<String> {
    let mut reader = source.reader(0).unwrap();
    let (start, mut rows) = (Instant::now(), Vec::new());
    while start.elapsed() < time {
        match reader.next(&mut Vec::new()).unwrap() {
            Next::Batch(batch) => rows.extend(texts(&batch, schema)),
            Next::Wait(_) => std::thread::sleep(Duration::from_millis(5)),
            Next::Barrier(_) | Next::End => break,
        }
    }
    rows
}

/// Reads until there is a row.
fn read_one(source: &dyn crate::Source, schema: &Schema) -> Vec<String> {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < Duration::from_secs(60), "there is no row");
        let rows = read_for(source, schema, Duration::from_millis(20));
        if !rows.is_empty() {
            return rows;
        }
    }
}

/// F5: an instant that the server sets is held behind the oldest open transaction, so a row that is committed late isn't lost.
#[test]
fn rows_that_are_committed_late_are_waited_for() {
    let Some(db) = db() else { return };
    db.run("CREATE TABLE t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now()); CREATE INDEX ON t (at)");
    let late = Session::open(&Address::parse(&db.url).unwrap(), true).unwrap();
    late.run("BEGIN; INSERT INTO t VALUES (1)").unwrap();
    db.run("INSERT INTO t VALUES (2)");
    let poll = OptionValue::Value(Value::Duration(20_000));
    let spec = db.source(&[("table", text("t")), ("increment", names(&["at"])), ("poll", poll)], "id: int64");
    let source = open_source(&spec, &context()).unwrap();
    let fields = schema("id: int64");
    assert!(read_for(&*source, &fields, Duration::from_millis(400)).is_empty(), "2 is newer than the open transaction");
    late.run("COMMIT").unwrap();
    assert_eq!(read_for(&*source, &fields, Duration::from_millis(600)), ["1", "2"]);
    db.run("INSERT INTO t VALUES (3)");
    assert_eq!(read_for(&*source, &fields, Duration::from_millis(600)), ["3"]);
}

/// F5, A1: a row that has the increment of the last one that was read, and is committed later with a smaller key, is read by the next run,
/// and by a source that follows; whatever the increment's type.
#[test]
fn ties_that_are_committed_late_are_read() {
    let Some(db) = db() else { return };
    for (number, (ty, same, next)) in
        [("date", "2026-01-02", "2026-01-03"), ("numeric", "1.50", "2"), ("text", "b", "c"), ("bigint", "7", "8")]
            .into_iter()
            .enumerate()
    {
        let table = format!("t{number}");
        db.run(&format!("CREATE TABLE {table} (id bigint PRIMARY KEY, n {ty} NOT NULL); CREATE INDEX ON {table} (n)"));
        let insert = |id: i64, value: &str| db.run(&format!("INSERT INTO {table} VALUES ({id}, '{value}')"));
        insert(4, same);
        insert(8, same);
        let pairs = [("table", text(&table)), ("increment", names(&["n"]))];
        let spec = db.source(&pairs, "id: int64");
        let (rows, at) = read_on(&spec, None);
        assert_eq!(rows, ["4", "8"], "{ty}");
        let late = Session::open(&Address::parse(&db.url).unwrap(), true).unwrap();
        late.run(&format!("BEGIN; INSERT INTO {table} VALUES (3, '{same}')")).unwrap();
        insert(6, same);
        insert(1, next);
        let (rows, at) = read_on(&spec, at);
        assert_eq!(rows, ["6", "1"], "{ty}");
        late.run("COMMIT").unwrap();
        insert(0, next);
        let (rows, at) = read_on(&spec, at);
        // 3 is older than the last increment by now: that needs `lag`.
        assert_eq!(rows, ["0"], "{ty}");

        let follow = [pairs.as_slice(), &[("poll", OptionValue::Value(Value::Duration(20_000)))]].concat();
        let spec = db.source(&follow, "id: int64");
        let source = open_source(&spec, &OpenContext { positions: at, continues: true, ..context() }).unwrap();
        let fields = schema("id: int64");
        assert!(read_for(&*source, &fields, Duration::from_millis(200)).is_empty(), "{ty}");
        insert(-5, next);
        insert(9, next);
        let mut rows = read_for(&*source, &fields, Duration::from_millis(300));
        rows.sort();
        assert_eq!(rows, ["-5", "9"], "{ty}");
    }
}

/// A3, D8: a table that is changed while it is followed is refused by the column's name, before a value of it is misread (a `bigint` and
/// a `double precision` both have eight bytes); what has only come is left out.
#[test]
fn a_table_that_changes_while_it_is_followed_is_refused_by_name() {
    let Some(db) = db() else { return };
    for (number, (change, what)) in [
        ("ALTER TABLE t ALTER COLUMN n TYPE double precision", "`n` of the table `t`"),
        ("ALTER TABLE t RENAME COLUMN n TO m", "has no column `n` any more"),
        ("ALTER TABLE t RENAME COLUMN at TO since", "has no column `at` any more"),
        ("ALTER TABLE t DROP COLUMN n", "has no column `n` any more"),
        ("ALTER TABLE t RENAME TO gone", "has no table `t`"),
    ]
    .into_iter()
    .enumerate()
    {
        db.run(
            "DROP TABLE IF EXISTS t, gone; CREATE TABLE t (id bigint PRIMARY KEY, n bigint, at bigint NOT NULL); CREATE INDEX ON t (at);
            INSERT INTO t VALUES (1, 10, 1)",
        );
        let poll = OptionValue::Value(Value::Duration(10_000));
        let more = [("table", text("t")), ("increment", names(&["at"])), ("poll", poll)];
        let spec = db.source(&more, "id: int64; n: int64?");
        let source = open_source(&spec, &context()).unwrap();
        let fields = &spec.schema;
        assert_eq!(read_one(&*source, fields), ["1|10"], "{change}");
        // A column that has come concerns nobody.
        db.run("ALTER TABLE t ADD COLUMN more text; INSERT INTO t VALUES (2, 20, 2)");
        assert_eq!(read_one(&*source, fields), ["2|20"], "{change}");
        // The change and the row after it are one.
        let table = if number == 4 { "gone" } else { "t" };
        let at = if number == 2 { "since" } else { "at" };
        db.run(&format!("BEGIN; {change}; INSERT INTO {table} (id, {at}) VALUES (3, 3); COMMIT"));
        let mut reader = source.reader(0).unwrap();
        let start = Instant::now();
        let error = loop {
            assert!(start.elapsed() < Duration::from_secs(60), "{change}: it goes on");
            match reader.next(&mut Vec::new()) {
                Ok(Next::Batch(batch)) => panic!("{change}: {:?}", texts(&batch, fields)),
                Ok(_) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => break error,
            }
        };
        assert!(error.message.contains(what), "{change}: {error:?}");
        assert_eq!(error.code, if number == 4 { "R0231" } else { "R0232" }, "{change}");
        if number == 0 {
            assert!(error.message.contains("was bigint when the job began, and is double precision now"), "{error}");
        }
    }
}

/// A2: the session is terminated while it reads; the source makes another and goes on after the last row.
#[test]
fn a_reader_survives_the_end_of_its_session() {
    let Some(db) = db() else { return };
    table(&db, 200_000);
    let spec = db.source(&[("table", text("t"))], T);
    let source = open_source(&spec, &OpenContext { tasks: 1, ..context() }).unwrap();
    let mut reader = source.reader(0).unwrap();
    let (mut rows, mut killed, start) = (Vec::new(), 0, Instant::now());
    loop {
        assert!(start.elapsed() < Duration::from_secs(60));
        match reader.next(&mut Vec::new()).unwrap() {
            Next::Batch(batch) => {
                rows.extend(texts(&batch, &spec.schema));
                if killed < 3 {
                    killed += db.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY%'").len();
                }
            }
            Next::Wait(_) => std::thread::sleep(Duration::from_millis(2)),
            Next::End => break,
            Next::Barrier(_) => {}
        }
    }
    assert!(killed > 0, "the session was over before it could be terminated");
    let ids: std::collections::BTreeSet<&String> = rows.iter().collect();
    assert_eq!((rows.len(), ids.len()), (200_000, 200_000));
}

/// D12, D13: an epoch becomes visible once, however often it is applied, and in another process too.
#[test]
fn epochs_are_applied_once() {
    let Some(db) = db() else { return };
    let folder = Folder::new();
    let fields = schema("id: int64; name: string");
    for connections in [1, 3] {
        let table = format!("t{connections}");
        db.run(&format!("CREATE TABLE {table} (id bigint PRIMARY KEY, name text NOT NULL)"));
        let spool = folder.path(&table);
        let spec = db.target(&[("table", text(&table)), ("connections", int(connections))]);
        let content = || db.rows(&format!("SELECT * FROM {table}"));
        let mut cx = epochs(&spool, None);
        cx.node = format!("sink.{table}");
        let first = sink(&spec, &fields, &cx).unwrap();
        assert_eq!(first.ledger(), Ok(Ledger::Applied(0)));
        put(&*first, vec![rows_of(&fields, &[(1, "a")]), rows_of(&fields, &[(2, "b\t\\\n")])]).unwrap();
        let one = seal(&*first, rows_of(&fields, &[(3, "ä")]), 1);
        let two = seal(&*first, rows_of(&fields, &[(4, "d")]), 2);
        assert!(content().is_empty());
        first.apply(&one).unwrap();
        first.apply(&one).unwrap();
        assert_eq!(content(), ["(1,a)", "(2,\"b\t\\\\\n\")", "(3,ä)"]);
        put(&*first, vec![rows_of(&fields, &[(99, "lost")])]).unwrap();
        drop(first);
        cx.epochs.as_mut().unwrap().resume = Some(SinkResume { number: 2, sealed: vec![one.clone(), two.clone()] });
        let second = sink(&spec, &fields, &cx).unwrap();
        assert_eq!(second.ledger(), Ok(Ledger::Applied(1)));
        second.apply(&one).unwrap();
        second.apply(&two).unwrap();
        second.apply(&seal(&*second, rows_of(&fields, &[]), 4)).unwrap();
        assert_eq!(second.finish().unwrap().rows, 4);
        assert_eq!(second.finish().unwrap().rows, 4);
        assert_eq!(content().len(), 4);
        let zombie = sink(&spec, &fields, &cx).unwrap();
        zombie.apply(&two).unwrap();
        assert_eq!(content().len(), 4);
    }
}

/// An older commit that is still on its way is waited for, then seen; the other process' epoch isn't written again.
#[test]
fn a_commit_on_its_way_is_waited_for() {
    let Some(db) = db() else { return };
    let folder = Folder::new();
    db.run("CREATE TABLE t (id bigint, name text)");
    let fields = schema("id: int64; name: string");
    let spec = db.target(&[("table", text("t"))]);
    let a = sink(&spec, &fields, &epochs(&folder.path("a"), None)).unwrap();
    a.ledger().unwrap();
    let one = seal(&*a, rows_of(&fields, &[(1, "a")]), 1);
    // A session of a dead process, whose transaction is open still.
    let zombie = Session::open(&Address::parse(&db.url).unwrap(), true).unwrap();
    zombie.run("BEGIN; UPDATE public._dfc_ledger SET n = 1 WHERE n = 0; INSERT INTO t VALUES (1, 'a')").unwrap();
    let committer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        zombie.run("COMMIT").unwrap();
    });
    a.apply(&one).unwrap();
    committer.join().unwrap();
    assert_eq!(db.rows("SELECT * FROM t"), ["(1,a)"]);
    // Somebody else's epoch is a refusal.
    db.run("UPDATE public._dfc_ledger SET n = 7");
    let two = seal(&*a, rows_of(&fields, &[(2, "b")]), 2);
    let error = a.apply(&two).unwrap_err();
    assert!(error.code == "R0603" && error.message.contains("its ledger says epoch 7"), "{error}");
    db.run("DELETE FROM public._dfc_ledger");
    let error = a.apply(&two).unwrap_err();
    assert!(error.code == "R0603" && error.message.contains("is gone"), "{error}");
    assert_eq!(db.rows("SELECT * FROM t"), ["(1,a)"]);
}

/// A2, D16: the session is terminated in the middle of an apply, again and again; the rows are there once.
#[test]
fn an_apply_survives_the_end_of_its_session() {
    let Some(db) = db() else { return };
    let folder = Folder::new();
    db.run("CREATE TABLE t (id bigint PRIMARY KEY, name text)");
    let fields = schema("id: int64; name: string");
    let spec = db.target(&[("table", text("t"))]);
    let sink = sink(&spec, &fields, &epochs(&folder.path("spool"), None)).unwrap();
    sink.ledger().unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let killer = {
        let (stop, url) = (stop.clone(), db.url.clone());
        std::thread::spawn(move || {
            let session = Session::open(&Address::parse(&url).unwrap(), true).unwrap();
            let (mut random, mut killed) = (Random(7), 0);
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5 + random.below(40)));
                let sql = "SELECT count(pg_terminate_backend(pid))::int8 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL";
                killed += session.ask(sql, &[]).unwrap()[0].get::<_, i64>(0);
            }
            killed
        })
    };
    let mut failures = 0;
    for number in 1..=20u64 {
        let rows: Vec<(i64, &str)> = (0..5000)
            .map(|i| (number as i64 * 10_000 + i, "a name of some length, so that it takes a while"))
            .collect();
        let sealed = seal(&*sink, rows_of(&fields, &rows), number);
        while let Err(error) = sink.apply(&sealed) {
            assert_eq!(error.code, "R0230", "{error}");
            failures += 1;
            // In the end the killer is too quick for an epoch.
            if failures > 40 {
                stop.store(true, Ordering::Relaxed);
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(killer.join().unwrap() > 0, "nothing was terminated");
    assert_eq!(db.rows("SELECT count(*), count(DISTINCT id) FROM t"), ["(100000,100000)"]);
}

/// D16: a violation names constraint, row and key, and changes nothing; two lineages don't mix.
#[test]
fn a_broken_constraint_is_named_and_nothing_changes() {
    let Some(db) = db() else { return };
    let folder = Folder::new();
    db.run("CREATE TABLE t (id bigint PRIMARY KEY, name text CHECK (name <> 'x')); INSERT INTO t VALUES (3, 'old')");
    let fields = schema("id: int64; name: string");
    let spec = db.target(&[("table", text("t"))]);
    let mine = sink(&spec, &fields, &epochs(&folder.path("spool"), None)).unwrap();
    mine.ledger().unwrap();
    let one = seal(&*mine, rows_of(&fields, &[(1, "a"), (3, "b")]), 1);
    let error = mine.apply(&one).unwrap_err();
    assert_eq!(error.code, "R0601");
    for what in ["epoch 1", "t_pkey", "Key (id)=(3) already exists", "line 2"] {
        assert!(error.message.contains(what), "{error}");
    }
    assert_eq!(db.rows("SELECT * FROM t"), ["(3,old)"]);
    assert_eq!(mine.ledger(), Ok(Ledger::Applied(0)));
    db.run("DELETE FROM t");
    mine.apply(&one).unwrap();
    let two = seal(&*mine, rows_of(&fields, &[(7, "x")]), 2);
    let error = mine.apply(&two).unwrap_err();
    assert!(error.code == "R0601" && error.message.contains("t_name_check"), "{error}");
    let mut other = epochs(&folder.path("other"), None);
    other.epochs.as_mut().unwrap().lineage = "ff".repeat(16);
    let refused = sink(&spec, &fields, &other).err().unwrap();
    assert!(refused.code == "R0603" && refused.message.contains("lineage 001122334455, epoch 1"), "{refused}");
    // A spool that was changed is noticed before anything is committed.
    let good = seal(&*mine, rows_of(&fields, &[(8, "y"), (9, "z")]), 3);
    let file = folder.path("spool").join(&good.files[0].path);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[0] = b'5';
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(mine.apply(&good).unwrap_err().code, "R0604");
    assert_eq!(db.rows("SELECT * FROM t"), ["(1,a)", "(3,b)"]);
}

#[test]
fn modes_do_what_they_say() {
    let Some(db) = db() else { return };
    let fields = schema("id: int64; name: string");
    let new = ["(1,a)", "(2,b)", "(3,c)"];
    for (mode, key, before, after) in [
        ("insert", None, vec!["(1,a)", "(1,old)", "(2,b)", "(3,c)"], vec!["(1,a)", "(1,old)", "(2,b)", "(3,c)"]),
        ("upsert", Some("id"), new.to_vec(), new.to_vec()),
        ("replace", None, vec!["(1,old)"], new.to_vec()),
        ("truncate", None, new.to_vec(), new.to_vec()),
    ] {
        for checkpoints in [true, false] {
            let folder = Folder::new();
            let unique = if key.is_some() { "PRIMARY KEY" } else { "" };
            db.run(&format!("DROP TABLE IF EXISTS t, _dfc_ledger; CREATE TABLE t (id bigint {unique}, name text); INSERT INTO t VALUES (1, 'old')"));
            let mut more = vec![("table", text("public.t")), ("mode", name(mode))];
            more.extend(key.map(|key| ("key", names(&[key]))));
            let spec = db.target(&more);
            let cx = if checkpoints { epochs(&folder.path("spool"), None) } else { context() };
            let sink = sink(&spec, &fields, &cx).unwrap();
            // Of several rows of a key the last one counts.
            let first = match mode {
                "upsert" => vec![(1, "x"), (2, "b"), (1, "a")],
                _ => vec![(1, "a"), (2, "b")],
            };
            if checkpoints {
                sink.ledger().unwrap();
                sink.apply(&seal(&*sink, rows_of(&fields, &first), 1)).unwrap();
                sink.apply(&seal(&*sink, rows_of(&fields, &[(3, "c")]), 2)).unwrap();
                assert_eq!(db.rows("SELECT * FROM t"), before, "{mode}");
                sink.finish().unwrap();
                sink.finish().unwrap();
            } else {
                put(&*sink, vec![rows_of(&fields, &first), rows_of(&fields, &[(3, "c")])]).unwrap();
                assert_eq!(db.rows("SELECT * FROM t"), ["(1,old)"]);
                sink.finish().unwrap();
            }
            assert_eq!(db.rows("SELECT * FROM t"), after, "{mode}");
            let tables = db.rows("SELECT relname FROM pg_class WHERE relname LIKE '\\_dfc%' AND relkind = 'r'");
            assert_eq!(tables.len(), usize::from(checkpoints), "{tables:?}");
        }
    }
}

/// D7, and names that are hostile.
#[test]
fn a_table_that_does_not_fit_is_refused_by_name() {
    let Some(db) = db() else { return };
    db.run(
        "CREATE TABLE t (id integer PRIMARY KEY, name varchar(3) NOT NULL, made text NOT NULL, twice bigint GENERATED ALWAYS AS (id * 2) STORED, n numeric(4, 2));
         CREATE UNLOGGED TABLE fast (id bigint); CREATE SCHEMA \"a.b\"",
    );
    let open = |table: &str, fields: &str, more: &[(&str, OptionValue)]| -> Result<(), ConnectError> {
        sink(&db.target(&[&[("table", text(table))], more].concat()), &schema(fields), &context()).map(drop)
    };
    let told = open("t", "id: string; nome: string; name: string?; twice: int64", &[]).unwrap_err();
    for what in [
        "`id` is integer, the field is string",
        "no column `nome`",
        "`name` is NOT NULL, and the field may be null",
        "`twice` is computed",
        "`made` is NOT NULL and has no default",
    ] {
        assert!(told.code == "R0232" && told.message.contains(what), "{told}");
    }
    let fields = "id: int64; name: string; made: string";
    let upsert = |key: &[&str]| [("mode", name("upsert")), ("key", names(key))];
    assert_eq!(open("t", fields, &upsert(&["name"])).unwrap_err().code, "R0231");
    open("t", fields, &upsert(&["id"])).unwrap();
    assert!(open("nix", fields, &[]).unwrap_err().help.unwrap().contains("`public.t`"));
    assert_eq!(open("a.b.c", fields, &[]).unwrap_err().code, "R0202");
    let folder = Folder::new();
    let unlogged = sink(&db.target(&[("table", text("fast"))]), &schema("id: int64"), &epochs(&folder.path("s"), None));
    assert!(unlogged.err().unwrap().message.contains("UNLOGGED"));
    // What a column doesn't take is a row error.
    let all = schema("id: int64; name: string; made: string; n: decimal(9,3)");
    let row = |id: i128, name: &'static str, n: i128| {
        vec![Value::Int(id), Value::str(name), Value::str("x"), Value::Decimal(n)]
    };
    let made = batch(
        &all,
        &[row(1, "äöü", 1250), row(1 << 40, "a", 0), row(2, "long", 0), row(3, "a", 1251), row(4, "b", 100_000)],
    );
    let (summary, errors) = write("postgres", &db.pairs(&[("table", text("t"))]), &all, vec![made]).unwrap();
    assert_eq!((summary.rows, errors.len()), (1, 4));
    // Names are data.
    let evil = "\"\"\"; DROP TABLE t; --\"";
    let fields = Schema {
        fields: vec![dfc_ir::Field { external: Some("select\"' --".into()), ..dfc_ir::Field::new("a", ty("int64")) }],
    };
    let more = [("table", text(&format!("\"a.b\".{evil}"))), ("create", name("if_missing"))];
    write("postgres", &db.pairs(&more), &fields, vec![batch(&fields, &[vec![Value::Int(7)]])]).unwrap();
    let back =
        drain(&*open_source(&source_spec("postgres", &db.pairs(&more[..1]), &fields), &context()).unwrap(), &fields)
            .unwrap();
    assert_eq!(back.texts(&fields), ["7"]);
    assert_eq!(db.rows("SELECT id FROM t"), ["(1)"]);
}

/// What can't be reached, and what is refused, says so without the password.
#[test]
fn failures_name_the_place_and_no_secret() {
    let Some(db) = db() else { return };
    let open = |url: &str| {
        let url = OptionValue::Secret(Secret::Given(url.into()));
        let spec = source_spec("postgres", &[("url", url), ("table", text("t"))], &schema(T));
        open_source(&spec, &context()).err().unwrap()
    };
    let away = open("postgres://me:s3cret@127.0.0.1:1/x");
    assert!(away.code == "R0230" && away.message.contains("`x` at 127.0.0.1:1"), "{away:?}");
    let unknown = open(&db.url.replace("dfc@", "nobody:s3cret@"));
    assert!(unknown.code == "R0231" && unknown.message.contains("nobody"), "{unknown:?}");
    for error in [away, unknown] {
        assert!(!format!("{error:?}").contains("s3cret"));
    }
    let missing = OptionValue::Secret(Secret::Env("DFC_NO_SUCH_VARIABLE".into()));
    let spec = source_spec("postgres", &[("url", missing), ("table", text("t"))], &schema(T));
    assert_eq!(open_source(&spec, &context()).err().unwrap().code, "R0236");
}

/// The server's certificate is verified wherever a connection is encrypted.
#[test]
fn certificates_are_verified() {
    let Some(db) = db() else { return };
    let setting = |name: &str| db.session.ask("SELECT current_setting($1)", &[&name]).unwrap()[0].get::<_, String>(0);
    if setting("ssl") != "on" {
        eprintln!("NOT TESTED: the server has no certificate");
        return;
    }
    db.run("CREATE TABLE t (id bigint PRIMARY KEY); INSERT INTO t VALUES (1)");
    let open = |options: &str| {
        let url = OptionValue::Secret(Secret::Given(format!("{}?{options}", db.url)));
        let spec = source_spec("postgres", &[("url", url), ("table", text("t"))], &schema("id: int64"));
        open_source(&spec, &context()).map(|source| drain(&*source, &schema("id: int64")).unwrap().rows.len())
    };
    let unknown = open("sslmode=require").unwrap_err();
    assert!(unknown.code == "R0230" && unknown.message.contains("certificate"), "{unknown}");
    let trusted = format!("sslmode=verify-full&sslrootcert={}", setting("ssl_cert_file"));
    assert_eq!(open(&trusted), Ok(1));
    // A name that the certificate doesn't have.
    let url = db.url.replace("127.0.0.1", "localhost");
    let url = OptionValue::Secret(Secret::Given(format!("{url}?{trusted}")));
    let spec = source_spec("postgres", &[("url", url), ("table", text("t"))], &schema("id: int64"));
    assert_eq!(open_source(&spec, &context()).err().unwrap().code, "R0230");
    assert_eq!(open("sslmode=disable"), Ok(1));
}
