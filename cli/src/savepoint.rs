//! `dfc savepoint`: a checkpoint that stays (D11). The process that runs the job takes it; if none does, the newest one becomes it.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use dfc_checkpoint::{Kept, SavepointAnswer};
use dfc_ir::plan::Rerun;

use crate::Outcome;
use crate::args::SavepointArgs;
use crate::jobs::{self, Found, Trouble};

/// How often it is looked whether the answer has come.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command.
pub fn savepoint(args: &SavepointArgs) -> Result<Outcome> {
    jobs::with(&args.job, |found| match found.checkpoints.running()? {
        Some(_) => ask(&found, args),
        None => promote(&found, args),
    })
}

fn ask(found: &Found, args: &SavepointArgs) -> Result<Outcome, Trouble> {
    let at = &found.checkpoints;
    let request = at.ask_savepoint(args.note.as_deref())?;
    let begun = Instant::now();
    let patience = Duration::from_secs(args.wait);
    let answer = loop {
        if let Some(answer) = at.savepoint_answer(&request)? {
            break Ok(answer);
        }
        if at.running()?.is_none() {
            // It may have answered with its last breath.
            break at
                .savepoint_answer(&request)?
                .ok_or("the job has ended before it took one; ask again: the newest checkpoint becomes it");
        }
        if begun.elapsed() >= patience {
            break Err("the job has not answered in time; `--wait SECONDS` gives it more");
        }
        std::thread::sleep(LOOK);
    };
    match answer {
        Ok(SavepointAnswer::Taken(number)) => {
            println!("savepoint {number} of job {} is taken; `dfc run FILE --from {number}` goes on from it", at.job());
            Ok(Outcome::Fine)
        }
        Ok(SavepointAnswer::Refused(why)) => Err(Trouble::Other(anyhow!("the job could not take a savepoint: {why}"))),
        Err(why) => {
            at.withdraw_savepoint(&request)?;
            Err(Trouble::Other(anyhow!("no savepoint was taken: {why}")))
        }
    }
}

fn promote(found: &Found, args: &SavepointArgs) -> Result<Outcome, Trouble> {
    let at = &found.checkpoints;
    let Some(newest) = at.newest(false)? else {
        return Err(Trouble::Other(anyhow!(
            "job {} isn't running and has no checkpoints in {}: there is nothing to keep",
            at.job(),
            at.describe()
        )));
    };
    // What is to stay has to be worth it.
    at.examine(&newest)?;
    at.keep(newest.number, &Kept { note: args.note.clone(), at_micros: jobs::now_micros() })?;
    let (job, number) = (at.job(), newest.number);
    if at.has_finished(&newest)? && found.plan.job.rerun != Some(Rerun::Continue) {
        println!(
            "job {job} has come to its end with checkpoint {number}, which is a savepoint now; there is nothing left to go on with, \
             `dfc run FILE` computes it anew"
        );
        return Ok(Outcome::Fine);
    }
    println!(
        "job {job} isn't running: its newest checkpoint, {number}, is a savepoint now; `dfc run FILE --from {number}` goes on from it"
    );
    Ok(Outcome::Fine)
}
