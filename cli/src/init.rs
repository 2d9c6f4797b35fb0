//! `dfc init`: a small pipeline with data, ready to run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::Outcome;
use crate::args::InitArgs;

/// The files that are made, with their texts.
const FILES: [(&str, &str); 3] = [
    ("pipeline.df", include_str!("../template/pipeline.df")),
    ("data/orders.csv", include_str!("../template/data/orders.csv")),
    ("data/customers.csv", include_str!("../template/data/customers.csv")),
];

/// Runs the command. Nothing is written if one of the files is there already.
pub fn init(args: &InitArgs) -> Result<Outcome> {
    for (name, _) in FILES {
        let path = args.dir.join(name);
        if path.exists() {
            bail!("`{}` is there already: nothing was written; name another folder, `dfc init DIR`", path.display());
        }
    }
    for (name, text) in FILES {
        write_new(&args.dir.join(name), text)?;
    }
    let pipeline = args.dir.join("pipeline.df");
    eprintln!("made {}", FILES.map(|(name, _)| args.dir.join(name).display().to_string()).join(", "));
    eprintln!("next: dfc check {0}\n      dfc run {0}", pipeline.display());
    Ok(Outcome::Fine)
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("can't make the folder `{}`", parent.display()))?;
    }
    fs::write(path, text).with_context(|| format!("can't write `{}`", path.display()))
}
