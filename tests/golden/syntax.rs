//! `syntax/NAME.df` with its tokens (`NAME.tokens`) and its tree (`NAME.ast`). Only
//! `broken.df` has mistakes; what is said of them stands in `diagnostics/many-broken-items.out`.

use crate::support::golden::{Golden, inputs};
use crate::support::read;

#[test]
fn tokens_and_trees() {
    let mut golden = Golden::default();
    for file in inputs("syntax", "df") {
        let text = read(&file);
        let parse = dfc_grammar::parse(&text);
        let joined: String = parse.tokens.iter().map(|t| &text[t.span.start as usize..t.span.end as usize]).collect();
        assert_eq!(joined, text, "{}: the tokens' texts joined are the file", file.display());
        let broken = file.file_stem().is_some_and(|name| name == "broken");
        assert_eq!(parse.errors.is_empty(), !broken, "{}: {:?}", file.display(), parse.errors);
        golden.check(&file.with_extension("tokens"), &dfc_grammar::dump_tokens(&parse, &text));
        golden.check(&file.with_extension("ast"), &dfc_grammar::dump_ast(&parse));
    }
    golden.finish();
}
