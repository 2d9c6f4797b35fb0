//! The whole compiler on damaged pipelines: no panic, no hang, and `check` agrees with `plan`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dfc_compiler::files::MemoryFiles;
use dfc_compiler::schemas::lock::Lock;
use dfc_compiler::schemas::lock_of;
use dfc_compiler::{Catalog, Compiler, NotFound, Request};
use dfc_ir::{DataType, Field, Schema, Type};

use crate::support::random::Random;
use crate::support::{files_below, read, root};

/// Every pipeline of the project.
fn pipelines() -> Vec<(PathBuf, String)> {
    let mut out = Vec::new();
    for folder in ["examples", "tests/golden"] {
        let folder = root().join(folder);
        let files = files_below(&folder).into_iter().filter(|f| f.extension().is_some_and(|e| e == "df"));
        out.extend(files.map(|file| (file.clone(), read(&folder.join(&file)))));
    }
    assert!(out.len() > 20);
    out
}

/// Words that a mutation puts in.
const WORDS: [&str; 30] = [
    "job",
    "stream",
    "source",
    "sink",
    "record",
    "fn",
    "param",
    "use",
    "|>",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "null",
    "?",
    "99999999999999999999",
    "\"",
    "f\"{",
    "@2026-02-30",
    "as int8",
    "left.",
    "??",
    "match",
    "...",
    "金",
];

/// Removes, doubles, swaps or replaces tokens, or cuts the text at any byte.
fn mutated(text: &str, random: &mut Random) -> String {
    let tokens = dfc_grammar::lex(text);
    let mut parts: Vec<&str> = tokens.iter().map(|t| &text[t.span.start as usize..t.span.end as usize]).collect();
    for _ in 0..1 + random.below(4) {
        if parts.is_empty() {
            break;
        }
        let at = random.below(parts.len());
        match random.below(5) {
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, parts[at]),
            2 => parts.insert(at, WORDS[random.below(WORDS.len())]),
            3 => parts[at] = WORDS[random.below(WORDS.len())],
            _ => {
                let other = random.below(parts.len());
                parts.swap(at, other);
            }
        }
    }
    let mut out = parts.concat();
    if random.below(10) == 0 {
        let mut cut = random.below(out.len());
        while !out.is_char_boundary(cut) {
            cut -= 1;
        }
        out.truncate(cut);
    }
    out
}

/// How many pipelines are tried: `DFC_FUZZ=100000` for a longer search, `DFC_FUZZ_SEED=7` for another one.
fn rounds(few: usize) -> usize {
    match std::env::var("DFC_FUZZ") {
        Ok(rounds) => rounds.parse().expect("DFC_FUZZ is a number"),
        Err(_) if std::env::var_os("CI").is_some() => 3 * few,
        Err(_) => few,
    }
}

fn seeded() -> Random {
    let seed = std::env::var("DFC_FUZZ_SEED").map_or(0x5eed, |seed| seed.parse().expect("DFC_FUZZ_SEED is a number"));
    Random(seed)
}

/// Knows fields for whatever is asked: sources without `schema:` go on to the later layers.
struct AnyFields;

impl Catalog for AnyFields {
    fn schema(&self, request: &Request) -> Result<Schema, NotFound> {
        if request.connector.len().is_multiple_of(2) {
            return Err(NotFound { message: "not there".into(), ..NotFound::default() });
        }
        let field = |name: &str, ty: Type| Field::new(name, DataType::optional(ty));
        Ok(Schema {
            fields: vec![field("id", Type::INT64), field("price", Type::Decimal(18, 2)), field("a b", Type::String)],
        })
    }
}

/// Puts a pipeline through every layer up to the stages. Whether there was a plan.
fn through(files: BTreeMap<PathBuf, String>) -> bool {
    let mut compiler = Compiler::with_files(Arc::new(MemoryFiles { files }));
    compiler.set_catalog(Arc::new(AnyFields));
    let root = Path::new("pipeline.df");
    let checked = compiler.check(root);
    for diagnostic in &checked.diagnostics {
        assert!(dfc_diagnostics::codes::explain(diagnostic.code).is_some(), "{} has no page", diagnostic.code);
    }
    dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false);
    let plan = compiler.plan(root);
    assert!(plan.is_err() || !checked.has_errors(), "a plan in spite of errors");
    if let Err(refused) = &plan {
        assert!(refused.has_errors(), "no plan and no error");
        // What a file lacks for a run alone (a job, a parameter's value) has codes of its own.
        assert!(refused.diagnostics.iter().all(|found| found.code != "E0299"), "no plan of a sound file");
    }
    let sources = compiler.outside_sources(root);
    let known = sources.iter().filter_map(|source| Some((source, source.schema.as_deref()?.clone())));
    let lock = lock_of(known);
    assert_eq!(Lock::parse(&lock.text()), Ok(lock), "a lock file is read back as it was written");
    plan.is_ok_and(|plan| {
        let stages = dfc_planner::plan_stages(&plan);
        dfc_ir::text::plan(&plan);
        dfc_ir::text::stages(&stages);
        true
    })
}

/// Tries pipelines one after another; how many had a plan.
fn all_through(rounds: usize, mut next: impl FnMut() -> BTreeMap<PathBuf, String>) -> usize {
    let mut planned = 0;
    for round in 0..rounds {
        let files = next();
        let text = files[Path::new("pipeline.df")].clone();
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| through(files))) {
            Ok(ran) => planned += usize::from(ran),
            Err(_) => panic!("round {round} panicked on:\n{text}"),
        }
        assert!(start.elapsed() < Duration::from_secs(5), "round {round} took {:?} on:\n{text}", start.elapsed());
    }
    planned
}

#[test]
fn damaged_pipelines_give_findings_and_never_a_panic() {
    let pipelines = pipelines();
    let libraries: BTreeMap<PathBuf, String> =
        pipelines.iter().map(|(path, text)| (PathBuf::from(path.file_name().expect("a name")), text.clone())).collect();
    let mut random = seeded();
    let planned = all_through(rounds(2_000), || {
        let (_, text) = &pipelines[random.below(pipelines.len())];
        let mut text = mutated(text, &mut random);
        if random.below(4) == 0 {
            text = without_schemas(&text);
        }
        let mut files = libraries.clone();
        files.insert(PathBuf::from("pipeline.df"), text);
        files
    });
    assert!(planned > 0, "no mutation left a sound pipeline: the plans were never tried");
}

/// Takes `schema:` arguments away, so that the fields come from outside.
fn without_schemas(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(", schema: ") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 10..];
        let end = after.find([',', ')', '\n']).unwrap_or(after.len());
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

/// Pipelines made from the language's parts: most are nearly right, so that the later layers are reached.
#[test]
fn generated_pipelines_give_findings_and_never_a_panic() {
    let mut random = seeded();
    let planned = all_through(rounds(1_500), || {
        let text = generated(&mut random);
        BTreeMap::from([(PathBuf::from("pipeline.df"), text)])
    });
    assert!(planned > 100, "only {planned} generated pipelines were sound: the plans were hardly tried");
}

const FIELDS: [&str; 9] = ["id", "price", "name", "day", "at", "flag", "tags", "who", "rate"];
const TYPES: [&str; 12] = [
    "int64",
    "decimal(15, 2)",
    "string?",
    "date",
    "timestamp?",
    "bool",
    "list<string>",
    "record { x: int64?, y: string }",
    "float64",
    "json",
    "uint8",
    "duration",
];
const FUNCTIONS: [&str; 10] =
    ["abs", "round", "upper", "length", "coalesce", "date_trunc", "json_get", "concat", "greatest", "own"];
const OPERATORS: [&str; 14] = ["+", "-", "*", "/", "%", "div", "==", "!=", "<", ">=", "and", "or", "??", "+"];

fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        let leaves = ["1", "2.5", "1e3", "\"x\"", "true", "null", "@2026-01-31", "5m", "limit", "f\"{id}\""];
        return if random.below(3) == 0 { random.pick(&leaves).to_owned() } else { random.pick(&FIELDS).to_owned() };
    }
    let inner = |random: &mut Random| expression(random, depth - 1);
    match random.below(14) {
        0..=4 => {
            let (a, b) = (inner(random), inner(random));
            format!("({a} {} {b})", random.pick(&OPERATORS))
        }
        5 | 6 => format!("{}({}, {})", random.pick(&FUNCTIONS), inner(random), inner(random)),
        7 => format!("({} as {})", inner(random), random.pick(&TYPES)),
        8 => format!("({} as? {})", inner(random), random.pick(&TYPES)),
        9 => format!("(if {} then {} else {})", inner(random), inner(random), inner(random)),
        10 => {
            format!("match {} {{ {} => {}, else => {} }}", inner(random), inner(random), inner(random), inner(random))
        }
        11 => format!("({} is not null)", inner(random)),
        12 => format!("({} in [{}, {}])", inner(random), inner(random), inner(random)),
        _ => format!("({} between {} and {})", inner(random), inner(random), inner(random)),
    }
}

fn link(random: &mut Random) -> String {
    let depth = random.below(3);
    match random.below(12) {
        0 | 1 => format!("filter({})", expression(random, depth)),
        2 | 3 => format!("derive({}: {})", random.pick(&FIELDS), expression(random, depth)),
        4 => format!("select(id, {}, v: {})", random.pick(&FIELDS), expression(random, depth)),
        5 => format!("drop({})", random.pick(&FIELDS)),
        6 => format!("aggregate(by: [{}], n: count(), s: sum({}))", random.pick(&FIELDS), expression(random, depth)),
        7 => format!("distinct(by: [{}])", random.pick(&FIELDS)),
        8 => format!("sort(desc({}))", random.pick(&FIELDS)),
        9 => format!("join(b, on: {}, kind: left, take: [r: right.name])", random.pick(&FIELDS)),
        10 => format!("mine(amount: {}, key: {})", expression(random, depth), random.pick(&FIELDS)),
        _ => format!("take({})", random.below(100)),
    }
}

fn generated(random: &mut Random) -> String {
    let mut fields = String::new();
    for (name, usual) in FIELDS.iter().zip(TYPES) {
        let ty = if random.below(4) == 0 { random.pick(&TYPES) } else { usual };
        fields.push_str(&format!("    {name}: {ty}\n"));
    }
    let mut text = format!("job j {{}}\nrecord Row {{\n{fields}}}\nparam limit: int64 = {}\n", random.below(9));
    text.push_str(&format!(
        "fn own(a: number, b: number) = {}\n",
        random.pick(&["a + b", "a * b - 1", "if a > b then a else b"])
    ));
    let schema = if random.below(5) == 0 { "" } else { ", schema: Row" };
    text.push_str(&format!("source a = jsonl(\"a.jsonl\"{schema})\nsource b = csv(\"b.csv\", schema: record {{ id: int64, name: string }})\n"));
    if random.below(3) == 0 {
        let (state, body) = (expression(random, 0), expression(random, 1));
        text.push_str(&format!(
            "operator mine(amount: row decimal(18, 2), key: row any) -> input + {{ t: decimal(38, 2) }} {{\n    state t: decimal(38, 2) = {state} by [key]\n    on row {{ t = {body}; emit {{ ...row, t: t }}; }}\n}}\n"
        ));
    }
    text.push_str("stream s = a");
    for _ in 0..1 + random.below(3) {
        text.push_str(&format!("\n    |> {}", link(random)));
    }
    text.push_str("\nsink {\n    s |> jsonl(\"out.jsonl\")\n    b |> csv(\"b.csv.out\")\n}\n");
    text
}

#[test]
fn damaged_lock_files_give_findings_and_never_a_panic() {
    let pipeline = "job j {}\nsource a = csv(\"a.csv\")\nsink a |> csv(\"out.csv\")\n";
    let lock = "//! Made by dfc.\n\nsource a = csv(path: \"a.csv\", schema: record {\n    id: int64,\n    `a b`: decimal(18, 2)? = \"A\",\n})\n";
    let mut random = seeded();
    all_through(rounds(1_000), || {
        let lock = mutated(lock, &mut random);
        BTreeMap::from([(PathBuf::from("pipeline.df"), pipeline.to_owned()), (PathBuf::from("pipeline.df.lock"), lock)])
    });
}

/// What passes a limit is an error with that limit's code, and quick.
#[test]
fn limits_are_errors_by_name() {
    let job = "job j {}\nsource a = csv(\"a.csv\", schema: record { id: int64 })\nsink a |> csv(\"out.csv\")\n";
    let one = |text: String| BTreeMap::from([(PathBuf::from("pipeline.df"), text)]);
    // Each file uses the next one.
    let mut deep = one(format!("use \"0.df\"\n{job}"));
    deep.extend((0..1_000).map(|n| (PathBuf::from(format!("{n}.df")), format!("use \"{}.df\"\n", n + 1))));
    // One file uses all others.
    let uses: String = (0..1_000).map(|n| format!("use \"{n}.df\"\n")).collect();
    let mut wide = one(format!("{uses}{job}"));
    wide.extend((0..1_000).map(|n| (PathBuf::from(format!("{n}.df")), format!("const c{n} = 1\n"))));
    // Few files, large ones.
    let uses: String = (0..9).map(|n| format!("use \"{n}.df\"\n")).collect();
    let mut large = one(format!("{uses}{job}"));
    large.extend((0..9).map(|n| (PathBuf::from(format!("{n}.df")), " ".repeat(10 << 20))));
    let nested =
        |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(10_000), close.repeat(10_000));
    let value = |open: &str, inner: &str, close: &str| one(format!("const x = {}\n{job}", nested(open, inner, close)));
    let many: String = (0..2_000).map(|n| format!("const c{n} = no{n}\n")).collect();
    let functions: String =
        (0..40).map(|n| format!("fn f{}(x: int64) = f{n}(x) + f{n}(x)\n", n + 1)).collect::<String>()
            + "fn f0(x: int64) = x\n";
    for (what, files, code) in [
        ("a large file", one(" ".repeat((16 << 20) + 1)), "E0125"),
        ("a long name", one(format!("const {} = 1\n{job}", "a".repeat(1_001))), "E0130"),
        ("a long name in backticks", one(format!("const `{}` = 1\n{job}", "a b".repeat(1_000))), "E0130"),
        ("brackets", one(format!("const x = {}1{}\n{job}", "(".repeat(10_000), ")".repeat(10_000))), "E0124"),
        (
            "types",
            one(format!("record R {{ x: {}int64{} }}\n{job}", "list<".repeat(10_000), ">".repeat(10_000))),
            "E0124",
        ),
        ("lists", value("[", "1", "]"), "E0124"),
        ("calls", value("abs(", "1", ")"), "E0124"),
        ("conditions", value("if true then 1 else ", "1", ""), "E0124"),
        ("matches", value("match 1 { 1 => ", "1", ", else => 0 }"), "E0124"),
        ("negations", value("not ", "true", ""), "E0124"),
        ("conversions", value("", "1", " as int64"), "E0124"),
        ("parts", value("", "a", ".b"), "E0124"),
        ("items of lists", value("", "a", "[1]"), "E0124"),
        ("records", value("{ a: ", "1", " }"), "E0124"),
        ("texts in texts", value("f\"{", "1", "}\""), "E0124"),
        ("conditions in a row", value("", "true", " and true"), "E0124"),
        ("record types", one(format!("record R {{ x: {} }}\n{job}", nested("record { x: ", "int64", " }"))), "E0124"),
        ("settings", one(job.replace("{}", &format!("{{ {} }}", nested("a { ", "", " }")))), "E0124"),
        ("chains", one(job.replace("sink a", &format!("sink {}", nested("a |> join(", "a", ", on: id)")))), "E0124"),
        (
            "statements",
            one(format!(
                "operator o(x: row int64) -> input {{ on row {{ {} }} }}\n{job}",
                nested("if true { ", "emit row;", " }")
            )),
            "E0124",
        ),
        ("operators", one(format!("const x = 1{}\n{job}", " ?? 1".repeat(10_000))), "E0124"),
        ("minus signs", one(format!("const x = {}1\n{job}", "- ".repeat(10_000))), "E0124"),
        ("files in files", deep, "E0213"),
        ("files", wide, "E0213"),
        ("bytes of files", large, "E0213"),
        ("findings", one(format!("{many}{job}")), "W0203"),
        ("functions that double", one(format!("{functions}{job}")), "E0422"),
    ] {
        let start = Instant::now();
        let compiler = Compiler::with_files(Arc::new(MemoryFiles { files }));
        let checked = compiler.check(Path::new("pipeline.df"));
        let codes: Vec<&str> = checked.diagnostics.iter().map(|problem| problem.code).collect();
        assert!(codes.contains(&code), "{what}: {:?}", &codes[..codes.len().min(5)]);
        assert!(codes.len() <= 1_001, "{what}: {} findings", codes.len());
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: {:?}", start.elapsed());
    }
}
