//! `dfc check`: finds what is wrong, without running anything (D5). Of data only the fields are looked at, and those only of
//! sources that declare none; the network is asked with `--connect` alone.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use dfc_compiler::{Checked, Summary};

use crate::Outcome;
use crate::args::{CheckArgs, Format};
use crate::lock::{self, Drift};
use crate::report;
use crate::schema::Connectors;

/// Runs the command. Each file is checked by itself, with the libraries it uses.
pub fn check(args: &CheckArgs) -> Result<Outcome> {
    let mut drifts: Vec<Drift> = Vec::new();
    let mut checks: Vec<Checked> = Vec::new();
    let mut summaries: Vec<Summary> = Vec::new();
    for file in &args.files {
        let mut compiler = report::compiler(&args.set);
        let mut drift = Drift::None;
        if args.connect {
            compiler.set_catalog(Arc::new(Connectors::Connected));
            drift = lock::renew(&mut compiler, file)?.max(lock::connect(&compiler, file));
        }
        drifts.push(drift);
        checks.push(compiler.check(file));
        if args.verbose {
            summaries.push(compiler.summary(file));
        }
    }
    if args.format == Format::Sarif {
        // One log over all files.
        report::findings(&checks.iter().collect::<Vec<_>>(), args.format)?;
    }
    for (number, (file, checked)) in args.files.iter().zip(&checks).enumerate() {
        if args.format != Format::Sarif {
            report::findings(&[checked], args.format)?;
        }
        if args.format == Format::Human {
            // The text may be right, and what is outside is not what it says.
            match drifts.get(number) == Some(&Drift::Some) && !checked.has_errors() {
                true => eprintln!("{}: its sources have changed, or can't be asked: see above", file.display()),
                false => eprintln!("{}", report::verdict(file, checked)),
            }
        }
        if let Some(summary) = summaries.get(number) {
            streams(summary)?;
        }
    }
    Ok(if checks.iter().any(Checked::has_errors) || drifts.contains(&Drift::Some) {
        Outcome::Failed
    } else {
        Outcome::Fine
    })
}

/// The job's streams with their fields.
fn streams(summary: &Summary) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if let Some(job) = &summary.job {
        writeln!(out, "job {job}")?;
        for line in summary.guarantees.iter().flat_map(|guarantees| guarantees.lines()) {
            writeln!(out, "    {line}")?;
        }
    }
    for stream in summary.streams.iter().chain(&summary.sinks) {
        writeln!(out, "{} {}", stream.role, stream.name)?;
        match &stream.schema {
            Some(schema) => {
                let width = schema.fields.iter().map(|f| f.name.chars().count()).max().unwrap_or(0) + 1;
                for field in &schema.fields {
                    writeln!(out, "    {:width$} {}", format!("{}:", field.name), field.ty)?;
                }
            }
            None => writeln!(out, "    (unknown: see the errors)")?,
        }
    }
    Ok(())
}
