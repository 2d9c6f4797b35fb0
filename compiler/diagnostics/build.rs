//! Makes the registry of codes from the pages in `codes/`: one file a code, its first line `# CODE: title`.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=codes");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("codes");
    let mut pages: Vec<(String, String)> = fs::read_dir(&folder)
        .expect("the folder `codes` is part of this crate")
        .filter_map(|entry| {
            let path = entry.expect("a readable folder").path();
            let code = path.file_stem()?.to_str()?.to_string();
            let is_page = path.extension()? == "md" && code.len() == 5;
            is_page.then(|| (code, fs::canonicalize(&path).expect("an existing page").display().to_string()))
        })
        .collect();
    pages.sort();
    let mut out = String::from("&[\n");
    for (code, path) in &pages {
        let text = fs::read_to_string(path).expect("a readable page");
        let heading = format!("# {code}: ");
        let title = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(&heading))
            .unwrap_or_else(|| panic!("{path}: the first line must be `{heading}` and a title"));
        writeln!(out, "    Code {{ code: {code:?}, title: {title:?}, page: include_str!({path:?}) }},")
            .expect("writing to a string can't fail");
    }
    out.push_str("]\n");
    let target = Path::new(&env::var("OUT_DIR").expect("set by cargo")).join("codes.rs");
    fs::write(target, out).expect("OUT_DIR can be written");
}
