//! Whether a manifest makes sense: a right check sum only says that somebody wrote it so.

use std::collections::HashSet;
use std::path::{Component, Path};

use dfc_epoch::Sealed;

use crate::manifest::Manifest;
use crate::names;

/// Whether it could have been written by dfc; if not, why.
pub(super) fn manifest(manifest: &Manifest) -> Result<(), String> {
    hexadecimal("lineage", &manifest.lineage, 32)?;
    hexadecimal("writer", &manifest.writer, 16)?;
    if manifest.parallelism == 0 {
        return Err("its parallelism is 0".into());
    }
    distinct("operator", manifest.pipeline.operators.iter().map(|operator| operator.name.as_str()))?;
    distinct("source", manifest.sources.iter().map(|source| source.node.as_str()))?;
    distinct("sink", manifest.sinks.iter().map(|sink| sink.node.as_str()))?;
    for source in &manifest.sources {
        distinct(
            &format!("split of `{}`", source.node),
            source.positions.splits.iter().map(|split| split.split.as_str()),
        )?;
    }
    for part in manifest.parts() {
        if !names::is_safe(&part.name) {
            return Err(format!("`{}` isn't the name of a part", part.name.escape_debug()));
        }
        if part.created_by > manifest.number {
            return Err(format!("part `{}` was written for a later checkpoint, {}", part.name, part.created_by));
        }
    }
    for sink in &manifest.sinks {
        sealed(&sink.node, &sink.sealed, manifest.number)?;
    }
    sealed("rejected rows", &manifest.rejects.sealed, manifest.number)
}

fn sealed(who: &str, epochs: &[Sealed], number: u64) -> Result<(), String> {
    if !epochs.windows(2).all(|pair| pair[0].number < pair[1].number) {
        return Err(format!("the epochs of `{who}` aren't in order"));
    }
    if let Some(later) = epochs.iter().find(|epoch| epoch.number > number) {
        return Err(format!("`{who}` has an epoch {} after the checkpoint", later.number));
    }
    for file in epochs.iter().flat_map(|epoch| &epoch.files) {
        if !spool_name(&file.path) {
            return Err(format!("`{}` isn't a path of a spooled file", file.path.escape_debug()));
        }
        if file.from > file.to {
            return Err(format!("`{}` ends at byte {} and begins at {}", file.path, file.to, file.from));
        }
    }
    Ok(())
}

/// A path without `..`, either absolute or below the spool.
fn spool_name(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && Path::new(path).components().all(|part| !matches!(part, Component::ParentDir | Component::CurDir))
        && Path::new(path).file_name().is_some()
}

fn hexadecimal(what: &str, text: &str, digits: usize) -> Result<(), String> {
    if text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(());
    }
    Err(format!("its {what} isn't {digits} hexadecimal digits"))
}

fn distinct<'a>(what: &str, mut names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    match names.find(|name| !seen.insert(*name)) {
        Some(twice) => Err(format!("{what} `{twice}` is in it twice")),
        None => Ok(()),
    }
}
