//! `dfc run`: compiles a pipeline and runs it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use dfc_checkpoint::{Checkpoints, Place};
use dfc_engine::{Checkpointing, Event, Observer, Progress, RunError, RunOptions, Start};
use dfc_eval::Env;
use dfc_ir::stage::StageOutput;
use dfc_jit::{CompileReport, Tier};

use crate::Outcome;
use crate::args::{Engine, RunArgs};
use crate::cost::Cost;
use crate::progress::Display;
use crate::schema::Connectors;
use crate::{drill, lock, logging, report, summary};

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<Outcome> {
    logging::start(args.log_format);
    let mut compiler = report::compiler(&args.set);
    compiler.set_catalog(Arc::new(Connectors::Connected));
    // What refuses a plan has all findings: those of the check, and what only a run needs (a parameter's value, a job).
    let plan = match compiler.plan(&args.file) {
        Ok(plan) => plan,
        Err(refused) => {
            report::findings(&[&refused], args.format)?;
            eprintln!("{}; nothing was run", report::verdict(&args.file, &refused));
            return Ok(Outcome::Failed);
        }
    };
    report::findings(&[&compiler.check(&args.file)], args.format)?;
    lock::pin(&compiler, &args.file);
    lock::added(&plan, args.verbose);
    let mut stages = dfc_planner::plan_stages(&plan);
    if let Some(scratch) = &args.scratch {
        drill::lead(&mut stages, scratch, args.scratch_interval);
    }
    let tier = match args.engine {
        Engine::Jit => Tier::Jit,
        Engine::Interpreter => Tier::Interpreter,
    };
    if args.scratch.is_none() {
        left_behind(args, &stages)?;
    }
    let watch = Arc::new(Watch { job: stages.job.name.clone(), ..Watch::default() });
    let options = RunOptions {
        parallelism: args.parallelism.map_or(0, usize::from),
        tier,
        env: Env { now: args.scratch_now.unwrap_or_else(now_micros) },
        limit_rows: args.limit_rows,
        cancelled: stop_on_signals(watch.checkpoints.clone())?,
        checkpoints: checkpointing(args, &stages, &compiler.secret_parameters(&args.file))?,
        rejects_folder: stages.job.errors.to.as_ref().map(|to| match &args.scratch {
            Some(scratch) => scratch.join(drill::REJECTED),
            None => beside(&args.file, to),
        }),
        memory: args.memory.or(stages.job.memory),
        spill_folder: args.scratch.clone().unwrap_or_else(|| beside(&args.file, ".dfc")),
        ..RunOptions::default()
    };
    let display = Display::start(watch.progress.clone());
    let result = dfc_engine::run(&stages, options, watch.clone());
    drop(display);
    if args.verbose {
        compiled(&watch, tier);
    }
    match result {
        Ok(done) => {
            if args.verbose {
                eprint!("{}", summary::operators(&done));
            }
            eprint!("{}", summary::text(&stages.job.name, &done));
            if let Some(note) = watch.cost.lock().ok().and_then(|cost| cost.note(done.elapsed)) {
                eprintln!("{note}");
            }
            Ok(Outcome::Fine)
        }
        Err(error) => {
            report::failure(&error, &stages.sites);
            lock::after(&error, &compiler, &args.file);
            Ok(match error {
                RunError::Cancelled | RunError::Interrupted { .. } => Outcome::Interrupted,
                _ => Outcome::Failed,
            })
        }
    }
}

/// Says which unfinished files beside the targets are others': a job that was renamed, or takes no checkpoints any more, doesn't know them.
fn left_behind(args: &RunArgs, stages: &dfc_ir::StagePlan) -> Result<()> {
    let outputs = stages.stages.iter().flat_map(|stage| &stage.outputs);
    let sinks = outputs.filter_map(|output| match output {
        StageOutput::Sink { spec, .. } => Some(spec),
        _ => None,
    });
    let mut found: Vec<(String, PathBuf)> = sinks.flat_map(dfc_connect::unfinished_beside).collect();
    if found.is_empty() {
        return Ok(());
    }
    if let Some(how) = checkpointing(args, stages, &[])? {
        // What can't be read is said when it is needed.
        let manifests = Checkpoints::new(how.place, &stages.job.name).manifests().unwrap_or_default();
        let own: Vec<String> = manifests.into_iter().filter_map(|(_, manifest)| Some(manifest.ok()?.lineage)).collect();
        found.retain(|(lineage, _)| !own.iter().any(|own| own.starts_with(lineage.as_str())));
    }
    for (_, path) in found {
        eprintln!(
            "note: `{}` is unfinished work of another job, or of this one under another name or with checkpoints: remove it only if that neither runs nor is to go on",
            path.display()
        );
    }
    Ok(())
}

/// Where the job's checkpoints are, and where the run begins. `secrets`: the parameters whose values are kept nowhere.
fn checkpointing(args: &RunArgs, stages: &dfc_ir::StagePlan, secrets: &[String]) -> Result<Option<Checkpointing>> {
    let Some(settings) = &stages.job.checkpoint else {
        if args.from.is_some() || args.allow_older {
            anyhow::bail!("this job takes no checkpoints (`checkpoint: off`): there is none to go on from");
        }
        return Ok(None);
    };
    let folder = match args.file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let place = match &args.scratch {
        Some(scratch) => Place::open(None, scratch),
        None => Place::open(settings.storage.as_deref(), folder),
    };
    let start = match (args.fresh, args.from) {
        (true, _) => Start::Fresh,
        (false, Some(number)) => Start::From(number),
        (false, None) => Start::Newest,
    };
    Ok(Some(Checkpointing {
        place: place.map_err(|error| anyhow::anyhow!("{error}\n{}", error.help()))?,
        chosen: settings.storage.is_some() || start != Start::Newest,
        start,
        allow_older: args.allow_older,
        accept_duplicates: args.accept_duplicates,
        // What is secret isn't kept, not even as a check sum, and may be another one when the job goes on.
        parameters: args.set.iter().filter(|(name, _)| !secrets.contains(name)).cloned().collect(),
    }))
}

/// A path that the pipeline names is relative to the pipeline's folder.
fn beside(pipeline: &Path, path: &str) -> PathBuf {
    pipeline.parent().unwrap_or(Path::new("")).join(path)
}

/// What the engine reports while it runs.
#[derive(Default)]
struct Watch {
    job: String,
    /// Checkpoints are taken.
    checkpoints: Arc<AtomicBool>,
    progress: Arc<OnceLock<Arc<Progress>>>,
    compiled: Mutex<Vec<(usize, CompileReport)>>,
    cost: Mutex<Cost>,
}

impl Observer for Watch {
    fn event(&self, event: &Event) {
        logging::event(&self.job, event);
        match event {
            // A run starts once; a second start would keep the first one's counters.
            Event::Started { progress, checkpoints, .. } => {
                self.checkpoints.store(*checkpoints, Ordering::Relaxed);
                let _ = self.progress.set(progress.clone());
            }
            Event::Resumed { number, taken_micros, sources, changed } => {
                let ago = Duration::from_micros(now_micros().saturating_sub(*taken_micros).max(0) as u64);
                eprintln!("going on from checkpoint {number}, taken {} ago", age(ago));
                for (source, position, exact) in sources {
                    let how = if *exact { "" } else { "; what stands before is read again and left out" };
                    eprintln!("  `{source}`: {position}{how}");
                }
                for program in changed {
                    eprintln!("  `{program}` has changed since: its new rules hold from here on");
                }
            }
            Event::BegunAnew { number, rows } => {
                let rows = summary::count(*rows);
                eprintln!(
                    "beginning anew: checkpoint {number} is given up, with the {rows} rows that were written up to it; a target that rows are added to still has them"
                );
            }
            Event::WithoutCheckpoints { why } => {
                eprintln!(
                    "warning: no checkpoints are taken: {why}; a run that fails starts again from the beginning (`checkpoint: off` says that it may)"
                );
            }
            Event::Checkpoint { duration, .. } => {
                if let Ok(mut cost) = self.cost.lock() {
                    cost.add(*duration);
                }
            }
            Event::CheckpointAbandoned { number, why } => eprintln!("checkpoint {number} was given up: {why}"),
            Event::QuotaNearlyUsed { used, quota } => eprintln!(
                "warning: checkpoints take {} of the {} of their `quota`: make room with `dfc checkpoint prune`, lower `retain` or raise it",
                summary::bytes(*used),
                summary::bytes(*quota)
            ),
            Event::Compiled { stage, report } => {
                if let Ok(mut compiled) = self.compiled.lock() {
                    compiled.push((*stage, report.clone()));
                }
            }
            _ => {}
        }
    }
}

/// `3 s`, `12 min`, `5 h`, `3 d`.
fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// What was compiled, in how many microseconds, and what was not.
fn compiled(watch: &Watch, tier: Tier) {
    let Ok(compiled) = watch.compiled.lock() else { return };
    for (stage, report) in compiled.iter() {
        if tier == Tier::Interpreter {
            eprintln!("stage {stage}: {} is interpreted, as `--engine interpreter` says", report.program);
        } else if report.not_compiled.is_empty() {
            eprintln!(
                "stage {stage}: {} compiled in {} µs, {} bytes of machine code",
                report.program, report.micros, report.code_bytes
            );
        } else {
            eprintln!(
                "stage {stage}: {} is interpreted, because of: {}",
                report.program,
                report.not_compiled.join("; ")
            );
        }
    }
}

/// Signals that come so soon after the first are the same wish to stop: a wrapper (`timeout`, `make`) passes on what the
/// terminal has already sent to its whole group.
const SAME_WISH: Duration = Duration::from_secs(1);

/// A flag that Ctrl-C, SIGTERM and SIGHUP set. A second wish ends the process at once: nothing half-written stands under
/// a final name at any moment, so only a temporary file is left behind by that.
fn stop_on_signals(checkpoints: Arc<AtomicBool>) -> Result<Arc<AtomicBool>> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || match first {
        None => {
            first = Some(Instant::now());
            flag.store(true, Ordering::SeqCst);
            match checkpoints.load(Ordering::Relaxed) {
                true => eprintln!("stopping after a last checkpoint (again to stop at once)"),
                false => eprintln!("stopping: no result will be written (again to stop at once)"),
            }
        }
        Some(first) if first.elapsed() < SAME_WISH => {}
        Some(_) => std::process::exit(130),
    })
    .context("can't watch for Ctrl-C")?;
    Ok(cancelled)
}

fn now_micros() -> i64 {
    // A clock before 1970 is a broken clock; the epoch is the least surprising answer.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
