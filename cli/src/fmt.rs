//! `dfc fmt`: gives `.df` files the one style, in place.
//!
//! Knows files and folders; the style is the grammar's. An item with a syntax error stays as it is.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::Outcome;
use crate::args::FmtArgs;

/// What became of a file.
enum Done {
    /// It has the style.
    Same,
    /// It has it now, or would have to change.
    Changed,
}

/// Runs the command. A file that can't be read or written is reported and the others go on; the exit code is 2 then, and 1
/// if `--check` finds files that would change.
pub fn fmt(args: &FmtArgs) -> Result<Outcome> {
    let (mut changed, mut failed) = (0usize, false);
    let mut report = |error: anyhow::Error| {
        eprintln!("error: {error:#}");
        failed = true;
    };
    for path in &args.files {
        if path.as_os_str() == "-" {
            match standard_input(args.check) {
                Ok(Done::Same) => {}
                Ok(Done::Changed) => changed += 1,
                Err(error) if crate::is_broken_pipe(&error) => return Err(error),
                Err(error) => report(error),
            }
            continue;
        }
        let mut files = Vec::new();
        if let Err(error) = collect(path, &mut files) {
            report(error);
        }
        for file in files {
            match one(&file, args.check) {
                Ok(Done::Same) => {}
                Ok(Done::Changed) => {
                    changed += 1;
                    let verb = if args.check { "would change" } else { "formatted" };
                    eprintln!("{}: {verb}", file.display());
                }
                Err(error) => report(error),
            }
        }
    }
    Ok(match (failed, args.check && changed > 0) {
        (true, _) => Outcome::WrongUse,
        (false, true) => Outcome::Failed,
        (false, false) => Outcome::Fine,
    })
}

/// The file itself, or the `.df` files below a folder in the order of their names; hidden folders and links to folders are
/// left out.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let about = || format!("can't read `{}`", path.display());
    if !fs::metadata(path).with_context(about)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries: std::io::Result<Vec<fs::DirEntry>> = fs::read_dir(path).with_context(about)?.collect();
    let mut entries = entries.with_context(about)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if entry.file_type().with_context(about)?.is_dir() {
            if !hidden {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "df") && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Formats one file, written only where it changes.
fn one(path: &Path, check: bool) -> Result<Done> {
    let text = utf8(fs::read(path).with_context(|| format!("can't read `{}`", path.display()))?, path)?;
    let formatted = dfc_grammar::format(&text);
    if formatted.edits.is_empty() {
        return Ok(Done::Same);
    }
    if !check {
        replace(path, &formatted.text).with_context(|| format!("can't write `{}`", path.display()))?;
    }
    Ok(Done::Changed)
}

/// Standard input to standard output; with `check` nothing is written.
fn standard_input(check: bool) -> Result<Done> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("can't read the standard input")?;
    let text = utf8(bytes, Path::new("-"))?;
    let formatted = dfc_grammar::format(&text);
    if !check {
        std::io::stdout().lock().write_all(formatted.text.as_bytes())?;
    } else if !formatted.edits.is_empty() {
        eprintln!("-: would change");
    }
    Ok(if formatted.edits.is_empty() { Done::Same } else { Done::Changed })
}

fn utf8(bytes: Vec<u8>, path: &Path) -> Result<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            bail!("`{}` is not UTF-8 (byte {at}): save it in UTF-8", path.display())
        }
    }
}

/// Puts a text in a file's place in one step: whoever reads it sees the old text or the new one. Links are followed.
fn replace(path: &Path, text: &str) -> Result<()> {
    let target = fs::canonicalize(path)?;
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(fs::metadata(&target)?.permissions())?;
    new.as_file().sync_all()?;
    new.persist(&target)?;
    Ok(())
}
