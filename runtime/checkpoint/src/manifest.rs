//! The manifest: what makes a checkpoint exist, and all that is needed to go on from it. It may not know where it lies.

mod check;
mod text;

use dfc_epoch::{Positions, Sealed};
use serde::{Deserialize, Serialize};

pub(crate) use text::{LARGEST, decode, encode};

/// The form of manifests that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The form that it is written in; see [`Manifest::new`].
    pub format: u32,
    /// Its number, larger than all before.
    pub number: u64,
    /// The identity of the job's state: 32 hexadecimal digits, drawn when it started without any.
    pub lineage: String,
    /// What it was taken for.
    pub kind: Kind,
    /// The run that wrote it: 16 hexadecimal digits, filled in when it is published.
    pub writer: String,
    /// When, in microseconds since 1970.
    pub created_micros: i64,
    /// The job's clock (`now()`), in microseconds since 1970.
    pub now_micros: i64,
    /// The pipeline that was running.
    pub pipeline: PlanPrint,
    /// Tasks of a stage.
    pub parallelism: u32,
    /// Where the numbers of batches go on.
    pub ordinal_base: u64,
    /// The sources.
    pub sources: Vec<SourceState>,
    /// The stages.
    pub stages: Vec<StageState>,
    /// The sinks.
    pub sinks: Vec<SinkState>,
    /// Rejected rows.
    pub rejects: RejectsState,
    /// Rows so far.
    pub counters: Counters,
    /// Bytes in the spools that this checkpoint names.
    pub spool_bytes: u64,
    /// Bytes of operators' state that were written for it.
    pub state_bytes: u64,
    /// Milliseconds from its barrier to this manifest.
    pub duration_ms: u64,
    /// The longest that a task held an input back for it, in milliseconds.
    pub alignment_ms: u64,
    /// Savepoints: what the person who asked for it wrote.
    pub savepoint_note: Option<String>,
}

/// What a checkpoint was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The state began: nothing was read yet.
    Start,
    /// Time or the size of the spools.
    Regular,
    /// A person asked for it: retention never removes it.
    Savepoint,
    /// The job has read everything.
    Terminal,
}

impl Kind {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Regular => "regular",
            Kind::Savepoint => "savepoint",
            Kind::Terminal => "end",
        }
    }
}

/// What is compared when a job goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPrint {
    /// The job's name.
    pub job: String,
    /// Its operators.
    pub operators: Vec<OperatorPrint>,
}

/// An operator, as far as its state depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorPrint {
    /// Its name.
    pub name: String,
    /// What it does, for people: `csv("orders.csv")`.
    pub what: String,
    /// A hash over everything that its state or position depends on.
    pub hash: String,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceState {
    /// The operator's name.
    pub node: String,
    /// The connector's name.
    pub connector: String,
    /// How far it was read.
    pub positions: Positions,
    /// Rows read, rejected ones included.
    pub rows: u64,
    /// Bytes read, as stored.
    pub bytes: u64,
    /// It has been read to its end.
    pub ended: bool,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageState {
    /// Its name.
    pub name: String,
    /// All its tasks have ended.
    pub ended: bool,
    /// Number of its tasks, where each of them has given what its operators have; 0: that isn't known.
    #[serde(default)]
    pub tasks: u32,
    /// Its operators that have state.
    pub operators: Vec<OperatorState>,
}

/// An operator's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorState {
    /// The operator's name.
    pub node: String,
    /// Which form the parts have.
    pub kind: String,
    /// Where it is, in the order in which it is put together.
    pub parts: Vec<Part>,
}

/// A stored piece of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name below `parts/`.
    pub name: String,
    /// Its length as stored.
    pub bytes: u64,
    /// Its length as it is given back.
    pub raw_bytes: u64,
    /// CRC-32 of what is stored.
    pub crc: u32,
    /// Identifies the form of its bytes.
    pub schema: u64,
    /// Rows, groups or entries in it; the writer's own, for people.
    pub rows: u64,
    /// The checkpoint for which it was written.
    pub created_by: u64,
}

/// A sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkState {
    /// The operator's name.
    pub node: String,
    /// Where its rows go, as the user would name it.
    pub target: Option<String>,
    /// Its rows become visible all at once, when the job ends: every epoch is needed until then.
    #[serde(default)]
    pub at_end: bool,
    /// Its closed epochs, ascending.
    pub sealed: Vec<Sealed>,
}

/// Rejected rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectsState {
    /// How many so far.
    pub count: u64,
    /// Their closed epochs, where they are kept.
    pub sealed: Vec<Sealed>,
}

/// Rows so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Read by all sources.
    pub rows_in: u64,
    /// Given to all sinks.
    pub rows_out: u64,
}

impl Manifest {
    /// A checkpoint with nothing in it, to be filled in.
    pub fn new(kind: Kind, number: u64, lineage: impl Into<String>, pipeline: PlanPrint) -> Manifest {
        Manifest {
            format: FORMAT,
            number,
            lineage: lineage.into(),
            kind,
            writer: String::new(),
            created_micros: 0,
            now_micros: 0,
            pipeline,
            parallelism: 1,
            ordinal_base: 0,
            sources: Vec::new(),
            stages: Vec::new(),
            sinks: Vec::new(),
            rejects: RejectsState::default(),
            counters: Counters::default(),
            spool_bytes: 0,
            state_bytes: 0,
            duration_ms: 0,
            alignment_ms: 0,
            savepoint_note: None,
        }
    }

    /// Every part that it names.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.stages.iter().flat_map(|stage| &stage.operators).flat_map(|operator| &operator.parts)
    }

    /// Bytes of state that going on from it loads, as stored.
    pub fn stored_state_bytes(&self) -> u64 {
        self.parts().map(|part| part.bytes).sum()
    }
}
