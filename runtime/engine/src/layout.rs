//! What can be said of a plan before anything is opened: who writes and reads what, and whether the parts fit (D2).

use std::collections::BTreeSet;

use dfc_ir::StagePlan;
use dfc_ir::stage::{Partition, Stage, StageInput, StageOp, StageOutput};

use crate::RunError;

/// Who is connected with whom. Stages are numbered as in the plan.
pub(crate) struct Layout {
    /// For each exchange its writing stages and how they deal.
    pub(crate) writers: Vec<Vec<(usize, Partition)>>,
    /// For each exchange its reading stage.
    pub(crate) reader: Vec<usize>,
    /// For each join table its building stages.
    pub(crate) builders: Vec<Vec<usize>>,
    /// For each stage all stages that must run for it, itself included.
    upstream: Vec<BTreeSet<usize>>,
    /// For each stage the join tables it probes.
    pub(crate) probes: Vec<Vec<usize>>,
}

impl Layout {
    /// # Errors
    /// When the plan contradicts itself.
    pub(crate) fn new(plan: &StagePlan) -> Result<Layout, RunError> {
        let wrong = |stage: &Stage, what: &str| Err(RunError::Plan(format!("stage `{}`: {what}", stage.name)));
        let mut layout = Layout {
            writers: vec![Vec::new(); plan.exchanges],
            reader: vec![usize::MAX; plan.exchanges],
            builders: vec![Vec::new(); plan.tables],
            upstream: Vec::new(),
            probes: Vec::new(),
        };
        for (index, stage) in plan.stages.iter().enumerate() {
            let mut upstream = BTreeSet::from([index]);
            let mut after = |stages: &mut dyn Iterator<Item = usize>| {
                stages.for_each(|writer| upstream.extend(layout.upstream[writer].iter().copied()));
            };
            if let StageInput::Exchange { id, .. } = stage.input {
                match layout.writers.get(id) {
                    Some(writers) if !writers.is_empty() => after(&mut writers.iter().map(|(writer, _)| *writer)),
                    _ => return wrong(stage, "nobody before it writes what it reads"),
                }
                if layout.reader[id] != usize::MAX {
                    return wrong(stage, "another stage reads the same exchange");
                }
                layout.reader[id] = index;
            }
            let mut probes = Vec::new();
            for (k, op) in stage.ops.iter().enumerate() {
                match op {
                    StageOp::Probe { table, .. } => {
                        match layout.builders.get(*table) {
                            Some(builders) if !builders.is_empty() => after(&mut builders.iter().copied()),
                            _ => return wrong(stage, "nobody before it builds the join table it probes"),
                        }
                        probes.push(*table);
                    }
                    StageOp::AggregatePartial(_) if k + 1 != stage.ops.len() => {
                        return wrong(stage, "an operator stands after the first half of an aggregate");
                    }
                    _ => {}
                }
            }
            if stage.outputs.is_empty() {
                return wrong(stage, "its rows go nowhere");
            }
            for output in &stage.outputs {
                match output {
                    StageOutput::Exchange { id, partition } => {
                        let Some(writers) = layout.writers.get_mut(*id) else {
                            return wrong(stage, "it writes an exchange that doesn't exist");
                        };
                        let kind = std::mem::discriminant(partition);
                        if writers.iter().any(|(_, other)| std::mem::discriminant(other) != kind) {
                            return wrong(stage, "it deals rows in another way than others into the same exchange");
                        }
                        writers.push((index, partition.clone()));
                    }
                    StageOutput::Build { table, .. } => match layout.builders.get_mut(*table) {
                        Some(builders) => builders.push(index),
                        None => return wrong(stage, "it builds a join table that doesn't exist"),
                    },
                    StageOutput::Sink { .. } => {}
                }
            }
            layout.upstream.push(upstream);
            layout.probes.push(probes);
        }
        match layout.reader.iter().position(|&reader| reader == usize::MAX) {
            Some(id) => Err(RunError::Plan(format!("nobody reads exchange {id}"))),
            None => Ok(layout),
        }
    }

    /// Whether the exchange must take everything until its reader has started: the reader waits for a join table, and whoever makes
    /// that table also feeds this exchange, so that holding the writers back would hold the table back.
    pub(crate) fn may_lock(&self, exchange: usize) -> bool {
        let makers = self.probes[self.reader[exchange]].iter().flat_map(|&table| &self.builders[table]);
        let makers: BTreeSet<usize> = makers.flat_map(|&stage| self.upstream[stage].iter().copied()).collect();
        self.writers[exchange].iter().any(|(writer, _)| !self.upstream[*writer].is_disjoint(&makers))
    }

    /// Most tasks that stage may have for what it reads and does.
    pub(crate) fn most_tasks(&self, stage: &Stage) -> usize {
        let gathered = match stage.input {
            StageInput::Exchange { id, .. } => self.writers[id].iter().any(|(_, p)| *p == Partition::Gather),
            StageInput::Source { .. } => false,
        };
        // These must see everything; an aggregate without keys has one row however little it sees.
        let sees_all = stage.ops.iter().any(|op| match op {
            StageOp::Sort { .. } | StageOp::Take { .. } => true,
            StageOp::AggregateFinal(spec) => spec.keys.is_empty(),
            StageOp::Distinct { keys, .. } => keys.is_empty() && width(stage) == 0,
            _ => false,
        });
        if gathered || sees_all { 1 } else { stage.max_tasks.unwrap_or(usize::MAX).max(1) }
    }
}

/// Number of columns that a stage reads.
fn width(stage: &Stage) -> usize {
    match &stage.input {
        StageInput::Source { spec, .. } => spec.projection.len(),
        StageInput::Exchange { schema, .. } => schema.len(),
    }
}
