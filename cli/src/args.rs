//! The command line: what may be given, and its help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Checks, compiles and runs data pipelines written in `.df` files.
#[derive(Debug, Parser)]
#[command(name = "dfc", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a small pipeline with data, ready to run
    Init(InitArgs),
    /// Find what is wrong with pipelines, without running them
    Check(CheckArgs),
    /// Give files the one style
    Fmt(FmtArgs),
    /// Run a pipeline
    Run(RunArgs),
    /// Show what the compiler makes of a pipeline
    Plan(PlanArgs),
    /// Print the fields that a source has outside, as a `record` to paste
    Schema(SchemaArgs),
    /// Show how a job stands: its last checkpoint, what is not applied yet, what failed
    Status(StatusArgs),
    /// Take a checkpoint that stays
    Savepoint(SavepointArgs),
    /// Kill the job at random on a scratch folder, let it go on, and say which rows were lost or repeated
    Drill(DrillArgs),
    /// Compare what the sources hold, up to where they were read, with what the targets hold
    Audit(AuditArgs),
    /// List, show, remove or verify a job's checkpoints
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// Explain an error code, with a wrong and a right example
    Explain(ExplainArgs),
    /// Serve an editor: the language server, over standard input and output
    Lsp(LspArgs),
    /// List the functions, or describe one
    Functions(NameArgs),
    /// List the operators, or describe one
    Operators(NameArgs),
}

/// `dfc init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Where to put it; made if it does not exist
    #[arg(default_value = ".")]
    pub dir: PathBuf,
}

/// `dfc check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The pipelines
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Show the streams and their fields too
    #[arg(short, long)]
    pub verbose: bool,
    /// Ask the sources for their fields, also over the network; compare and renew the lock file
    #[arg(long)]
    pub connect: bool,
    /// Give a parameter a value
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// `dfc fmt`
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// The files; a folder stands for the `.df` files below it, `-` for standard input to standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Change nothing; list the files that would change, and exit with 1 if there are any
    #[arg(long)]
    pub check: bool,
}

/// `dfc run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The pipeline
    pub file: PathBuf,
    /// Give a parameter a value
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Tasks that a stage may have at most [default: the job's setting, else the number of cores]
    #[arg(long, value_name = "N", value_parser = tasks)]
    pub parallelism: Option<u16>,
    /// What evaluates expressions
    #[arg(long, value_enum, default_value_t = Engine::Jit)]
    pub engine: Engine,
    /// A trial run: read at most so many rows of each source, and write what comes of them to the job's targets. It takes no
    /// checkpoints, and is refused where the job has one to go on from
    #[arg(long, value_name = "N", value_parser = row_count, conflicts_with_all = ["fresh", "from", "allow_older"])]
    pub limit_rows: Option<u64>,
    /// Memory that the run may take, about, whatever the job says: state that passes half of it goes to disk
    #[arg(long, value_name = "BYTES", value_parser = dfc_grammar::size)]
    pub memory: Option<u64>,
    /// Start anew: what earlier runs have kept is given up
    #[arg(long, conflicts_with_all = ["from", "allow_older"])]
    pub fresh: bool,
    /// Go on from this checkpoint instead of the newest
    #[arg(long, value_name = "CHECKPOINT")]
    pub from: Option<u64>,
    /// If the newest checkpoint is damaged, go on from an older one
    #[arg(long)]
    pub allow_older: bool,
    /// With --from: go on although a target has been given later rows, which it will be given again
    #[arg(long, requires = "from")]
    pub accept_duplicates: bool,
    /// Lead targets and checkpoints into this folder (`dfc drill`)
    #[arg(long, hide = true)]
    pub scratch: Option<PathBuf>,
    /// Milliseconds between checkpoints (`dfc drill`)
    #[arg(long, hide = true, requires = "scratch")]
    pub scratch_interval: Option<u64>,
    /// The time that `now()` is, in microseconds since 1970 (`dfc drill`)
    #[arg(long, hide = true, requires = "scratch")]
    pub scratch_now: Option<i64>,
    /// Say what was compiled, and what each operator did
    #[arg(short, long)]
    pub verbose: bool,
    /// How findings are written, if the pipeline has errors
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Log each operator's life (opened, first row, closed) to standard error
    #[arg(long, value_enum)]
    pub log_format: Option<LogFormat>,
}

/// `dfc plan`
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The pipeline
    pub file: PathBuf,
    /// What to show
    #[arg(long, value_enum, default_value_t = Emit::Stages)]
    pub emit: Emit,
    /// Give a parameter a value
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// `dfc schema`
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The pipeline
    pub file: PathBuf,
    /// The source
    pub source: String,
    /// Give a parameter a value
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// `dfc lsp`
#[derive(Debug, Args)]
pub struct LspArgs {
    /// What editors write who know other ways as well; there is no other here
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// A job whose checkpoints are meant.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// The pipeline
    pub file: PathBuf,
    /// Give a parameter a value
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// `dfc drill`
#[derive(Debug, Args)]
pub struct DrillArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// How often it is killed
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub kills: u32,
    /// Another seed kills at other moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// `dfc audit`
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// Compare the content too, by ranges of a key: reads every column of both sides
    #[arg(long)]
    pub hash: bool,
    /// How it is written
    #[arg(long = "format", value_enum, default_value_t = Form::Text)]
    pub form: Form,
}

/// `dfc status`
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// How it is written
    #[arg(long = "format", value_enum, default_value_t = Form::Text)]
    pub form: Form,
}

/// `dfc savepoint`
#[derive(Debug, Args)]
pub struct SavepointArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// How long a running job may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub wait: u64,
}

/// `dfc checkpoint`
#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// List them, the newest first
    List(ListArgs),
    /// Show one: positions, sizes of state, what is applied
    Show(ShowArgs),
    /// Remove what is no longer needed, or some by number
    Prune(PruneArgs),
    /// Look at every byte of them
    Verify(NumberArgs),
}

/// `dfc checkpoint list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// How it is written
    #[arg(long = "format", value_enum, default_value_t = Form::Text)]
    pub form: Form,
}

/// `dfc checkpoint show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// Which one [default: the newest]
    pub number: Option<u64>,
    /// The operators' state too, as JSON
    #[arg(long)]
    pub state: bool,
    /// How it is written
    #[arg(long = "format", value_enum, default_value_t = Form::Text)]
    pub form: Form,
}

/// `dfc checkpoint prune`
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// These, savepoints too [default: what the job's `retain` doesn't keep]
    #[arg(value_name = "NUMBER")]
    pub numbers: Vec<u64>,
    /// Keep so many of the newest instead of the job's `retain`
    #[arg(long, value_name = "N", conflicts_with = "numbers", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
}

/// `dfc checkpoint verify`
#[derive(Debug, Args)]
pub struct NumberArgs {
    /// The job
    #[command(flatten)]
    pub job: JobArgs,
    /// Which one [default: all]
    pub number: Option<u64>,
}

/// `dfc explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code, as `E0401`; without one, all codes are listed
    pub code: Option<String>,
}

/// `dfc functions`, `dfc operators`
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Which one; without a name, all are listed
    pub name: Option<String>,
}

/// Forms of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, with the source text
    Human,
    /// One JSON object a line
    Json,
    /// One SARIF log, for code scanning
    Sarif,
    /// Workflow commands of GitHub Actions: notes beside the lines of a pull request
    Github,
}

/// Forms of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people
    Text,
    /// For tools
    Json,
}

/// Tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Machine code
    Jit,
    /// The reference interpreter: slow, for comparison
    Interpreter,
}

/// Forms of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines of text
    Text,
    /// One JSON object a line
    Json,
}

/// What `dfc plan` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// The file's tokens
    Tokens,
    /// The syntax tree
    Ast,
    /// The typed operators
    Ir,
    /// The stages that run
    Stages,
    /// The machine-level code of each program (Cranelift IR)
    Clif,
    /// The operators as a Graphviz graph
    Dot,
}

/// The same bounds as the job's setting.
fn tasks(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("expected a whole number from 1 to 1024".to_owned()),
    }
}

fn row_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number of rows, as in `--limit-rows 1000`".to_owned())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, as in `--set since=2026-01-01`".to_owned()),
    }
}
