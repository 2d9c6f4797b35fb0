//! The logical plan: a graph of typed operators, from sources to sinks, in the order the pipeline was written.
//!
//! It says *what*, not in how many tasks: `dfc-planner` prunes columns and cuts it into [`crate::stage`]s.

use std::collections::BTreeMap;
use std::fmt;

use crate::{DataType, Expr, Schema, Site, Value};

/// Position of a node in [`Plan::nodes`]. Inputs come before their consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// A whole job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Its name and settings.
    pub job: Job,
    /// The operators; every input stands before its consumer.
    pub nodes: Vec<Node>,
    /// Where expressions and operators were written, for messages: [`Site`] is an index here. Entry 0 is "unknown".
    pub sites: Vec<SiteInfo>,
}

/// A place in the pipeline's text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SiteInfo {
    /// The file, as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The source text there, on one line, shortened to 80 characters.
    pub text: String,
}

/// A job's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The job's name.
    pub name: String,
    /// Tasks of a stage; `None`: as many as the machine has cores.
    pub parallelism: Option<usize>,
    /// Bytes of memory that a run may take, about; `None`: as much as there is.
    pub memory: Option<u64>,
    /// What happens with row errors.
    pub errors: ErrorPolicy,
    /// When and where checkpoints are taken; `None`: `checkpoint: off`.
    pub checkpoint: Option<CheckpointSettings>,
    /// What happens after a failure that may pass.
    pub restart: RestartSettings,
    /// What happens when a job that has succeeded is run again; in a plan `None` is [`Rerun::Restart`].
    pub rerun: Option<Rerun>,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            name: "job".into(),
            parallelism: None,
            memory: None,
            errors: ErrorPolicy::default(),
            checkpoint: Some(CheckpointSettings::default()),
            restart: RestartSettings::default(),
            rerun: None,
        }
    }
}

/// `checkpoint { interval: 30s, timeout: 10m, retain: 3, … }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSettings {
    /// Milliseconds between the starts of two checkpoints.
    pub interval_ms: u64,
    /// Milliseconds after which a checkpoint is abandoned.
    pub timeout_ms: u64,
    /// How many of the newest checkpoints are kept.
    pub retain: u32,
    /// How many checkpoints in a row may be abandoned; one more stops the job.
    pub tolerate: u32,
    /// A folder (relative to the pipeline's file) or `s3://bucket/prefix`; `None`: `.dfc` beside the pipeline.
    pub storage: Option<String>,
    /// A checkpoint is taken early when the sinks have spooled so many bytes since the last one.
    pub max_epoch_bytes: u64,
    /// At most so many checkpoints may wait to be applied; then the sources are held back.
    pub max_unapplied: u32,
    /// Most bytes that the job's checkpoints and spools may take; `None`: no limit.
    pub quota_bytes: Option<u64>,
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        CheckpointSettings {
            interval_ms: 30_000,
            timeout_ms: 600_000,
            retain: 3,
            tolerate: 3,
            storage: None,
            max_epoch_bytes: 256_000_000,
            max_unapplied: 4,
            quota_bytes: None,
        }
    }
}

/// `restart { attempts: 3, backoff: 10s }`: the job starts again from its last checkpoint, inside the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartSettings {
    /// How often in a row without a checkpoint in between.
    pub attempts: u32,
    /// Milliseconds before the first attempt; doubled for each further one, at most five minutes.
    pub backoff_ms: u64,
}

impl Default for RestartSettings {
    fn default() -> Self {
        RestartSettings { attempts: 0, backoff_ms: 1_000 }
    }
}

/// `rerun: continue | restart`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rerun {
    /// Keeps the lineage and takes what is new: the default for sources that know what that is (an `increment`), unless each run replaces
    /// all that the targets hold.
    Continue,
    /// Computes everything anew: the default for everything else.
    Restart,
}

/// `errors { limit, ratio, to }`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPolicy {
    /// Rejected rows tolerated; one more stops the job. 0: none. `None`: no limit of number (only when `ratio` is given).
    pub limit: Option<u64>,
    /// Largest share of rejected rows, as millionths of the rows read; judged at the end, and while running after the first 1,000 rows.
    pub ratio_ppm: Option<u64>,
    /// Folder for the rejected rows, relative to the pipeline's file.
    pub to: Option<String>,
}

impl ErrorPolicy {
    /// The name of the file of a job's rejected rows, in the folder `to`.
    pub fn file_name(job: &str) -> String {
        format!("{job}-rejects.jsonl")
    }
}

/// An operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name in messages, logs and plans: `orders`, `paid.filter`, `by_day.aggregate`, `sink.csv`. Distinct in a plan (`.2` is added).
    pub name: String,
    /// What it does.
    pub op: Op,
    /// Its inputs. Sources have none, joins and lookups two (left, right), unions two or more, all else one.
    pub inputs: Vec<NodeId>,
    /// The fields it gives. Sinks: the fields they are given.
    pub schema: Schema,
    /// Where it was written.
    pub site: Site,
}

/// A connector's constant arguments, by parameter name, every default filled in.
pub type Options = BTreeMap<String, OptionValue>;

/// A constant argument of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OptionValue {
    /// A value.
    Value(Value<'static>),
    /// One of an enumeration's names.
    Name(String),
    /// Field names.
    Names(Vec<String>),
    /// What stays secret: where it is kept, or a text that no plan, log or message shows.
    Secret(Secret),
    /// An explicit absence (a parameter of type `T?` that was not given).
    Absent,
}

/// An argument that stays secret. Its value is looked up when a connector opens, and kept nowhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Secret {
    /// `secret("NAME")`: an environment variable.
    Env(String),
    /// `secret_file("path")`: the first line of a file, its path already resolved.
    File(String),
    /// A text of the pipeline or the command line.
    Given(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where it is kept, never what it is.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Env(name) => write!(f, "secret({name:?})"),
            Secret::File(path) => write!(f, "secret_file({path:?})"),
            Secret::Given(_) => f.write_str("secret(…)"),
        }
    }
}

impl OptionValue {
    /// The text of a string value or an enumeration's name.
    pub fn text(&self) -> Option<&str> {
        match self {
            OptionValue::Value(Value::Str(text)) => Some(text),
            OptionValue::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// A source: which connector, with which arguments, giving which fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// The connector's name: `csv`.
    pub connector: String,
    /// Its arguments. Relative paths are already resolved against the pipeline's folder.
    pub options: Options,
    /// All declared fields.
    pub schema: Schema,
    /// The fields that are read, as positions in `schema`, ascending. The node's schema is this selection of it.
    /// Every field before the planner has pruned.
    pub projection: Vec<usize>,
}

impl SourceSpec {
    /// The fields that are read.
    pub fn projected(&self) -> Schema {
        Schema { fields: self.projection.iter().map(|&i| self.schema.fields[i].clone()).collect() }
    }
}

/// A sink: which connector, with which arguments. Its fields are its node's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkSpec {
    /// The connector's name: `csv`.
    pub connector: String,
    /// Its arguments. Relative paths are already resolved against the pipeline's folder.
    pub options: Options,
}

/// What an operator does. Expressions see the columns of its (left) input by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Reads.
    Source(SourceSpec),
    /// Keeps the rows for which the condition is true.
    Filter(Expr),
    /// A row for which the condition is not true is a row error with this message.
    Require {
        /// What must hold.
        condition: Expr,
        /// The user's message, or the condition's text.
        message: String,
    },
    /// New columns from old ones: `derive`, `select`, `drop`, `rename`, `cast`. One expression a field of the node's schema.
    Project(Vec<Expr>),
    /// Groups and aggregates. The node's schema: the keys' fields, then one for each aggregate.
    Aggregate {
        /// Key expressions; none: one row over all (even over no rows).
        keys: Vec<Expr>,
        /// The aggregates.
        aggregates: Vec<Aggregate>,
    },
    /// One row of each group of equal keys: the first in `order`, or the first that arrives.
    Distinct {
        /// Key columns; all columns if empty.
        keys: Vec<usize>,
        /// Which row is kept.
        order: Vec<SortKey>,
    },
    /// Joins. The node's schema is given by `output`.
    Join(Join),
    /// All rows of all inputs; the inputs' schemas equal the node's.
    Union,
    /// Sorts all rows, stable.
    Sort(Vec<SortKey>),
    /// The first `limit` rows after `offset`.
    Take {
        /// How many rows.
        limit: u64,
        /// How many are left out before.
        offset: u64,
    },
    /// Writes.
    Sink(SinkSpec),
}

/// One aggregate of an [`Op::Aggregate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// Its name: `count sum avg min max first last count_distinct approx_count_distinct stddev variance median collect
    /// string_agg any_value bool_and bool_or`.
    pub function: AggFunction,
    /// Its arguments, already converted: none for `count()`, one for most; `string_agg(x, separator)` has a literal second one.
    pub args: Vec<Expr>,
    /// `where:`: only rows for which this is true count.
    pub filter: Option<Expr>,
    /// The result's type.
    pub ty: DataType,
    /// Where it was written.
    pub site: Site,
}

/// The aggregate functions. Nulls are skipped by all but `count()`; over no values the result is null where its type is
/// nullable, 0 for the counts, an empty list for `collect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is its own name
pub enum AggFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    First,
    Last,
    CountDistinct,
    ApproxCountDistinct,
    /// Sample standard deviation, float64; null below two values.
    Stddev,
    /// Sample variance, float64; null below two values.
    Variance,
    /// The middle value, or the mean of the two middle ones: float64, or a decimal for decimals.
    Median,
    /// All values as a list, in the order of arrival.
    Collect,
    /// Texts joined by a separator.
    StringAgg,
    AnyValue,
    BoolAnd,
    BoolOr,
}

impl AggFunction {
    /// All of them with their names in the language.
    pub const ALL: [(AggFunction, &'static str); 17] = [
        (AggFunction::Count, "count"),
        (AggFunction::Sum, "sum"),
        (AggFunction::Avg, "avg"),
        (AggFunction::Min, "min"),
        (AggFunction::Max, "max"),
        (AggFunction::First, "first"),
        (AggFunction::Last, "last"),
        (AggFunction::CountDistinct, "count_distinct"),
        (AggFunction::ApproxCountDistinct, "approx_count_distinct"),
        (AggFunction::Stddev, "stddev"),
        (AggFunction::Variance, "variance"),
        (AggFunction::Median, "median"),
        (AggFunction::Collect, "collect"),
        (AggFunction::StringAgg, "string_agg"),
        (AggFunction::AnyValue, "any_value"),
        (AggFunction::BoolAnd, "bool_and"),
        (AggFunction::BoolOr, "bool_or"),
    ];

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(f, _)| *f == self).map_or("", |(_, name)| name)
    }

    /// The function of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(f, _)| *f)
    }
}

/// A column to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// What is compared.
    pub expr: Expr,
    /// Largest first.
    pub descending: bool,
    /// Nulls before all values. (Default: nulls last, ascending or descending.)
    pub nulls_first: bool,
}

/// Kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Pairs only.
    Inner,
    /// And left rows without a partner.
    Left,
    /// And right rows without a partner.
    Right,
    /// And both.
    Full,
    /// Left rows that have a partner, once each.
    Semi,
    /// Left rows that have none.
    Anti,
}

/// Which partners of a left row count (a lookup's `match:`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// Every one.
    All,
    /// The first in the right side's order.
    First,
    /// A second one is a row error.
    One,
}

/// A join or a lookup. The right input is read whole before the first left row passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Its kind. A lookup is `Left` (`missing: keep`), `Inner` (`missing: drop`) or `Left` with `required`.
    pub kind: JoinKind,
    /// Key expressions over the left input. A null key has no partner.
    pub left_keys: Vec<Expr>,
    /// Key expressions over the right input, of the same types.
    pub right_keys: Vec<Expr>,
    /// Number of left columns: a residual's column `left_width + k` is right column k.
    pub left_width: usize,
    /// A further condition over left columns followed by right columns.
    pub residual: Option<Expr>,
    /// Which partners count.
    pub matches: MatchMode,
    /// A left row without a partner is a row error (`missing: fail`).
    pub required: bool,
    /// Columns of the result: positions in the left columns followed by the right columns. For an equal key that appears once in a
    /// right or full join: see `merged`.
    pub output: Vec<JoinColumn>,
}

/// A column of a join's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinColumn {
    /// Of the left input.
    Left(usize),
    /// Of the right input.
    Right(usize),
    /// The left value, or the right one where there is no left row (an equal key of a right or full join).
    Merged(usize, usize),
}
