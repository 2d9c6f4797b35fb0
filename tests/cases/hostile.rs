//! Files that break readers: the run ends with a result or with an error that names the place, never with a panic.

use std::path::Path;

use crate::support::{Output, dfc, folder, read};

/// A pipeline that copies `in.csv` to `out.csv`, with these fields and these arguments of the source.
fn copying(fields: &str, arguments: &str) -> String {
    format!(
        "job copy {{}}\nrecord R {{ {fields} }}\nsource a = csv(\"in.csv\", schema: R{arguments})\nsink a |> csv(\"out.csv\")\n"
    )
}

fn run(dir: &Path) -> Output {
    let output = dfc(dir, &["run", "pipeline.df", "--parallelism", "3"]);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    assert!(output.code == 0 || output.code == 1, "exit code {}: {}", output.code, output.stderr);
    output
}

fn copy(fields: &str, arguments: &str, data: &[u8]) -> (Output, Option<String>) {
    let dir = folder(&[("pipeline.df", &copying(fields, arguments))]);
    std::fs::write(dir.path().join("in.csv"), data).expect("the input can be written");
    let output = run(dir.path());
    let result = dir.path().join("out.csv");
    let text = result.exists().then(|| read(&result));
    assert_eq!(output.code == 0, text.is_some(), "a result exists exactly when the run ended well: {}", output.stderr);
    (output, text)
}

#[test]
fn a_field_of_64_megabytes() {
    let huge = "x".repeat(64 << 20);
    let (output, text) = copy("id: int64, s: string", "", format!("id,s\n1,a\n2,\"{huge}\"\n3,b\n").as_bytes());
    let text = text.unwrap_or_else(|| panic!("{}", output.stderr));
    assert!(text.starts_with("id,s\n1,a\n2,x") && text.ends_with("\n3,b\n") && text.len() > huge.len());
}

#[test]
fn rows_of_ten_thousand_columns() {
    let header: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    let row: Vec<String> = (0..10_000).map(|i| i.to_string()).collect();
    let line = row.join(",");
    let data = format!("{}\n{}", header.join(","), format!("{line}\n").repeat(50));
    let (output, text) = copy("c0: int64, c9999: int64", "", data.as_bytes());
    assert_eq!(text.unwrap_or_else(|| panic!("{}", output.stderr)), format!("c0,c9999\n{}", "0,9999\n".repeat(50)));
}

#[test]
fn random_bytes() {
    let mut state = 1u64;
    let bytes: Vec<u8> = (0..8 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    let (output, _) = copy("a: string", ", header: false, ragged: truncate", &bytes);
    assert_eq!(output.code, 1, "random bytes are no UTF-8");
    assert!(output.stderr.contains("in.csv"), "{}", output.stderr);
    let (_, _) = copy("a: string", ", header: false, ragged: truncate, encoding: latin1", &bytes);
}

#[test]
fn small_and_odd_files() {
    let fields = "a: string?, b: string?";
    let ok = |data: &str, wanted: &str| {
        let (output, text) = copy(fields, "", data.as_bytes());
        assert_eq!(text.unwrap_or_else(|| panic!("{data:?}: {}", output.stderr)), wanted, "{data:?}");
    };
    ok("a,b\n", "a,b\n");
    ok("a,b", "a,b\n");
    ok("a,b\n1,2", "a,b\n1,2\n");
    ok("a,b\r\n1,2\r\n", "a,b\n1,2\n");
    ok("b,a\n1,2\n", "a,b\n2,1\n");
    ok("a,b\n\"1\n1\",2\n", "a,b\n\"1\n1\",2\n");
    let (output, text) = copy(fields, "", b"");
    assert!(text.is_none() && output.stderr.contains("header"), "an empty file has no header: {}", output.stderr);
    let (output, text) = copy(fields, "", b"a,b\n\"1,2\n3,4\n");
    assert!(text.is_none() && output.stderr.contains("quote"), "an open quote is named: {}", output.stderr);
    let (output, text) = copy(fields, "", b"a,b\n1,2,3\n");
    assert!(text.is_none() && output.stderr.contains("3 fields"), "a ragged row is named: {}", output.stderr);
    let (output, text) = copy(fields, "", b"a,a,b\n1,2,3\n");
    assert!(text.is_none() && output.stderr.contains("`a`"), "a doubled header is named: {}", output.stderr);
    let (output, text) = copy(fields, "", b"x,b\n1,2\n");
    assert!(text.is_none() && output.stderr.contains("`a`"), "a missing column is named: {}", output.stderr);
}

#[test]
fn quoted_newlines_on_every_chunk_border() {
    // Rows of odd lengths over several megabytes: some border of the reader's chunks falls into each kind of place.
    let mut data = String::from("id,s\n");
    let mut wanted = String::from("id,s\n");
    for id in 0..120_000 {
        let row = match id % 5 {
            0 => format!("{id},\"line\nbreak, {}\"\n", "é".repeat(id % 17)),
            1 => format!("{id},\"say \"\"{id}\"\"\"\n"),
            2 => format!("{id},plain{}\n", "p".repeat(id % 23)),
            3 => format!("{id},\"\n\n\"\n"),
            _ => format!("{id},\"a,b\"\n"),
        };
        data.push_str(&row);
        wanted.push_str(&row);
    }
    let (output, text) = copy("id: int64, s: string", "", data.as_bytes());
    let text = text.unwrap_or_else(|| panic!("{}", output.stderr));
    assert!(text == wanted, "the copy differs from the file");
}
