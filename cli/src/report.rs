//! Shows findings of the compiler and failures of a run.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use dfc_compiler::{Checked, Compiler};
use dfc_diagnostics::render::{self, FileText};
use dfc_diagnostics::{Diagnostic, Severity};
use dfc_engine::RunError;
use dfc_ir::Site;
use dfc_ir::plan::SiteInfo;

use crate::args::Format;
use crate::schema::Connectors;

/// A compiler with the parameters' values from the command line. It may look at files of data for their fields.
pub fn compiler(set: &[(String, String)]) -> Compiler {
    let mut compiler = Compiler::new();
    compiler.set_catalog(Arc::new(Connectors::Offline));
    compiler.set_params(set.iter().cloned().collect::<BTreeMap<_, _>>());
    compiler
}

/// Whether standard error may be coloured.
fn color() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes the findings of one or more checks: for people to standard error, for tools to standard output.
pub fn findings(checks: &[&Checked], format: Format) -> Result<()> {
    let each = |form: fn(&[Diagnostic], &[FileText]) -> String| -> String {
        checks.iter().map(|checked| form(&checked.diagnostics, &checked.files)).collect()
    };
    let text = match format {
        Format::Human => {
            let text: String = checks.iter().map(|c| render::human(&c.diagnostics, &c.files, color())).collect();
            std::io::stderr().lock().write_all(text.as_bytes())?;
            return Ok(());
        }
        Format::Json => each(render::json),
        Format::Github => each(render::github),
        Format::Sarif => {
            let parts: Vec<_> = checks.iter().map(|c| (c.diagnostics.as_slice(), c.files.as_slice())).collect();
            render::sarif(&parts)
        }
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// `pipeline.df: 2 errors, 1 warning`
pub fn verdict(file: &Path, checked: &Checked) -> String {
    let count = |severity| checked.diagnostics.iter().filter(|d| d.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let text = match (errors, warnings) {
        (0, 0) => "no errors".to_owned(),
        (0, w) => format!("no errors, {}", plural(w, "warning")),
        (e, 0) => plural(e, "error"),
        (e, w) => format!("{}, {}", plural(e, "error"), plural(w, "warning")),
    };
    format!("{}: {text}", file.display())
}

/// Writes why a run failed: what, where in the pipeline, what to do.
pub fn failure(error: &RunError, sites: &[SiteInfo]) {
    eprintln!("error[{}]: {error}", error.code());
    if let Some(site) = site(error).and_then(|site| sites.get(site.0 as usize)).filter(|site| site.line > 0) {
        eprintln!("  --> {}:{}:{}", site.file, site.line, site.column);
        eprintln!("   |  {}", site.text);
    }
    if let RunError::RowLimit { first, .. } = error
        && let Some(raw) = &first.raw
    {
        eprintln!("row:  {}", row(raw));
    }
    if let Some(help) = error.help() {
        eprintln!("help: {help}");
    }
    eprintln!("more: dfc explain {}", error.code());
}

/// A row's text on one line, shortened.
fn row(raw: &str) -> String {
    let line = raw.trim_end().replace('\r', "\\r").replace('\n', "\\n");
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn site(error: &RunError) -> Option<Site> {
    match error {
        RunError::RowLimit { first, .. } => Some(first.site),
        RunError::Group(error) => Some(error.site),
        _ => None,
    }
}
