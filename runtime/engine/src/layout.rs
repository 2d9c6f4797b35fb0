//! What can be said of a plan before anything is opened: who writes and reads what, and whether the parts fit (D2).

use dfc_ir::StagePlan;
use dfc_ir::stage::{Partition, Stage, StageInput, StageOp, StageOutput};

use crate::RunError;

/// Why a stage doesn't go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standstill {
    /// It hasn't started: a join table is missing. It reads nothing.
    Waits,
    /// It has started (perhaps), but one of its readers takes nothing more. It reads nothing.
    Held,
    /// One of its writers gives nothing. It would read.
    Starves,
}

/// Who is connected with whom. Stages are numbered as in the plan.
pub(crate) struct Layout {
    /// For each exchange its writing stages and how they deal.
    pub(crate) writers: Vec<Vec<(usize, Partition)>>,
    /// For each exchange its reading stage.
    pub(crate) reader: Vec<usize>,
    /// For each join table its building stages.
    pub(crate) builders: Vec<Vec<usize>>,
    /// For each stage the join tables it probes.
    pub(crate) probes: Vec<Vec<usize>>,
    /// For each stage the exchange it reads.
    input: Vec<Option<usize>>,
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
            probes: Vec::new(),
            input: Vec::new(),
        };
        for (index, stage) in plan.stages.iter().enumerate() {
            if let StageInput::Exchange { id, .. } = stage.input {
                if layout.writers.get(id).is_none_or(Vec::is_empty) {
                    return wrong(stage, "nobody before it writes what it reads");
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
                        if layout.builders.get(*table).is_none_or(Vec::is_empty) {
                            return wrong(stage, "nobody before it builds the join table it probes");
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
            layout.probes.push(probes);
            layout.input.push(match stage.input {
                StageInput::Exchange { id, .. } => Some(id),
                StageInput::Source { .. } => None,
            });
        }
        match layout.reader.iter().position(|&reader| reader == usize::MAX) {
            Some(id) => Err(RunError::Plan(format!("nobody reads exchange {id}"))),
            None => Ok(layout),
        }
    }

    /// For each exchange whether it must take everything until its reader has started: the reader waits for a join table, and if it
    /// held its writers back meanwhile, that table would never be complete.
    pub(crate) fn unbounded(&self) -> Vec<bool> {
        let mut unbounded = vec![false; self.reader.len()];
        for (stage, input) in self.input.iter().enumerate() {
            if let Some(input) = *input
                && !self.probes[stage].is_empty()
            {
                // The more exchanges are unbounded the less is held back: what was found free of locks before stays so.
                unbounded[input] = self.locks_itself(stage, &unbounded);
            }
        }
        unbounded
    }

    /// Whether a stage that waits for its join tables keeps them from being completed, along whatever way: a stage that reads nothing
    /// holds its writers back where their exchange is bounded; a stage that is held back starves its readers and is missing at the join
    /// tables it builds; whoever waits for one of those reads nothing either. Each of these follows from a single cause, so that any
    /// standstill is a circle that one of its stages finds by starting here.
    fn locks_itself(&self, waiting: usize, unbounded: &[bool]) -> bool {
        let mut seen = vec![[false; 3]; self.input.len()];
        let mut work = vec![(waiting, Standstill::Waits)];
        while let Some((stage, why)) = work.pop() {
            if std::mem::replace(&mut seen[stage][why as usize], true) {
                continue;
            }
            if let Some(input) = self.input[stage]
                && match why {
                    Standstill::Waits => !unbounded[input],
                    Standstill::Held => true,
                    Standstill::Starves => false,
                }
            {
                work.extend(self.writers[input].iter().map(|(writer, _)| (*writer, Standstill::Held)));
            }
            for (exchange, writers) in self.writers.iter().enumerate() {
                if writers.iter().any(|(writer, _)| *writer == stage) {
                    work.push((self.reader[exchange], Standstill::Starves));
                }
            }
            for (table, _) in self.builders.iter().enumerate().filter(|(_, builders)| builders.contains(&stage)) {
                for reader in (0..self.probes.len()).filter(|&reader| self.probes[reader].contains(&table)) {
                    if reader == waiting {
                        return true;
                    }
                    work.push((reader, Standstill::Waits));
                }
            }
        }
        false
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
