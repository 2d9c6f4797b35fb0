//! `dfc drill`: kills a job at random, lets it go on, and compares what comes out with a run without kills (F9, D20).
//!
//! Sources are read where they are, up to what they hold now; targets and checkpoints lie in a scratch folder of their own, and for
//! PostgreSQL in schemas of their own.

mod compare;
mod scratch;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dfc_ir::plan::{Op, OptionValue, Plan};

use self::compare::compare;
use self::scratch::Scratch;
use crate::args::{DrillArgs, Format};
use crate::audit::content;
use crate::summary::count;
use crate::{Outcome, report};

pub use self::scratch::{REJECTED, lead};

/// Sinks whose content can be compared.
const COMPARED: [&str; 5] = ["csv", "jsonl", "parquet", "sqlite", "postgres"];

/// Runs the command.
pub fn drill(args: &DrillArgs) -> Result<Outcome> {
    let mut compiler = report::compiler(&args.job.set);
    compiler.set_catalog(std::sync::Arc::new(crate::schema::Connectors::Connected));
    let guarantees = compiler.summary(&args.job.file).guarantees;
    let plan = match compiler.plan(&args.job.file) {
        Ok(plan) => plan,
        Err(refused) => {
            report::findings(&[&refused], Format::Human)?;
            eprintln!("{}; nothing was run", report::verdict(&args.job.file, &refused));
            return Ok(Outcome::Failed);
        }
    };
    if let Some(why) = unfit(&plan) {
        eprintln!("error: this job can't be drilled: {why}");
        return Ok(Outcome::Failed);
    }
    let folder = tempfile::Builder::new().prefix("dfc-drill-").tempdir().context("no scratch folder can be made")?;
    let plain = Scratch::new(&plan, folder.path().join("plain"));
    let killed = Scratch::new(&plan, folder.path().join("killed"));
    println!("reads {}", amount(&plan)?.join(", "));
    let schemas: String = [&plain, &killed].iter().flat_map(|it| it.outside()).map(|it| format!(" and {it}")).collect();
    println!("writes to {}{schemas} only", folder.path().display());
    plain.prepare()?;
    let begun = Instant::now();
    // One time for all runs: what depends on `now()` can be compared too.
    let now = crate::jobs::now_micros();
    let output = start(args, plain.folder(), 0, now)?.wait_with_output()?;
    if !output.status.success() {
        bail!("the job fails without a kill:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let whole = begun.elapsed();
    println!("without a kill: {}", seconds(whole));
    killed.prepare()?;
    let (mut kills, mut resumed) = (0, 0);
    // A tenth of the time between checkpoints of their own: there is something to go on from.
    let interval = (whole / 10).max(Duration::from_millis(5)).as_millis() as u64;
    let mut dice = args.seed.max(1);
    let mut idle = 0;
    let found = loop {
        let mut child = start(args, killed.folder(), interval, now)?;
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
            (true, _) => {
                let found = compare(&plan, plain.folder(), killed.folder())?;
                // It was done before it could be killed: from the start, with what it has written.
                idle += u32::from(!last);
                if last || !found.same() || idle > 10 * args.kills {
                    break found;
                }
                killed.clear()?;
                killed.prepare()?;
            }
            (false, None) => kills += 1,
            (false, Some(_)) => bail!("the job fails after {kills} kills:\n{said}"),
        }
    };
    println!("killed {kills} times, went on from a checkpoint {resumed} times (seed {})", args.seed);
    println!("lost rows: {}, repeated rows: {}, of {} compared", found.lost, found.repeated, count(found.rows));
    if !found.same() {
        // No loss then, but another choice.
        let varies = guarantees.iter().flat_map(|guarantees| &guarantees.varies);
        varies.for_each(|what| println!("not the same in every run: {what}"));
        killed.clear()?;
        killed.prepare()?;
        let again = start(args, killed.folder(), 0, now)?.wait_with_output()?;
        if again.status.success() && !compare(&plan, plain.folder(), killed.folder())?.same() {
            println!(
                "two runs without a kill differ as well: a source has changed meanwhile, or the job gives something else each time"
            );
        }
        return Ok(Outcome::Failed);
    }
    if args.kills > 0 && resumed == 0 {
        eprintln!("error: that shows nothing: the job went on from no checkpoint; it ends too fast, give it more rows");
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Fine)
}

/// Why a job can't be drilled.
fn unfit(plan: &Plan) -> Option<String> {
    if plan.job.checkpoint.is_none() {
        return Some("it takes no checkpoints (`checkpoint: off`)".into());
    }
    for node in &plan.nodes {
        match &node.op {
            Op::Source(spec) if spec.options.get("path").and_then(OptionValue::text) == Some("-") => {
                return Some(format!("`{}` reads the standard input, which can be read only once", node.name));
            }
            Op::Sink(spec) if !COMPARED.contains(&spec.connector.as_str()) => {
                let all = COMPARED.join(", ");
                return Some(format!("`{}` is {}; targets that are compared are {all}", node.name, spec.connector));
            }
            Op::Sink(spec) if spec.options.get("path").and_then(OptionValue::text) == Some("-") => {
                return Some(format!("`{}` is the standard output, which keeps nothing", node.name));
            }
            _ => {}
        }
    }
    None
}

/// What each source holds: bytes of files, rows of tables.
fn amount(plan: &Plan) -> Result<Vec<String>> {
    let mut sources = Vec::new();
    for node in &plan.nodes {
        let Op::Source(spec) = &node.op else { continue };
        let size = match spec.options.get("path").and_then(OptionValue::text) {
            Some(path) if spec.connector != "sqlite" => {
                let paths = glob::glob(path).into_iter().flatten().flatten();
                let bytes: u64 = paths.filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum();
                format!(" ({:.1} MB in files)", bytes as f64 / 1e6)
            }
            _ if spec.connector == "generate" => String::new(),
            _ => {
                let mut rows = 0;
                let bounded = dfc_ir::plan::SourceSpec { options: scratch::bounded(&spec.options), ..spec.clone() };
                content::hashes(&bounded, &[0], |_| rows += 1)
                    .map_err(|why| anyhow::anyhow!("`{}`: {why}", node.name))?;
                format!(" ({} rows)", count(rows))
            }
        };
        sources.push(format!("`{}`{size}", node.name));
    }
    Ok(sources)
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

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
