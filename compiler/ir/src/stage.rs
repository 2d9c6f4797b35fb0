//! The physical plan: stages of push operators between exchanges, which tasks run in parallel.
//!
//! A stage reads one input (a source's splits, or an exchange), passes each batch through its operators and hands the
//! result to its outputs. `parallelism` tasks do so at once, each with its own operators. A stage starts when every
//! join table it probes is complete.

use crate::plan::{AggFunction, Aggregate, Job, Join, SinkSpec, SiteInfo, SortKey, SourceSpec};
use crate::{DataType, Expr, Schema, Site};

/// A job, cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StagePlan {
    /// Name and settings.
    pub job: Job,
    /// The stages; a stage's producers stand before it.
    pub stages: Vec<Stage>,
    /// Number of exchanges; an exchange's id is below it.
    pub exchanges: usize,
    /// Number of join tables; a table's id is below it.
    pub tables: usize,
    /// See [`crate::Plan::sites`].
    pub sites: Vec<SiteInfo>,
}

/// Part of a job without an exchange inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its name: the operators it holds, joined by ` → `.
    pub name: String,
    /// Where its rows come from.
    pub input: StageInput,
    /// What happens to them, in order.
    pub ops: Vec<StageOp>,
    /// Where they go: every output gets every row. At least one.
    pub outputs: Vec<StageOutput>,
    /// Most tasks it may have: `None` as many as the job's parallelism, `Some(1)` for what must see everything.
    pub max_tasks: Option<usize>,
    /// The rows leave in the order of the input (batches carry sequence numbers): true until an exchange that mixes.
    pub ordered: bool,
    /// The fields that reach the outputs.
    pub schema: Schema,
}

/// Where a stage's rows come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageInput {
    /// A source; `node` is its operator's name.
    Source {
        /// The operator's name.
        node: String,
        /// What to read.
        spec: SourceSpec,
        /// Where it was written.
        site: Site,
    },
    /// The exchange with this id; `schema` is what arrives.
    Exchange {
        /// Which.
        id: usize,
        /// The fields that arrive.
        schema: Schema,
    },
}

/// An operator inside a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageOp {
    /// Filters and computes, fused.
    Program(Program),
    /// First half of an aggregate: groups what this task sees. Its output is an opaque partial state (see `dfc-table`), partitioned by key;
    /// it must be the last operator, before one `StageOutput::Exchange` with `Partition::Hash`.
    AggregatePartial(AggregateSpec),
    /// Second half: merges partial states, gives keys then results. First operator after the exchange.
    AggregateFinal(AggregateSpec),
    /// One row a key. After a hash exchange on the keys.
    Distinct {
        /// Operator's name.
        node: String,
        /// Key columns (all if empty).
        keys: Vec<usize>,
        /// Which row is kept.
        order: Vec<SortKey>,
    },
    /// Probes join table `table` with each row.
    Probe {
        /// Operator's name.
        node: String,
        /// Which table.
        table: usize,
        /// The join.
        join: Join,
        /// Left columns.
        left: Schema,
        /// Right columns (those of the table).
        right: Schema,
        /// Columns of the result.
        output: Schema,
        /// Where it was written.
        site: Site,
    },
    /// Sorts everything (one task).
    Sort {
        /// Operator's name.
        node: String,
        /// By what.
        keys: Vec<SortKey>,
        /// Only the first so many rows are needed (a `take` that follows).
        limit: Option<u64>,
    },
    /// The first rows (one task; input in order).
    Take {
        /// Operator's name.
        node: String,
        /// How many rows.
        limit: u64,
        /// How many are left out before.
        offset: u64,
    },
}

/// Where a stage's rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageOutput {
    /// To the tasks of the stages that read this exchange.
    Exchange {
        /// Which.
        id: usize,
        /// To which of its tasks a row goes.
        partition: Partition,
    },
    /// Into join table `table`, hashed by these keys over the stage's rows.
    Build {
        /// Which.
        table: usize,
        /// Keys.
        keys: Vec<Expr>,
    },
    /// To a sink.
    Sink {
        /// Operator's name.
        node: String,
        /// Which.
        spec: SinkSpec,
        /// Where it was written.
        site: Site,
    },
}

/// How an exchange deals rows out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partition {
    /// Any task takes the next batch.
    Any,
    /// By the hash of these columns (after `AggregatePartial`: by the hash of the group's keys, columns empty).
    Hash(Vec<usize>),
    /// All to one task, in order of the sequence numbers where the producing stage is ordered.
    Gather,
}

/// Filters and computations over one batch, in the order they were written.
///
/// A row passes the steps in order. `Let` values may be used by later steps and outputs as columns that follow the input's:
/// column `inputs.len() + k` is the k-th `Let` of the program. A row error in a step or an output rejects the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Name for logs: the operators it holds.
    pub name: String,
    /// Types of the input's columns.
    pub inputs: Vec<DataType>,
    /// What is done.
    pub steps: Vec<Step>,
    /// The columns it gives, over inputs and lets. (Empty when an [`AggregateSpec`] that follows was fused: it isn't, here.)
    pub outputs: Vec<Expr>,
    /// Fields of the result, one for each output.
    pub schema: Schema,
}

/// A step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Rows for which it isn't true are dropped.
    Filter(Expr),
    /// Rows for which it isn't true are row errors with this message.
    Require(Expr, String),
    /// Computes a value once, as a further column.
    Let(Expr),
}

/// An aggregate as the stages run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateSpec {
    /// Operator's name.
    pub node: String,
    /// Types of the partial half's input columns.
    pub inputs: Vec<DataType>,
    /// Keys over the input.
    pub keys: Vec<Expr>,
    /// Aggregates over the input.
    pub aggregates: Vec<Aggregate>,
    /// Keys then results.
    pub output: Schema,
}

impl AggregateSpec {
    /// The functions, in order.
    pub fn functions(&self) -> Vec<AggFunction> {
        self.aggregates.iter().map(|a| a.function).collect()
    }
}
