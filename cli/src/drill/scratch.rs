//! Where a job that is drilled writes, and what it reads to the end.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dfc_connect::{ConnectError, scratch};
use dfc_ir::StagePlan;
use dfc_ir::plan::{Op, Options, Plan, SinkSpec};
use dfc_ir::stage::{StageInput, StageOutput};

/// What leads a source on: a drill ends.
const ENDLESS: [&str; 3] = ["poll", "lag", "follow"];

/// The folder of the targets in a scratch folder.
const OUT: &str = "out";

/// The folder of rejected rows in a scratch folder.
pub const REJECTED: &str = "rejected";

/// A scratch folder with the targets that belong to it. What lies outside of it goes with this value.
pub struct Scratch {
    folder: PathBuf,
    /// The sinks' names, and where they really write.
    sinks: Vec<(String, SinkSpec)>,
}

impl Scratch {
    /// Of a plan's sinks; nothing is made yet.
    pub fn new(plan: &Plan, folder: PathBuf) -> Scratch {
        let sinks = plan.nodes.iter().filter_map(|node| match &node.op {
            Op::Sink(spec) => Some((node.name.clone(), spec.clone())),
            _ => None,
        });
        Scratch { sinks: sinks.collect(), folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What will be made outside of the folder, for people.
    pub fn outside(&self) -> Option<String> {
        self.sinks.iter().find_map(|(_, spec)| scratch::outside(spec, &self.folder))
    }

    /// Makes the folder and the targets that have to be there.
    pub fn prepare(&self) -> Result<()> {
        std::fs::create_dir_all(self.folder.join(OUT)).context("the scratch folder can't be made")?;
        for (name, spec) in &self.sinks {
            scratch::prepare(spec, &self.folder, &inside(name)).map_err(|error| said(name, &error))?;
        }
        Ok(())
    }

    /// Removes it all.
    pub fn clear(&self) -> Result<()> {
        for (name, spec) in &self.sinks {
            scratch::remove(spec, &self.folder).map_err(|error| said(name, &error))?;
        }
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context("the scratch folder can't be emptied")
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            eprintln!("warning: {error:#}");
        }
    }
}

fn said(name: &str, error: &ConnectError) -> anyhow::Error {
    let help = error.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    anyhow::anyhow!("`{name}`: {}{help}", error.message)
}

/// An operator's name as that of a file among the targets.
fn inside(name: &str) -> String {
    format!("{OUT}/{name}")
}

/// A sink led into a scratch folder.
pub fn elsewhere(name: &str, spec: &SinkSpec, folder: &Path) -> SinkSpec {
    scratch::elsewhere(spec, folder, &inside(name))
}

/// A source's arguments without what leads it on.
pub fn bounded(options: &Options) -> Options {
    let kept = options.iter().filter(|(name, _)| !ENDLESS.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Leads a job's targets into a scratch folder, and ends its sources: for `dfc run --scratch`, which only a drill calls.
pub fn lead(stages: &mut StagePlan, folder: &Path, interval_ms: Option<u64>) {
    for stage in &mut stages.stages {
        if let StageInput::Source { spec, .. } = &mut stage.input {
            spec.options = bounded(&spec.options);
        }
        for output in &mut stage.outputs {
            if let StageOutput::Sink { node, spec, .. } = output {
                *spec = elsewhere(node, spec, folder);
            }
        }
    }
    if let (Some(settings), Some(interval)) = (&mut stages.job.checkpoint, interval_ms) {
        settings.interval_ms = interval;
    }
}
