//! `dfc explain`: the page of an error code.

use std::io::Write;

use anyhow::Result;
use dfc_diagnostics::codes;

use crate::Outcome;
use crate::args::ExplainArgs;

/// Runs the command.
pub fn explain(args: &ExplainArgs) -> Result<Outcome> {
    let mut out = std::io::stdout().lock();
    let Some(wanted) = &args.code else {
        for code in codes::CODES {
            writeln!(out, "{}  {}", code.code, code.title)?;
        }
        return Ok(Outcome::Fine);
    };
    match codes::explain(wanted.trim()) {
        Some(code) => {
            writeln!(out, "{}", code.page.trim_end())?;
            Ok(Outcome::Fine)
        }
        None => {
            eprintln!("error: there is no code `{wanted}`; `dfc explain` lists all of them");
            Ok(Outcome::WrongUse)
        }
    }
}
