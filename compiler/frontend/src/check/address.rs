//! Addresses of servers that stand in the text: whether they can be one, before anything is asked of them (D9).
//!
//! It may not know what a connector does with them.

use dfc_grammar::ast::Expr;
use dfc_typeck::LocalDiagnostic;
use url::Url;

use super::ItemContext;
use crate::bind::Bound;
use crate::operators::Param;

/// For each connector how its addresses begin, and how one is written.
const WRITTEN: &[(&str, &[&str], &str)] =
    &[("postgres", &["postgres", "postgresql"], "postgres://user:password@host:5432/database")];

impl ItemContext<'_> {
    /// Looks at the `url` of a connector that has one. The message never shows it: it may hold a password.
    pub(super) fn address(&mut self, bound: &Bound<'_>, param: &Param, text: &str, e: &Expr) -> Option<()> {
        let connector = &bound.operator.name;
        let Some((_, schemes, example)) = WRITTEN.iter().find(|(name, ..)| name == connector && param.name == "url")
        else {
            return Some(());
        };
        let Err(why) = wrong(text, schemes) else { return Some(()) };
        let message = format!("`url` of `{connector}` {why}");
        self.error(
            LocalDiagnostic::error("E0606", self.loc(e.span), message, "no address")
                .help(format!("it is written `{example}`, best kept outside: `secret(\"PG_URL\")`")),
        );
        None
    }
}

/// What an address lacks, as the end of a sentence.
fn wrong(text: &str, schemes: &[&str]) -> Result<(), String> {
    if !schemes.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://"))) {
        return Err(format!("doesn't begin with `{}://`", schemes[0]));
    }
    let url = Url::parse(text).map_err(|why| format!("is no address: {why}"))?;
    if url.username().is_empty() { Err("names no user".to_owned()) } else { Ok(()) }
}
