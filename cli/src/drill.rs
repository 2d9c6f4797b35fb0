//! `dfc drill`: kills a job at random, lets it go on, and compares what comes out with a run without kills (F9, D20).
//!
//! Sources are read where they are; targets and checkpoints lie in a scratch folder of their own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dfc_ir::StagePlan;
use dfc_ir::Value;
use dfc_ir::plan::OptionValue;
use dfc_ir::stage::{StageInput, StageOutput};

use crate::Outcome;
use crate::args::{DrillArgs, Format};
use crate::report;

/// Sinks whose content can be compared line by line.
const COMPARED: [&str; 2] = ["csv", "jsonl"];

/// Runs the command.
pub fn drill(args: &DrillArgs) -> Result<Outcome> {
    let compiler = report::compiler(&args.job.set);
    let guarantees = compiler.summary(&args.job.file).guarantees;
    let plan = match compiler.plan(&args.job.file) {
        Ok(plan) => plan,
        Err(refused) => {
            report::findings(&[&refused], Format::Human)?;
            eprintln!("{}; nothing was run", report::verdict(&args.job.file, &refused));
            return Ok(Outcome::Failed);
        }
    };
    let stages = dfc_planner::plan_stages(&plan);
    if let Some(why) = unfit(&stages) {
        eprintln!("error: this job can't be drilled: {why}");
        return Ok(Outcome::Failed);
    }
    let scratch = tempfile::Builder::new().prefix("dfc-drill-").tempdir().context("no scratch folder can be made")?;
    println!("reads {}; writes to {} only", amount(&stages), scratch.path().display());
    let plain = scratch.path().join("plain");
    let begun = Instant::now();
    // One time for all runs: what depends on `now()` can be compared too.
    let now = crate::jobs::now_micros();
    let output = start(args, &plain, 0, now)?.wait_with_output()?;
    if !output.status.success() {
        bail!("the job fails without a kill:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let whole = begun.elapsed();
    println!("without a kill: {}", seconds(whole));
    let killed = scratch.path().join("killed");
    let (mut kills, mut resumed) = (0, 0);
    // A tenth of the time between checkpoints of their own: there is something to go on from.
    let interval = (whole / 10).max(Duration::from_millis(5)).as_millis() as u64;
    let mut dice = args.seed.max(1);
    let mut idle = 0;
    loop {
        let mut child = start(args, &killed, interval, now)?;
        // More often than asked for, until the job has gone on from a checkpoint: only that shows anything.
        let last = kills >= args.kills && (resumed > 0 || kills >= 10 * args.kills);
        if !last {
            std::thread::sleep(whole.mul_f64(roll(&mut dice)));
            // This command's own child; it may have ended before.
            let _ = child.kill();
        }
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        resumed += u32::from(said.contains("going on from checkpoint"));
        match (output.status.success(), output.status.code()) {
            (true, _) if last => break,
            (true, _) => {
                // It was done before it could be killed: from the start, with what it has written.
                idle += 1;
                compare_and_clear(&plain, &killed)?;
                if idle > 10 * args.kills {
                    break;
                }
            }
            (false, None) => kills += 1,
            (false, Some(_)) => bail!("the job fails after {kills} kills:\n{said}"),
        }
    }
    let found = compare(&plain, &killed)?;
    println!("killed {kills} times, went on from a checkpoint {resumed} times (seed {})", args.seed);
    println!("lost rows: {}, repeated rows: {}", found.lost, found.repeated);
    if args.kills > 0 && resumed == 0 {
        eprintln!("error: that shows nothing: the job went on from no checkpoint; it ends too fast, give it more rows");
        return Ok(Outcome::Failed);
    }
    if found != Found::default() {
        // No loss then, but another choice.
        let varies = guarantees.iter().flat_map(|guarantees| &guarantees.varies);
        varies.for_each(|what| println!("not the same in every run: {what}"));
    }
    Ok(if found == Found::default() { Outcome::Fine } else { Outcome::Failed })
}

/// Why a job can't be drilled.
fn unfit(stages: &StagePlan) -> Option<String> {
    if stages.job.checkpoint.is_none() {
        return Some("it takes no checkpoints (`checkpoint: off`)".into());
    }
    for stage in &stages.stages {
        if let StageInput::Source { node, spec, .. } = &stage.input
            && spec.options.get("path").and_then(OptionValue::text) == Some("-")
        {
            return Some(format!("`{node}` reads the standard input, which can be read only once"));
        }
        for output in &stage.outputs {
            if let StageOutput::Sink { node, spec, .. } = output
                && !COMPARED.contains(&spec.connector.as_str())
            {
                return Some(format!("`{node}` is {}; targets that are compared are csv and jsonl", spec.connector));
            }
        }
    }
    None
}

/// What the sources hold.
fn amount(stages: &StagePlan) -> String {
    let mut bytes = 0;
    let mut names = Vec::new();
    for stage in &stages.stages {
        if let StageInput::Source { node, spec, .. } = &stage.input {
            names.push(format!("`{node}`"));
            let path = spec.options.get("path").and_then(OptionValue::text).unwrap_or_default();
            let paths = glob::glob(path).into_iter().flatten().flatten();
            bytes += paths.filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum::<u64>();
        }
    }
    format!("{} ({:.1} MB in files)", names.join(", "), bytes as f64 / 1e6)
}

fn start(args: &DrillArgs, scratch: &Path, interval_ms: u64, now_micros: i64) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe().context("where dfc is can't be found out")?);
    command.arg("run").arg(&args.job.file).arg("--scratch").arg(scratch);
    command.arg("--scratch-now").arg(now_micros.to_string());
    if interval_ms > 0 {
        command.arg("--scratch-interval").arg(interval_ms.to_string());
    }
    for (name, value) in &args.job.set {
        command.arg("--set").arg(format!("{name}={value}"));
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().context("the job can't be started")
}

/// A share of a whole, from xorshift64*.
fn roll(dice: &mut u64) -> f64 {
    *dice ^= *dice >> 12;
    *dice ^= *dice << 25;
    *dice ^= *dice >> 27;
    (dice.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
}

/// What is different after kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Found {
    lost: u64,
    repeated: u64,
}

fn compare_and_clear(plain: &Path, killed: &Path) -> Result<()> {
    let found = compare(plain, killed)?;
    if found != Found::default() {
        bail!("lost rows: {}, repeated rows: {}", found.lost, found.repeated);
    }
    std::fs::remove_dir_all(killed).context("the scratch folder can't be emptied")
}

/// Compares what two runs have written, as bags of lines.
fn compare(plain: &Path, killed: &Path) -> Result<Found> {
    let mut found = Found::default();
    for file in files(&plain.join("out"))? {
        let other = killed.join("out").join(&file);
        let mut counts: HashMap<Vec<u8>, i64> = HashMap::new();
        for (path, step) in [(plain.join("out").join(&file), 1), (other, -1)] {
            let bytes = std::fs::read(&path).with_context(|| format!("`{}` can't be read", path.display()))?;
            bytes.split(|byte| *byte == b'\n').for_each(|line| *counts.entry(line.to_vec()).or_default() += step);
        }
        for count in counts.into_values() {
            found.lost += u64::try_from(count).unwrap_or(0);
            found.repeated += u64::try_from(-count).unwrap_or(0);
        }
    }
    Ok(found)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("`{}` can't be listed", folder.display()))?;
    Ok(entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name()))).collect())
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Leads a job's targets into a scratch folder: for `dfc run --scratch`, which only [`drill`] calls.
pub fn into_scratch(stages: &mut StagePlan, scratch: &Path, interval_ms: Option<u64>) {
    let mut number = 0;
    for output in stages.stages.iter_mut().flat_map(|stage| &mut stage.outputs) {
        let StageOutput::Sink { spec, .. } = output else { continue };
        number += 1;
        let path = scratch.join("out").join(format!("{number}.{}", spec.connector)).display().to_string();
        spec.options.insert("path".into(), OptionValue::Value(Value::string(path)));
        if spec.options.contains_key("compression") {
            spec.options.insert("compression".into(), OptionValue::Name("none".into()));
        }
    }
    if let (Some(settings), Some(interval)) = (&mut stages.job.checkpoint, interval_ms) {
        settings.interval_ms = interval;
    }
}
