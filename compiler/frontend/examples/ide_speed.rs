//! How long an editor waits: a project of 10,000 lines in several files, links typed key by key into streams all over it,
//! and after every key the questions that an editor asks.
//!
//! `cargo run --release -p dfc-compiler --example ide_speed`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dfc_compiler::Compiler;
use dfc_compiler::files::MemoryFiles;
use dfc_compiler::ide::{self, TextRange};

/// Files that the root uses.
const LIBRARIES: usize = 10;
/// Streams of each.
const STREAMS: usize = 150;
/// Keys that are typed.
const KEYS: usize = 2000;
/// What is typed into a chain.
const TYPED: &str = "\n    |> filter(price > 10 and status == \"paid\")";

fn main() {
    let mut files = BTreeMap::new();
    let mut root = String::from("job speed {}\nuse \"shared.df\"\n");
    let mut shared = String::from("record Order {\n");
    for (name, ty) in [("id", "int64"), ("user_id", "int64"), ("status", "string"), ("price", "decimal(15, 2)")] {
        let _ = writeln!(shared, "    {name}: {ty}");
    }
    for number in 0..20 {
        let _ = writeln!(shared, "    extra_{number}: string?");
    }
    shared.push_str("}\nconst vat = 0.19\nfn gross(net: decimal(15, 2)) = net * (1 + vat)\n");
    files.insert(PathBuf::from("p/shared.df"), shared);
    let mut texts = Vec::new();
    for library in 0..LIBRARIES {
        let _ = writeln!(root, "use \"lib{library}.df\"");
        let mut text = format!("source orders_{library} = csv(\"orders.csv\", schema: Order)\n");
        for stream in 0..STREAMS {
            let from = match stream % 10 {
                0 => format!("orders_{library}"),
                _ => format!("s_{library}_{}", stream - 1),
            };
            let _ = write!(
                text,
                "\n/// Step {stream}.\nstream s_{library}_{stream} = {from}\n    |> filter(id > {stream})\n    \
                 |> derive(total: gross(price), day: today())\n    |> derive(note: upper(status))\n    |> drop(note)\n"
            );
        }
        files.insert(PathBuf::from(format!("p/lib{library}.df")), text.clone());
        texts.push(text);
    }
    let _ = writeln!(root, "sink s_0_0 |> print()");
    files.insert(PathBuf::from("p/main.df"), root);
    let lines: usize = files.values().map(|text| text.lines().count()).sum();
    let mut compiler = Compiler::with_files(Arc::new(MemoryFiles { files }));
    let main = Path::new("p/main.df");
    let start = Instant::now();
    let findings = compiler.findings(main).diagnostics.len();
    println!("{lines} lines, {findings} findings; first check {:?}", start.elapsed());

    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let mut timed = |name: &'static str, work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        times.entry(name).or_default().push(start.elapsed());
    };
    let mut keys = 0;
    'typing: for round in 0.. {
        let library = round % LIBRARIES;
        let path = PathBuf::from(format!("p/lib{library}.df"));
        let stream = (round * 37) % STREAMS;
        let mark = format!("stream s_{library}_{stream} = ");
        let Some(start) = texts[library].find(&mark) else { break };
        let line = texts[library][start..].find('\n').unwrap_or(0);
        let mut offset = start + line;
        for key in TYPED.chars() {
            texts[library].insert(offset, key);
            offset += key.len_utf8();
            let text = texts[library].clone();
            timed("edit", &mut || compiler.set_file(&path, text.clone()));
            timed("completion", &mut || drop(ide::completion(&compiler, main, &path, offset)));
            timed("signature help", &mut || drop(ide::signature_help(&compiler, main, &path, offset)));
            timed("hover", &mut || drop(ide::hover(&compiler, main, &path, offset)));
            let shown = TextRange::new(offset.saturating_sub(1500), offset + 1500);
            timed("inlay hints", &mut || drop(ide::inlay_hints(&compiler, main, &path, shown)));
            timed("diagnostics", &mut || drop(compiler.findings(main)));
            timed("code actions", &mut || drop(ide::code_actions(&compiler, main, &path, TextRange::empty(offset))));
            keys += 1;
            if keys == KEYS {
                break 'typing;
            }
        }
    }
    println!("{keys} keys; milliseconds:");
    println!("{:16} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p95", "p99", "max");
    for (name, list) in &mut times {
        list.sort();
        let at = |share: f64| list[((list.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!("{name:16} {:8.2} {:8.2} {:8.2} {:8.2}", at(0.5), at(0.95), at(0.99), at(1.0));
    }
}
