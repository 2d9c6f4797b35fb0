//! Any text: the texts of its tokens, joined, are the text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut end = 0;
    for token in dfc_grammar::lex(text) {
        assert_eq!(token.span.start, end);
        assert!(text.get(token.span.start as usize..token.span.end as usize).is_some());
        end = token.span.end;
    }
    assert_eq!(end as usize, text.len());
});
