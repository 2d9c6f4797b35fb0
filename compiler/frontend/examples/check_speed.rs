//! How long a check takes: pipelines of 1,000 and 10,000 lines cold, and again after one edit, with the queries that ran.
//!
//! `cargo run --release -p dfc-compiler --example check_speed`
//!
//! Each figure is the median of several rounds; the least and the greatest beside it say how noisy the machine is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dfc_compiler::Compiler;
use dfc_compiler::files::MemoryFiles;

/// Lines of a stream with the blank one before it.
const LINES: usize = 6;
/// Times that each figure is taken.
const ROUNDS: usize = 15;
/// What is edited: (what it is called, what stands there, what stands there then).
const EDITS: &[(&str, &str, &str)] = &[
    ("a filter's constant", "filter(id > 77)", "filter(id > 78)"),
    ("a new field", "|> derive(note_77: upper(status))", "|> derive(note_77: upper(status), more_77: id)"),
    ("a blank between items", "stream s_77 ", "\nstream s_77 "),
    ("a constant's value", "const vat = 0.19", "const vat = 0.25"),
    ("a field of a record", "    extra_3: string?", "    extra_3: string"),
];

fn main() {
    for lines in [1_000, 10_000] {
        let text = pipeline(lines);
        let cold = rounds(|| {
            let mut compiler = Compiler::with_files(Arc::new(MemoryFiles { files: BTreeMap::new() }));
            let text = text.clone();
            let start = Instant::now();
            compiler.set_file(Path::new("main.df"), text);
            assert!(!compiler.check(Path::new("main.df")).has_errors());
            start.elapsed()
        });
        println!("{lines} lines, {} bytes: cold {cold}", text.len());
        for (name, from, to) in EDITS {
            let mut compiler = Compiler::with_files(Arc::new(MemoryFiles { files: BTreeMap::new() }));
            let main = PathBuf::from("main.df");
            compiler.set_file(&main, text.clone());
            compiler.check(&main);
            let edited = text.replacen(from, to, 1);
            assert_ne!(edited, text, "{from}");
            let mut turn = false;
            let again = rounds(|| {
                turn = !turn;
                let text = if turn { edited.clone() } else { text.clone() };
                let start = Instant::now();
                compiler.set_file(&main, text);
                compiler.check(&main);
                start.elapsed()
            });
            println!("  after {name}: {again}; ran {}", ran(&text, &edited));
        }
    }
}

/// The queries that an edit makes run, each with how often.
fn ran(text: &str, edited: &str) -> String {
    let mut compiler = Compiler::counting(Arc::new(MemoryFiles { files: BTreeMap::new() }));
    let main = PathBuf::from("main.df");
    compiler.set_file(&main, text.to_owned());
    compiler.check(&main);
    compiler.query_counts();
    compiler.set_file(&main, edited.to_owned());
    compiler.check(&main);
    let counts: Vec<String> = compiler.query_counts().iter().map(|(query, n)| format!("{n} {query}")).collect();
    counts.join(", ")
}

/// A figure taken several times.
fn rounds(mut work: impl FnMut() -> Duration) -> String {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| work()).collect();
    times.sort();
    format!("{:.1?} ({:.1?} to {:.1?})", times[ROUNDS / 2], times[0], times[ROUNDS - 1])
}

/// A sound pipeline of about so many lines: streams in chains of ten, each started from the source.
fn pipeline(lines: usize) -> String {
    let mut text =
        String::from("job speed {}\n\nrecord Order {\n    id: int64\n    status: string\n    price: decimal(15, 2)\n");
    for number in 0..12 {
        let _ = writeln!(text, "    extra_{number}: string?");
    }
    text.push_str("}\n\nconst vat = 0.19\n\nfn gross(net: decimal(15, 2)) = net * (1 + vat)\n\n");
    text.push_str("source orders = csv(\"orders.csv\", schema: Order)\n");
    let streams = lines.saturating_sub(text.lines().count()) / LINES - 1;
    let mut ends = Vec::new();
    for stream in 0..streams {
        let from = if stream % 10 == 0 { "orders".to_owned() } else { format!("s_{}", stream - 1) };
        if stream % 10 == 9 || stream + 1 == streams {
            ends.push(stream);
        }
        let _ = write!(
            text,
            "\nstream s_{stream} = {from}\n    |> filter(id > {stream})\n    |> derive(note_{stream}: upper(status))\n    \
             |> derive(total: gross(price))\n    |> filter(total > {stream} and note_{stream} != \"\")\n"
        );
    }
    text.push_str("\nsink {\n");
    for end in ends {
        let _ = writeln!(text, "    s_{end} |> csv(\"out/{end}.csv\")");
    }
    text.push_str("}\n");
    text
}
