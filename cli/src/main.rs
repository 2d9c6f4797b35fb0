//! The `dfc` binary: reads the command line and hands it to the compiler and the engine.
//!
//! Exit codes: 0 fine, 1 the pipeline has errors or the run failed, 2 wrong use, 130 interrupted. Results go to standard
//! output, everything else to standard error.

mod args;
mod audit;
mod check;
mod checkpoint;
mod cost;
mod drill;
mod explain;
mod fmt;
mod init;
mod jobs;
mod lock;
mod logging;
mod lsp;
mod plan;
mod progress;
mod reference;
mod report;
mod run;
mod savepoint;
mod schema;
mod status;
mod summary;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended, where that is not an error of dfc's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is fine.
    Fine,
    /// The pipeline has errors, or the run failed; it has been said.
    Failed,
    /// A name that was asked for does not exist; it has been said.
    WrongUse,
    /// Stopped from outside.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(match outcome {
            Outcome::Fine => 0,
            Outcome::Failed => 1,
            Outcome::WrongUse => 2,
            Outcome::Interrupted => 130,
        })
    }
}

/// Room for chains of thousands of streams, each of which is checked while the one before it is asked for; only what is used of it
/// is taken from the system.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let work = std::thread::Builder::new().name("main".into()).stack_size(STACK).spawn(move || command(cli));
    match work.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        // The panic has been said by its thread.
        Ok(Err(_)) => ExitCode::from(101),
        Err(error) => {
            eprintln!("error: the system gives no thread: {error}");
            ExitCode::from(1)
        }
    }
}

/// Runs a command to its end.
fn command(cli: Cli) -> ExitCode {
    let outcome = match cli.command {
        Command::Init(args) => init::init(&args),
        Command::Check(args) => check::check(&args),
        Command::Fmt(args) => fmt::fmt(&args),
        Command::Run(args) => run::run(&args),
        Command::Plan(args) => plan::plan(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Lsp(args) => lsp::lsp(&args),
        Command::Status(args) => status::status(&args),
        Command::Savepoint(args) => savepoint::savepoint(&args),
        Command::Drill(args) => drill::drill(&args),
        Command::Audit(args) => audit::audit(&args),
        Command::Checkpoint(command) => checkpoint::checkpoint(&command),
        Command::Explain(args) => explain::explain(&args),
        Command::Functions(args) => reference::functions(&args),
        Command::Operators(args) => reference::operators(&args),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        // Whoever reads our output has closed it (`dfc functions | head`): nothing is wrong.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
