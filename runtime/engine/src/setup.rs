//! From a plan to tasks: opens sources and sinks, compiles programs, decides how many tasks a stage gets, and connects them (D1–D3).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dfc_connect::{ConnectError, OpenContext, SinkEpochs, Source, Wake};
use dfc_ir::plan::{Join, MatchMode, OptionValue};
use dfc_ir::stage::{Partition, Stage, StageInput, StageOp, StageOutput};
use dfc_ir::{DataType, StagePlan};
use dfc_jit::{CompileReport, has_value, prepare_exprs};
use dfc_trial::{Planted, planted};

use crate::budget::Stays;
use crate::checkpoint::Loaded;
use crate::connect::ConnectorSet;
use crate::early::{Later, row_filter};
use crate::exchange::{Exchange, ExchangeShape};
use crate::layout::Layout;
use crate::observe::Event;
use crate::output::OutputPort;
use crate::prepare::prepare_ops;
use crate::restore::{refill, rows_of_table};
use crate::run::JobCx;
use crate::schedule::{Runnable, TaskId};
use crate::sink::SinkPort;
use crate::state::{Kind, Restored};
use crate::summary::OperatorSummary;
use crate::table::{TableShape, TableSlot};
use crate::task::{InputPort, StageCx, Task};
use crate::{RunError, RunOptions};

/// An opened source.
pub(crate) struct SourcePort {
    /// The operator's name.
    pub(crate) node: Arc<str>,
    pub(crate) source: Box<dyn Source>,
    /// Read no more rows.
    pub(crate) limit_rows: Option<u64>,
    /// Rows that were read before the checkpoint from which the job goes on.
    pub(crate) rows_before: u64,
}

impl SourcePort {
    /// A failure of this source.
    pub(crate) fn failed(&self, error: ConnectError) -> RunError {
        RunError::Connect { node: self.node.to_string(), error }
    }
}

/// What a run is made from.
pub(crate) struct Setup<'a> {
    pub(crate) connectors: &'a dyn ConnectorSet,
    pub(crate) plan: &'a StagePlan,
    pub(crate) options: &'a RunOptions,
    pub(crate) job: &'a Arc<JobCx>,
    pub(crate) threads: usize,
    /// The sinks are to work in epochs: the lineage, and the checkpoints, which keep the spools.
    pub(crate) epochs: Option<(&'a str, &'a dfc_checkpoint::Job)>,
    /// The checkpoint from which the job goes on.
    pub(crate) loaded: Option<&'a Loaded>,
    /// What there was before was given up on purpose.
    pub(crate) fresh: bool,
}

/// A run, ready to begin.
pub(crate) struct Built {
    pub(crate) tasks: Vec<Box<dyn Runnable>>,
    pub(crate) stages: Vec<Arc<StageCx>>,
    /// By stage: its source, with the connector's name.
    pub(crate) sources: Vec<Option<(Arc<SourcePort>, String)>>,
    /// By exchange: itself and the stage that reads it.
    pub(crate) exchanges: Vec<(Arc<Exchange>, usize)>,
    pub(crate) parallelism: usize,
}

/// Opened sources by stage, and which tasks are woken when one has something.
pub(crate) struct Opened {
    ports: Vec<Option<Arc<SourcePort>>>,
    wakes: Vec<Arc<OnceLock<Range<TaskId>>>>,
    /// By join table: the table itself, for sources that ask for partners.
    tables: Vec<Later>,
}

impl Opened {
    /// Why the job can't take checkpoints, because of a source.
    pub(crate) fn not_resumable(&self) -> Option<String> {
        let mut ports = self.ports.iter().flatten();
        ports.find_map(|port| port.source.resumable().err().map(|why| format!("`{}`: {why}", port.node)))
    }
}

impl Setup<'_> {
    /// All tasks, stage by stage. Sinks are put into `sinks` as they are opened, so that a failure half-way can remove them.
    pub(crate) fn build(&self, opened: Opened, sinks: &mut Vec<Arc<SinkPort>>) -> Result<Built, RunError> {
        let layout = Layout::new(self.plan)?;
        let Opened { ports: sources, wakes, tables: asked } = opened;
        let tasks = self.count_tasks(&layout, &sources);
        let ordered = self.in_order(&layout, &sources, &tasks);
        let exchanges = layout.unbounded().into_iter().enumerate().map(|(id, unbounded)| {
            let shape = ExchangeShape { unbounded, ..self.exchange(&layout, id, &tasks, &ordered) };
            Arc::new(Exchange::new(&shape, self.job.scheduler.clone()))
        });
        let exchanges: Vec<_> = exchanges.collect();
        let tables = layout.builders.iter().enumerate().map(|(id, builders)| {
            let tasks = builders.iter().map(|&stage| tasks[stage]).sum();
            Arc::new(TableSlot::new(tasks, self.table_shape(builders, id), self.job.scheduler.clone()))
        });
        let tables: Vec<_> = tables.collect();
        for (asked, table) in asked.iter().zip(&tables) {
            // Set once: what was opened is built once.
            let _ = asked.set(table.clone());
        }
        let mut restored = self.restored();
        let mut ports = Vec::new();

        // By exchange: the number of the first packet in it.
        let mut starts = vec![self.first(); exchanges.len()];
        let mut stages: Vec<Arc<StageCx>> = Vec::new();
        for (index, (stage, source)) in self.plan.stages.iter().zip(sources).enumerate() {
            let mut report = |report: CompileReport| self.compiled(index, report);
            let prepared = prepare_ops(stage, self.options, tasks[index], &tables, &mut report)?;
            let outputs = self.outputs(stage, index, &tasks, &ordered, &exchanges, &tables, &layout, sinks)?;
            let input_name = match &source {
                Some(port) => port.node.clone(),
                None => input_name(stage),
            };
            let connector = match &stage.input {
                StageInput::Source { spec, .. } => spec.connector.clone(),
                StageInput::Exchange { .. } => String::new(),
            };
            ports.push(source.clone().map(|port| (port, connector)));
            let input = match (source, &stage.input) {
                (Some(port), _) => InputPort::Source(port),
                (None, StageInput::Exchange { id, .. }) => InputPort::Exchange(exchanges[*id].clone()),
                (None, StageInput::Source { node, .. }) => {
                    return Err(RunError::Plan(format!("source `{node}` was not opened")));
                }
            };
            let slots: Vec<Arc<str>> = std::iter::once(input_name)
                .chain(prepared.names)
                .chain(stage.outputs.iter().map(|output| output_name(stage, output)))
                .collect();
            self.count(index, &slots);
            let restored = self.slotted(index, &slots, stage, std::mem::take(&mut restored[index]))?;
            let mut in_operators = Vec::new();
            for (slot, state) in restored {
                match (state.kind, slot.checked_sub(1 + stage_ops(&prepared.ops)).map(|output| &outputs[output])) {
                    (Kind::Build, Some(OutputPort::Build { table, keys })) => {
                        table.preload(rows_of_table(&state, keys.as_ref())?);
                        state.parts.give_up();
                    }
                    (_, None) if slot == 0 => {
                        if let (InputPort::Exchange(exchange), StageInput::Exchange { id, .. }) = (&input, &stage.input)
                        {
                            refill(
                                exchange,
                                &state,
                                self.writers_of(&layout, *id, &exchanges),
                                self.partial_spec(*id),
                            )?;
                        }
                        state.parts.give_up();
                    }
                    _ => in_operators.push((slot, state)),
                }
            }
            if let StageInput::Exchange { id, .. } = &stage.input {
                starts[*id] = starts[*id].min(exchanges[*id].number_refilled(self.first()));
                // A task that is alone numbers its packets itself.
                if tasks[index] > 1 && starts[*id] < self.first() {
                    for (port, output) in outputs.iter().zip(&stage.outputs) {
                        match port {
                            OutputPort::Exchange { exchange, .. } => exchange.start_at(starts[*id]),
                            OutputPort::Sink(port) => port.start_at(starts[*id]),
                            OutputPort::Build { .. } => {}
                        }
                        if let StageOutput::Exchange { id: next, .. } = output {
                            starts[*next] = starts[*id];
                        }
                    }
                }
            }
            stages.push(Arc::new(StageCx {
                index,
                name: stage.name.as_str().into(),
                tasks: tasks[index],
                input,
                ops: prepared.ops,
                outputs,
                waits_for: layout.probes[index].iter().map(|&table| tables[table].clone()).collect(),
                slots,
                opened: AtomicUsize::new(0),
                closed: AtomicUsize::new(0),
                ended: self.loaded.is_some_and(|loaded| loaded.ended(index)),
                restored: in_operators,
                restored_by: AtomicUsize::new(0),
                first: self.first(),
            }));
        }
        let mut next = 0;
        for (wake, &count) in wakes.iter().zip(&tasks) {
            // Set once: a run is set up once.
            let _ = wake.set(next..next + count);
            next += count;
        }
        let numbered = stages.iter().flat_map(|stage| (0..stage.tasks).map(move |number| (stage, number)));
        let task = |(id, (stage, number)): (usize, (&Arc<StageCx>, usize))| {
            Box::new(Task::new(id, number, stage.clone(), self.job.clone())) as Box<dyn Runnable>
        };
        Ok(Built {
            tasks: numbered.enumerate().map(task).collect(),
            sources: ports,
            exchanges: exchanges.into_iter().zip(layout.reader).collect(),
            parallelism: self.parallelism(),
            stages: stages.clone(),
        })
    }

    /// Number of the first batch and packet.
    fn first(&self) -> u64 {
        if planted(Planted::OrdinalsFromZero) {
            return 0;
        }
        self.loaded.map_or(0, |loaded| loaded.manifest.ordinal_base)
    }

    /// What the checkpoint kept, by stage, with the operators' names.
    fn restored(&self) -> Vec<Vec<(String, Restored)>> {
        let mut restored = self.loaded.map_or_else(Vec::new, |loaded| loaded.states.clone());
        restored.resize_with(self.plan.stages.len(), Vec::new);
        restored
    }

    /// The same with the operators' slots.
    fn slotted(
        &self,
        index: usize,
        slots: &[Arc<str>],
        stage: &Stage,
        states: Vec<(String, Restored)>,
    ) -> Result<Vec<(usize, Restored)>, RunError> {
        let slotted =
            states.into_iter().map(|(node, state)| match slot_of(slots, stage.outputs.len(), &node, state.kind) {
                Some(slot) => Ok((slot, state)),
                None => Err(RunError::State(format!(
                    "it has `{}` of `{node}` in stage {index}, which holds {}",
                    state.kind.name(),
                    slots.join(", ")
                ))),
            });
        slotted.collect()
    }

    /// How rows are dealt into an exchange.
    fn writers_of<'e>(
        &self,
        layout: &Layout,
        id: usize,
        exchanges: &'e [Arc<Exchange>],
    ) -> Option<(Vec<(usize, DataType)>, &'e Arc<Exchange>)> {
        let (writer, partition) = layout.writers[id].first()?;
        let types = self.plan.stages[*writer].schema.types();
        let columns = match partition {
            Partition::Hash(columns) => {
                columns.iter().filter_map(|&c| types.get(c).map(|ty| (c, ty.clone()))).collect()
            }
            Partition::Any | Partition::Gather => Vec::new(),
        };
        Some((columns, &exchanges[id]))
    }

    /// The aggregate whose first half goes through an exchange.
    fn partial_spec(&self, id: usize) -> Option<&dfc_ir::stage::AggregateSpec> {
        let writes = |stage: &&Stage| {
            stage.outputs.iter().any(|o| matches!(o, StageOutput::Exchange { id: to, .. } if *to == id))
        };
        self.plan.stages.iter().find(writes).and_then(|stage| match stage.ops.last() {
            Some(StageOp::AggregatePartial(spec)) => Some(spec),
            _ => None,
        })
    }

    /// Why the job can't take checkpoints, because of a sink.
    pub(crate) fn without_epochs(&self) -> Option<String> {
        let outputs = self.plan.stages.iter().flat_map(|stage| &stage.outputs);
        let mut sinks = outputs.filter_map(|output| match output {
            StageOutput::Sink { node, spec, .. } => Some((node, spec)),
            StageOutput::Exchange { .. } | StageOutput::Build { .. } => None,
        });
        sinks.find_map(|(node, spec)| self.connectors.takes_epochs(spec).err().map(|why| format!("`{node}`: {why}")))
    }

    fn parallelism(&self) -> usize {
        match (self.options.parallelism, self.plan.job.parallelism) {
            (0, Some(parallelism)) => parallelism.max(1),
            (0, None) => self.threads,
            (parallelism, _) => parallelism,
        }
    }

    fn open_context(&self, node: &str, tasks: usize) -> OpenContext {
        OpenContext {
            node: node.to_owned(),
            job: self.plan.job.name.clone(),
            fresh: self.fresh,
            tasks,
            cancelled: self.job.scheduler.stopping(),
            limit_rows: self.options.limit_rows,
            ..OpenContext::default()
        }
    }

    /// Opens the sources. Everything is read before anything is written: a missing file leaves no trace at the sinks.
    pub(crate) fn open_sources(&self) -> Result<Opened, RunError> {
        let mut ports = Vec::new();
        let mut wakes = Vec::new();
        let tables: Vec<Later> = (0..self.plan.tables).map(|_| Later::default()).collect();
        for (index, stage) in self.plan.stages.iter().enumerate() {
            let woken = Arc::<OnceLock<Range<TaskId>>>::default();
            wakes.push(woken.clone());
            let StageInput::Source { node, spec, .. } = &stage.input else {
                ports.push(None);
                continue;
            };
            let most = self.parallelism().min(stage.max_tasks.unwrap_or(usize::MAX));
            let scheduler = self.job.scheduler.clone();
            let cx = OpenContext {
                positions: self.loaded.and_then(|loaded| loaded.positions(node)),
                continues: self.loaded.is_some_and(|loaded| loaded.continues),
                filter: row_filter(stage, self.plan, &tables, self.options, &mut |report| self.compiled(index, report)),
                wake: Wake::new(move || scheduler.wake_all(woken.get().cloned().unwrap_or_default())),
                ..self.open_context(node, most)
            };
            let source = self.connectors.open_source(spec, &cx);
            let source = source.map_err(|error| RunError::Connect { node: node.clone(), error })?;
            let limit_rows = self.options.limit_rows;
            let before = self.loaded.and_then(|loaded| loaded.manifest.sources.iter().find(|s| s.node == *node));
            if let Some(before) = before {
                source.counters().rows.fetch_add(before.rows, Ordering::Relaxed);
                source.counters().bytes.fetch_add(before.bytes, Ordering::Relaxed);
            }
            let rows_before = before.map_or(0, |before| before.rows);
            ports.push(Some(Arc::new(SourcePort { node: node.as_str().into(), source, limit_rows, rows_before })));
        }
        let opened: Vec<_> = ports.iter().flatten().collect();
        // How much of it a limited run will read nobody knows.
        let total = match self.options.limit_rows {
            None => opened.iter().map(|port| port.source.total_bytes()).sum(),
            Some(_) => None,
        };
        let counters = opened.iter().map(|port| port.source.counters()).collect();
        *self.job.progress.total_bytes.lock().unwrap_or_else(|e| e.into_inner()) = total;
        *self.job.progress.sources.lock().unwrap_or_else(|e| e.into_inner()) = counters;
        Ok(Opened { ports, wakes, tables })
    }

    /// Number of tasks of each stage.
    fn count_tasks(&self, layout: &Layout, sources: &[Option<Arc<SourcePort>>]) -> Vec<usize> {
        let count = |(stage, source): (&Stage, &Option<Arc<SourcePort>>)| {
            let splits = match source {
                // The first so many rows: one task reads them in order.
                Some(port) if port.limit_rows.is_some() => 1,
                Some(port) => port.source.max_tasks(),
                None => usize::MAX,
            };
            self.parallelism().min(layout.most_tasks(stage)).min(splits).max(1)
        };
        self.plan.stages.iter().zip(sources).map(count).collect()
    }

    /// For each stage whether its packets are numbered without gaps, each number once, so that readers can restore their order.
    fn in_order(&self, layout: &Layout, sources: &[Option<Arc<SourcePort>>], tasks: &[usize]) -> Vec<bool> {
        let mut ordered: Vec<bool> = Vec::new();
        for ((stage, source), &tasks) in self.plan.stages.iter().zip(sources).zip(tasks) {
            let numbered = match &stage.input {
                StageInput::Source { .. } => source.as_ref().is_some_and(|port| port.source.ordered()),
                StageInput::Exchange { id, .. } => match &layout.writers[*id][..] {
                    [(writer, Partition::Any | Partition::Gather)] => ordered[*writer],
                    _ => false,
                },
            };
            // A task that is alone numbers its packets itself.
            ordered.push(numbered || tasks == 1);
        }
        ordered
    }

    fn exchange(&self, layout: &Layout, id: usize, tasks: &[usize], ordered: &[bool]) -> ExchangeShape {
        let readers = tasks[layout.reader[id]];
        let writers = &layout.writers[id];
        let by_hash = writers.iter().any(|(_, partition)| matches!(partition, Partition::Hash(_)));
        let restores = match &writers[..] {
            [(writer, Partition::Any | Partition::Gather)] => ordered[*writer] && tasks[*writer] > 1,
            _ => false,
        };
        ExchangeShape {
            lanes: if by_hash { readers } else { 1 },
            readers: if by_hash { 1 } else { readers },
            writers: writers.iter().map(|(writer, _)| tasks[*writer]).sum(),
            ordered: restores,
            unbounded: false,
            first: self.first(),
        }
    }

    /// Why a join table has to be in memory: rows on disk have lost the place that an error names.
    fn stays(&self, table: usize) -> Option<Stays> {
        let probes = self.plan.stages.iter().flat_map(|stage| &stage.ops).filter_map(|op| match op {
            StageOp::Probe { table: id, join, .. } if *id == table => Some(join),
            _ => None,
        });
        let named = |join: &Join| {
            let fails = join.residual.as_ref().is_some_and(|condition| !has_value(condition));
            join.required || join.matches == MatchMode::One || fails
        };
        let endless = |stage: &Stage| match &stage.input {
            StageInput::Source { spec, .. } => {
                spec.options.get("follow") == Some(&OptionValue::Value(dfc_ir::Value::Bool(true)))
            }
            StageInput::Exchange { .. } => false,
        };
        if self.plan.stages.iter().any(endless) {
            return Some(Stays::Endless);
        }
        probes.into_iter().any(named).then_some(Stays::Rejects)
    }

    fn table_shape(&self, builders: &[usize], table: usize) -> TableShape {
        let stages = builders.iter().map(|&stage| &self.plan.stages[stage]);
        let shape = stages.flat_map(|stage| stage.outputs.iter().map(move |output| (stage, output)));
        let mut shape = shape.filter_map(|(stage, output)| match output {
            StageOutput::Build { table: id, keys } if *id == table => Some(TableShape {
                node: output_name(stage, output),
                columns: stage.schema.types(),
                keys: keys.iter().map(|key| key.ty.clone()).collect(),
                stays: self.stays(table),
            }),
            _ => None,
        });
        shape.next().unwrap_or_default()
    }

    fn outputs(
        &self,
        stage: &Stage,
        index: usize,
        tasks: &[usize],
        ordered: &[bool],
        exchanges: &[Arc<Exchange>],
        tables: &[Arc<TableSlot>],
        layout: &Layout,
        sinks: &mut Vec<Arc<SinkPort>>,
    ) -> Result<Vec<OutputPort>, RunError> {
        let types = stage.schema.types();
        let mut ports = Vec::new();
        for output in &stage.outputs {
            ports.push(match output {
                StageOutput::Exchange { id, partition } => {
                    let columns = match partition {
                        Partition::Hash(columns) => columns.as_slice(),
                        Partition::Any | Partition::Gather => &[],
                    };
                    let typed = |&column: &usize| types.get(column).map(|ty| (column, ty.clone()));
                    let columns: Option<Vec<(usize, DataType)>> = columns.iter().map(typed).collect();
                    let columns = columns.ok_or_else(|| {
                        RunError::Plan(format!("stage `{}` deals rows by a column it doesn't have", stage.name))
                    })?;
                    OutputPort::Exchange {
                        exchange: exchanges[*id].clone(),
                        columns,
                        ordered: ordered[index] && layout.writers[*id].len() == 1,
                        node: stage.name.as_str().into(),
                    }
                }
                StageOutput::Build { table, keys } => {
                    let node = output_name(stage, output);
                    let (program, report) = prepare_exprs(&node, &types, keys, self.options.tier, self.options.env);
                    self.compiled(index, report);
                    OutputPort::Build { table: tables[*table].clone(), keys: program }
                }
                StageOutput::Sink { node, spec, .. } => {
                    let mut cx = self.open_context(node, tasks[index]);
                    if let Some((lineage, checkpoints)) = self.epochs {
                        let resume = self.loaded.map(|loaded| loaded.sink(node));
                        let sealed = resume.as_ref().map_or(&[][..], |resume| &resume.sealed);
                        checkpoints.fetch(lineage, node, sealed).map_err(RunError::Checkpoint)?;
                        let spool = checkpoints.create_spool(node).map_err(RunError::Checkpoint)?;
                        cx.epochs = Some(SinkEpochs { lineage: lineage.to_owned(), spool, resume });
                    }
                    let sink = self.connectors.open_sink(spec, &stage.schema, &cx);
                    let sink = sink.map_err(|error| RunError::Connect { node: node.clone(), error })?;
                    let port = Arc::new(SinkPort::new(
                        node.as_str().into(),
                        sink,
                        tasks[index],
                        stage.ordered && ordered[index],
                        self.first(),
                        target(&spec.options),
                        self.job.scheduler.clone(),
                        self.job.progress.clone(),
                    ));
                    sinks.push(port.clone());
                    OutputPort::Sink(port)
                }
            });
        }
        Ok(ports)
    }

    fn compiled(&self, stage: usize, report: CompileReport) {
        self.job.observer.event(&Event::Compiled { stage, report });
    }

    /// Makes room for a stage's counters.
    fn count(&self, stage: usize, slots: &[Arc<str>]) {
        let summary =
            |operator: &Arc<str>| OperatorSummary { stage, operator: operator.to_string(), ..Default::default() };
        let mut stats = self.job.stats.lock().unwrap_or_else(|e| e.into_inner());
        stats.push(slots.iter().map(summary).collect());
    }
}

fn stage_ops(ops: &[crate::ops::PreparedOp]) -> usize {
    ops.len()
}

/// Where a sink's rows go, as the user would name it.
fn target(options: &dfc_ir::plan::Options) -> Option<String> {
    ["path", "table"].iter().find_map(|name| options.get(*name).and_then(OptionValue::text)).map(str::to_owned)
}

/// The slot of an operator's state of this kind.
pub(crate) fn slot_of(slots: &[Arc<str>], outputs: usize, node: &str, kind: Kind) -> Option<usize> {
    let outputs = slots.len() - outputs;
    let range = match kind {
        Kind::Build => outputs..slots.len(),
        Kind::Queue => 0..1,
        _ => 0..outputs,
    };
    range.into_iter().find(|&slot| *slots[slot] == *node)
}

fn input_name(stage: &Stage) -> Arc<str> {
    match &stage.input {
        StageInput::Source { node, .. } => node.as_str().into(),
        StageInput::Exchange { id, .. } => format!("from exchange {id}").into(),
    }
}

fn output_name(stage: &Stage, output: &StageOutput) -> Arc<str> {
    match output {
        StageOutput::Exchange { id, .. } => format!("to exchange {id}").into(),
        // A stage that builds a join table is named last after the join.
        StageOutput::Build { .. } => stage.name.rsplit(" → ").next().unwrap_or(&stage.name).into(),
        StageOutput::Sink { node, .. } => node.as_str().into(),
    }
}

/// The types of the columns a stage reads.
pub(crate) fn input_types(stage: &Stage) -> Vec<DataType> {
    match &stage.input {
        StageInput::Source { spec, .. } => spec.projected().types(),
        StageInput::Exchange { schema, .. } => schema.types(),
    }
}

/// The types after an operator, if it changes them.
pub(crate) fn output_types(op: &StageOp) -> Option<Vec<DataType>> {
    match op {
        StageOp::Program(program) => Some(program.schema.types()),
        StageOp::AggregateFinal(spec) => Some(spec.output.types()),
        StageOp::Probe { output, .. } => Some(output.types()),
        StageOp::AggregatePartial(_) | StageOp::Distinct { .. } | StageOp::Sort { .. } | StageOp::Take { .. } => None,
    }
}
