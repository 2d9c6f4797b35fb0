//! What two runs have written, compared as bags of rows: which are lost, which are there too often. It may not know which run was killed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};
use dfc_ir::plan::{Node, Op, OptionValue, Plan, SinkSpec, SourceSpec};
use dfc_ir::{Schema, Value};

use super::scratch::{REJECTED, elsewhere};
use crate::audit::{content, trace};

/// What is different after kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Rows of the first run.
    pub rows: u64,
    /// Rows that the first run has and the second hasn't.
    pub lost: u64,
    /// Rows that the second has and the first hasn't.
    pub repeated: u64,
}

/// Rows by their hash: how many more of them the first has.
type Bag = HashMap<u64, i64>;

/// Compares what two runs of a plan have written into their scratch folders.
pub fn compare(plan: &Plan, first: &Path, second: &Path) -> Result<Found> {
    let mut found = Found::default();
    for node in &plan.nodes {
        let Op::Sink(spec) = &node.op else { continue };
        let mut bag = Bag::new();
        for (folder, step) in [(first, 1), (second, -1)] {
            let led = elsewhere(&node.name, spec, folder);
            rows(node, &led, &mut |row| {
                found.rows += u64::from(step > 0);
                *bag.entry(row).or_default() += step;
            })
            .with_context(|| format!("what `{}` has written can't be read", node.name))?;
        }
        found.add(bag);
    }
    let mut bag = Bag::new();
    for (folder, step) in [(first, 1), (second, -1)] {
        let rejected = folder.join(REJECTED);
        if rejected.exists() {
            each_file(&rejected, "", &mut |_, file| {
                lines(file, "", 0, &mut |row| *bag.entry(row).or_default() += step)
            })?;
        }
    }
    found.add(bag);
    Ok(found)
}

impl Found {
    /// Nothing is different.
    pub fn same(&self) -> bool {
        self.lost == 0 && self.repeated == 0
    }

    fn add(&mut self, bag: Bag) {
        for count in bag.into_values() {
            self.lost += u64::try_from(count).unwrap_or(0);
            self.repeated += u64::try_from(-count).unwrap_or(0);
        }
    }
}

/// Each row's hash.
fn rows(node: &Node, spec: &SinkSpec, take: &mut dyn FnMut(u64)) -> Result<()> {
    let path = spec.options.get("path").and_then(OptionValue::text).unwrap_or_default();
    match spec.connector.as_str() {
        "csv" | "jsonl" => {
            let header = usize::from(spec.connector == "csv" && !off(spec, "header"));
            match path.ends_with('/') {
                true => each_file(Path::new(path), "", &mut |folder, file| lines(file, folder, header, take)),
                false => lines(Path::new(path), "", header, take),
            }
        }
        "parquet" if path.ends_with('/') => each_file(Path::new(path), "", &mut |folder, file| {
            let by = names(spec, "by");
            let fields = node.schema.fields.iter().filter(|field| !by.contains(&field.name)).cloned().collect();
            let options = [("path".into(), OptionValue::Value(Value::string(file.display().to_string())))];
            let schema = Schema { fields };
            read(
                &SourceSpec {
                    connector: "parquet".into(),
                    options: options.into_iter().collect(),
                    projection: (0..schema.fields.len()).collect(),
                    schema,
                },
                folder,
                take,
            )
        }),
        _ => {
            // The mark of rows that are removed is in no target.
            let mark = names(spec, "delete");
            let mut node = node.clone();
            node.schema.fields.retain(|field| !mark.contains(&field.name));
            read(&trace::target(&node, spec).map_err(anyhow::Error::msg)?, "", take)
        }
    }
}

fn read(spec: &SourceSpec, folder: &str, take: &mut dyn FnMut(u64)) -> Result<()> {
    let all: Vec<usize> = (0..spec.schema.fields.len()).collect();
    content::hashes(spec, &all, |row| take(hash(&(folder, row)))).map_err(anyhow::Error::msg)
}

/// Every finished file below a folder, with the folder it lies in.
fn each_file(folder: &Path, shown: &str, file: &mut dyn FnMut(&str, &Path) -> Result<()>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("`{}`", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type()?.is_dir() {
            _ if name.starts_with('.') => {}
            true => each_file(&entry.path(), &format!("{shown}/{name}"), file)?,
            false => file(shown, &entry.path())?,
        }
    }
    Ok(())
}

fn lines(file: &Path, folder: &str, without: usize, take: &mut dyn FnMut(u64)) -> Result<()> {
    let bytes = std::fs::read(file).with_context(|| format!("`{}`", file.display()))?;
    let lines = bytes.split(|byte| *byte == b'\n').skip(without).filter(|line| !line.is_empty());
    lines.for_each(|line| take(hash(&(folder, line))));
    Ok(())
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn off(spec: &SinkSpec, option: &str) -> bool {
    matches!(spec.options.get(option), Some(OptionValue::Value(Value::Bool(false))))
}

fn names(spec: &SinkSpec, option: &str) -> Vec<String> {
    match spec.options.get(option) {
        Some(OptionValue::Names(names)) => names.clone(),
        Some(OptionValue::Name(name)) => vec![name.clone()],
        _ => Vec::new(),
    }
}
