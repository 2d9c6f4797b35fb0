//! `dfc lsp`: the language server, over standard input and output.

use std::io::BufReader;

use anyhow::{Context, Result};
use dfc_lsp::Ended;

use crate::Outcome;
use crate::args::LspArgs;
use crate::report;

/// Serves the editor that started it until it leaves. What is said of a file is what `dfc check` says, from the same answers.
pub fn lsp(args: &LspArgs) -> Result<Outcome> {
    // There is one way only; the flag is taken because editors give it.
    let LspArgs { stdio: _ } = args;
    let ended = dfc_lsp::serve(report::compiler(&[]), BufReader::new(std::io::stdin()), std::io::stdout())
        .context("the language server's connection")?;
    Ok(match ended {
        Ended::Properly => Outcome::Fine,
        Ended::Abruptly => Outcome::Failed,
    })
}
