//! Any text: formatted, it has the same tree and the same mistakes, and formatting it again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fn tree(text: &str) -> Vec<String> {
    let dump = dfc_grammar::dump_ast(&dfc_grammar::parse(text));
    dump.lines().map(|line| line.split(" @").next().unwrap_or("").to_owned()).collect()
}

fuzz_target!(|text: &str| {
    let new = dfc_grammar::format(text).text;
    assert_eq!(tree(&new), tree(text));
    assert_eq!(dfc_grammar::parse(&new).errors.len(), dfc_grammar::parse(text).errors.len());
    assert_eq!(dfc_grammar::format(&new).text, new);
});
