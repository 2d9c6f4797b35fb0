//! Any text: a tree and errors that point into it, never a crash.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parse = dfc_grammar::parse(text);
    for error in &parse.errors {
        assert!(text.get(error.span.start as usize..error.span.end as usize).is_some());
    }
    for item in &parse.file.items {
        assert!(text.get(item.start as usize..(item.start + item.len) as usize).is_some());
    }
    dfc_grammar::dump_ast(&parse);
});
