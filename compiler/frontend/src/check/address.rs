//! Addresses of servers, and names of their tables, that stand in the text: whether they can be such, before anything is asked of the
//! server (D9).
//!
//! It may not know what a connector does with them.

use dfc_grammar::ast::Expr;
use dfc_typeck::LocalDiagnostic;
use url::Url;

use super::ItemContext;
use crate::bind::{Bound, listed};
use crate::operators::Param;

/// What a connector's addresses are like.
struct Written {
    connector: &'static str,
    /// How they begin.
    schemes: &'static [&'static str],
    /// What may stand behind the `?`.
    options: &'static [&'static str],
    /// How one is written.
    example: &'static str,
}

const WRITTEN: &[Written] = &[Written {
    connector: "postgres",
    schemes: &["postgres", "postgresql"],
    options: &["sslmode", "sslrootcert", "application_name", "connect_timeout"],
    example: "postgres://user:password@host:5432/database",
}];

/// How the connection may be secured.
const SSL_MODES: &[&str] = &["disable", "require", "verify-full"];
/// How long may be waited for a server.
const SECONDS: std::ops::RangeInclusive<u32> = 1..=600;

impl ItemContext<'_> {
    /// Looks at the `url` of a connector that has one. The message never shows it: it may hold a password.
    pub(super) fn address(&mut self, bound: &Bound<'_>, param: &Param, text: &str, e: &Expr) -> Option<()> {
        let connector = &bound.operator.name;
        let written = WRITTEN.iter().find(|written| written.connector == connector && param.name == "url");
        let Some((written, Err(why))) = written.map(|written| (written, wrong(text, written))) else { return Some(()) };
        let message = format!("`url` of `{connector}` {why}");
        self.error(
            LocalDiagnostic::error("E0606", self.loc(e.span), message, "no address")
                .help(format!("it is written `{}`, best kept outside: `secret(\"PG_URL\")`", written.example)),
        );
        None
    }

    /// Looks at the `table` of a connector whose tables may stand in schemas.
    pub(super) fn table_name(&mut self, bound: &Bound<'_>, param: &Param, text: &str, e: &Expr) -> Option<()> {
        let connector = &bound.operator.name;
        let qualified = WRITTEN.iter().any(|written| written.connector == connector) && param.name == "table";
        if !qualified || names_table(text) {
            return Some(());
        }
        let message = format!("`table` of `{connector}` is no table's name: `{}`", text.escape_debug());
        self.error(
            LocalDiagnostic::error("E0606", self.loc(e.span), message, "no name")
                .help("it is written `orders` or `sales.orders`; a name with a dot in it stands in double quotes"),
        );
        None
    }
}

/// What an address lacks, as the end of a sentence.
fn wrong(text: &str, written: &Written) -> Result<(), String> {
    let Written { schemes, options, .. } = written;
    if !schemes.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://"))) {
        return Err(format!("doesn't begin with `{}://`", schemes[0]));
    }
    if text.contains('\0') {
        return Err("holds a NUL character".to_owned());
    }
    let url = Url::parse(text).map_err(|why| format!("is no address: {why}"))?;
    if url.username().is_empty() {
        return Err("names no user".to_owned());
    }
    match url.host_str().unwrap_or_default() {
        "" => return Err("names no host".to_owned()),
        host if host.contains(',') => return Err("names several hosts".to_owned()),
        _ => {}
    }
    for option in url.query().unwrap_or_default().split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=').unwrap_or((option, "")) {
            (name, _) if !options.contains(&name) => {
                return Err(format!("has the option `{name}`, which is not allowed; {} are", listed(options)));
            }
            ("sslmode", mode) if !SSL_MODES.contains(&mode) => {
                return Err(format!("has `sslmode={mode}`, and there are {}", listed(SSL_MODES)));
            }
            ("connect_timeout", seconds) if !seconds.parse().is_ok_and(|n: u32| SECONDS.contains(&n)) => {
                return Err("has a `connect_timeout` that is not 1 to 600 seconds".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a text is a table's name, with the name of a schema before it or without; names may stand in double quotes.
fn names_table(text: &str) -> bool {
    let (mut parts, mut inside) = (vec![0usize], false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(length) = parts.last_mut() else { return false };
        match c {
            '"' if inside && chars.peek() == Some(&'"') => {
                chars.next();
                *length += 1;
            }
            '"' if inside || *length == 0 => inside = !inside,
            '.' if !inside => parts.push(0),
            _ => *length += 1,
        }
    }
    !inside && parts.len() <= 2 && parts.iter().all(|length| *length > 0)
}
