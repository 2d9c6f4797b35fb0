//! One mistake, one message: each of a list of mistakes is planted in every sound pipeline of the project, wherever it fits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dfc_compiler::files::MemoryFiles;
use dfc_compiler::{Checked, Compiler};
use dfc_diagnostics::Severity;
use dfc_diagnostics::codes::CODES;

use crate::support::{files_below, read, root};

/// A mistake: its name, a text that sound pipelines have, and what is written in its place. `^` stands for a line's start, `$` for its end.
type Mistake = (&'static str, &'static str, &'static str);

/// Mistakes that have one cause and one place.
const MISTAKES: &[Mistake] = &[
    // Words.
    ("source misspelt", "^source ", "^sorce "),
    ("stream misspelt", "^stream ", "^steram "),
    ("sink misspelt", "^sink ", "^snik "),
    ("record misspelt", "^record ", "^recrod "),
    ("job misspelt", "^job ", "^jbo "),
    ("param misspelt", "^param ", "^parm "),
    ("const misspelt", "^const ", "^cosnt "),
    ("fn misspelt", "^fn ", "^func "),
    ("and in capitals", " and ", " AND "),
    ("or of C", " or ", " || "),
    ("and of C", " and ", " && "),
    ("not equal of SQL", " != ", " <> "),
    ("null in capitals", "is not null", "IS NOT NULL"),
    ("true in capitals", "header: true", "header: True"),
    // Marks.
    ("pipe of the shell", "|> ", "| "),
    ("pipe as an arrow", "|> ", "-> "),
    ("pipe forgotten", "    |> filter(", "    filter("),
    ("method for a link", " |> filter(", ".filter("),
    ("equals for compare", " == ", " = "),
    ("equals for a colon", "schema: ", "schema = "),
    ("colon forgotten", "schema: ", "schema "),
    ("comma forgotten", ", schema: ", " schema: "),
    ("comma doubled", ", schema: ", ",, schema: "),
    ("semicolon at the end", ")$", ");$"),
    ("parenthesis forgotten", ")$", "$"),
    ("parenthesis doubled", ")$", "))$"),
    ("opening parenthesis forgotten", "filter(", "filter "),
    ("bracket forgotten", "by: [", "by: "),
    ("brace forgotten", " {}", " {"),
    ("comment of SQL", "^// ", "^-- "),
    ("comment of Python", "^// ", "^# "),
    ("equals forgotten in a stream", "^stream result = ", "^stream result "),
    ("text without its end", ".csv\"", ".csv"),
    ("text in single quotes", "\"paid\"", "'paid'"),
    ("date in single quotes", "@2026-01-01", "'2026-01-01'"),
    ("date of SQL", "@2026-01-01", "date '2026-01-01'"),
    ("date that is none", "@2026-01-01", "@2026-02-30"),
    // Operators.
    ("filter misspelt", "|> filter(", "|> fliter("),
    ("select misspelt", "|> select(", "|> selcet("),
    ("derive misspelt", "|> derive(", "|> dervie("),
    ("aggregate misspelt", "|> aggregate(", "|> agregate("),
    ("join misspelt", "|> join(", "|> jion("),
    ("lookup misspelt", "|> lookup(", "|> lokup("),
    ("sort misspelt", "|> sort(", "|> srot("),
    ("take misspelt", "|> take(", "|> taek("),
    ("distinct misspelt", "|> distinct(", "|> distinkt("),
    ("union misspelt", "= union(", "= unoin("),
    ("where of SQL", "|> filter(", "|> where("),
    ("group by of others", "|> aggregate(", "|> group_by("),
    ("left_join of others", "|> join(", "|> left_join("),
    ("an operator that isn't there", "|> filter(", "|> zzz("),
    ("source's connector misspelt", "= csv(", "= cvs("),
    ("sink's connector misspelt", "|> csv(", "|> cvs("),
    ("no argument", "|> take(10)", "|> take()"),
    // Arguments.
    ("schema misspelt", "schema: ", "shcema: "),
    ("by misspelt", "by: ", "bye: "),
    ("on misspelt", "on: ", "om: "),
    ("kind misspelt", ", kind: ", ", knid: "),
    ("left misspelt", "kind: left", "kind: lefft"),
    ("take misspelt as an argument", "take: ", "tkae: "),
    ("missing misspelt", ", missing: keep", ", misssing: keep"),
    ("a text for a number", "parallelism: ", "parallelism: \"x\" "),
    ("a setting misspelt", "parallelism: ", "paralelism: "),
    ("an argument twice", "header: true", "header: true, header: true"),
    ("a record that isn't there", "schema: Order", "schema: Ordre"),
    // Names and types.
    ("a field misspelt in a filter", "filter(status", "filter(statsu"),
    ("a field misspelt in a sum", "sum(price", "sum(pirce"),
    ("a field misspelt as a key", "by: [status", "by: [statsu"),
    ("a stream misspelt where it is written", "^sink result ", "^sink reslut "),
    ("a source misspelt where it is read", " = orders$", " = oders$"),
    ("a source misspelt where it is read by a chain", " = orders |>", " = oders |>"),
    ("another name where it is declared", "^source orders ", "^source order_s "),
    ("a function misspelt", "sum(", "summ("),
    ("count misspelt", "count()", "coutn()"),
    ("a function that isn't there", "upper(", "zzz("),
    ("a type misspelt", ": int64", ": int46"),
    ("a type of SQL", ": string", ": varchar"),
    ("a type of others", "id: int64", "id: integer"),
    ("decimal without its digits", "decimal(15, 2)", "decimal()"),
    ("a number for a text", "== \"paid\"", "== 1"),
    ("a text for a number, compared", "id > 1", "id > \"a\""),
    ("an aggregate of a row", "filter(", "filter(count() > 1 and "),
    ("a sum of texts", "sum(price)", "sum(status)"),
    ("a number that is too large", "take(10)", "take(99999999999999999999)"),
    ("division by zero", "id > 1", "id > 1 div 0"),
    ("a default of another type", "date = @", "date = \"x\" ?? @"),
    ("a side misspelt", "right.id", "rigth.id"),
    ("a field of the other side misspelt", "right.id", "right.idd"),
    ("digits turned round", "decimal(15, 2)", "decimal(2, 15)"),
    ("an argument too many", "sum(price)", "sum(price, 2)"),
    ("a field in quotes", "select(id", "select(\"id\""),
    ("an order of others", "desc(", "descending("),
    ("a conversion to a type of others", " as int64", " as integer"),
    ("not null as a comparison", "is not null", "!= null"),
    ("then forgotten", " then ", " "),
    ("else forgotten", " else ", " "),
    ("a setting of errors misspelt", "errors { limit: ", "errors { limt: "),
    ("a block misspelt", "checkpoint {", "checkpont {"),
    ("a type misspelt in a parameter", ": date = @", ": dat = @"),
    ("a field without its type", "id: int64", "id"),
    ("a condition that is none", "filter(status == ", "filter(status + "),
    // Items.
    ("no job", "^job example {}", "^"),
    ("a second stream", "^stream result = orders", "^stream result = orders |> take(1)\nstream result = orders"),
    (
        "a second source",
        "^source orders ",
        "^source orders = csv(\"x.csv\", schema: record { x: int64 })\nsource orders ",
    ),
    ("a second constant", "^const ", "^const tax = 1\nconst tax = \"a\"\nconst "),
    ("a record in a circle", "^record Order {", "^record Order { self: Order?, "),
    ("a constant in a circle", "^const ", "^const loop = loop + 1\nconst "),
    ("a record without a name", "^record Order ", "^record "),
    ("a stream without a name", "^stream result ", "^stream "),
    ("a file that isn't there", "^source ", "^use \"nowhere.df\"\nsource "),
    ("a stream that reads itself", "^stream result = orders", "^stream result = result"),
    ("a second job", "^job ", "^job other {}\njob "),
    ("a second record", "^record Order ", "^record Order { id: int64 }\nrecord Order "),
    ("a dead end", "^stream result ", "^stream nowhere = result |> take(3)\nstream result "),
    ("a source that nothing reads", "^sink ", "^source unread = csv(\"x.csv\", schema: record { id: int64 })\nsink "),
];

/// Pipelines without a finding, by where they come from.
fn sound() -> Vec<(String, BTreeMap<PathBuf, String>)> {
    let mut libraries = BTreeMap::new();
    let mut out = Vec::new();
    for folder in ["examples", "tests/golden"] {
        let folder = root().join(folder);
        for file in files_below(&folder).into_iter().filter(|file| file.extension().is_some_and(|e| e == "df")) {
            let text = read(&folder.join(&file));
            let name = PathBuf::from(file.file_name().expect("a name"));
            libraries.insert(name, text.clone());
            out.push((file.display().to_string(), text));
        }
    }
    let files = |text: String| {
        let mut files = libraries.clone();
        files.insert(PathBuf::from("pipeline.df"), text);
        files
    };
    let mut all: Vec<_> = out.into_iter().map(|(name, text)| (name, files(text))).collect();
    for code in CODES.iter().filter(|code| !code.code.starts_with('R')) {
        for right in super::codes::examples(code.page, "Right") {
            let files = right.into_iter().map(|(name, text)| (PathBuf::from(name), text)).collect();
            all.push((code.code.to_owned(), files));
        }
    }
    // A byte order mark stands at a file's start only; a library may hold what nothing reads.
    let plain = |files: &BTreeMap<PathBuf, String>| {
        let text = files.get(Path::new("pipeline.df"));
        text.is_some_and(|text| !text.starts_with('\u{feff}') && text.lines().any(|line| line.starts_with("job ")))
    };
    all.retain(|(_, files)| plain(files) && errors(files).is_empty());
    assert!(all.len() > 150, "only {} sound pipelines", all.len());
    all
}

fn errors(files: &BTreeMap<PathBuf, String>) -> Vec<&'static str> {
    let compiler = Compiler::with_files(Arc::new(MemoryFiles { files: files.clone() }));
    let Checked { diagnostics, .. } = compiler.check(Path::new("pipeline.df"));
    diagnostics.iter().filter(|found| found.severity == Severity::Error).map(|found| found.code).collect()
}

/// The text with the mistake in each of its places, three at most.
fn planted(text: &str, (_, from, to): Mistake) -> Vec<String> {
    let text = format!("\n{text}");
    let (from, to) = (from.replace(['^', '$'], "\n"), to.replace(['^', '$'], "\n"));
    // Neither in a comment nor in a text.
    let counts = |at: usize| {
        let line = &text[text[..at].rfind('\n').map_or(0, |start| start + 1)..at];
        !line.contains("//") && (from.contains('"') || line.matches('"').count().is_multiple_of(2))
    };
    let places = text.match_indices(&from).filter(|(at, _)| counts(*at));
    places.take(3).map(|(at, _)| format!("{}{to}{}", &text[..at], &text[at + from.len()..])).collect()
}

#[test]
fn one_mistake_gives_one_message() {
    let sound = sound();
    let mut wrong = Vec::new();
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for mistake in MISTAKES {
        for (name, files) in &sound {
            for text in planted(&files[Path::new("pipeline.df")], *mistake) {
                let mut files = files.clone();
                files.insert(PathBuf::from("pipeline.df"), text);
                let found = errors(&files);
                *tried.entry(mistake.0).or_default() += 1;
                if found.len() != 1 {
                    wrong.push(format!("{}: {name}: {found:?}", mistake.0));
                }
            }
        }
    }
    let untried: BTreeSet<&str> = MISTAKES.iter().map(|m| m.0).filter(|name| !tried.contains_key(name)).collect();
    assert!(untried.is_empty(), "no pipeline has a place for {untried:?}");
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), tried.values().sum::<usize>(), wrong.join("\n"));
}
