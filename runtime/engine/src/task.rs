//! A task: one of the parallel runs of a stage, as a state machine (D1, D2).
//!
//! It waits for the join tables its stage probes, then reads packet by packet, passes each through its operators and hands what
//! comes out to its outputs; it stops wherever one of them would block, and goes on there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dfc_batch::{Batch, RowError};
use dfc_connect::{Next, Reader};

use crate::RunError;
use crate::counters::TaskCx;
use crate::exchange::{Exchange, Packet, Received};
use crate::ops::{Made, Operator, Out, PreparedOp};
use crate::output::{Output, OutputPort};
use crate::reorder::TAIL;
use crate::run::JobCx;
use crate::schedule::{Runnable, Step, TaskId};
use crate::setup::SourcePort;
use crate::table::TableSlot;

/// What the tasks of a stage share.
pub(crate) struct StageCx {
    /// Position in the plan.
    pub(crate) index: usize,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Number of its tasks.
    pub(crate) tasks: usize,
    /// What it reads.
    pub(crate) input: InputPort,
    /// Its operators, ready to be opened.
    pub(crate) ops: Vec<PreparedOp>,
    /// Its outputs, ready to be opened.
    pub(crate) outputs: Vec<OutputPort>,
    /// The join tables it probes.
    pub(crate) waits_for: Vec<Arc<TableSlot>>,
    /// Names of the input, the operators and the outputs, for counters.
    pub(crate) slots: Vec<Arc<str>>,
    /// Tasks that have been opened.
    pub(crate) opened: AtomicUsize,
    /// Tasks that have ended.
    pub(crate) closed: AtomicUsize,
}

/// What a stage reads.
pub(crate) enum InputPort {
    /// A source.
    Source(Arc<SourcePort>),
    /// An exchange; task k reads lane k, or lane 0 where there is only one.
    Exchange(Arc<Exchange>),
}

enum Input {
    Source { port: Arc<SourcePort>, reader: Box<dyn Reader>, rows_left: Option<u64> },
    Exchange { exchange: Arc<Exchange>, lane: usize },
}

enum Phase {
    /// Join tables are missing.
    Waiting,
    /// Reading.
    Running,
    /// The input has ended; this operator gives what it still holds.
    Finishing(usize),
    /// Only outputs are left to be emptied.
    Closing,
}

/// One task of a stage.
pub(crate) struct Task {
    id: TaskId,
    number: usize,
    stage: Arc<StageCx>,
    cx: TaskCx,
    phase: Phase,
    input: Option<Input>,
    ops: Vec<Box<dyn Operator>>,
    outputs: Vec<Output>,
    errors: Vec<RowError>,
    /// Packets made so far, and batches read: a single task numbers them itself.
    packets: u64,
    batches: u64,
}

impl Task {
    pub(crate) fn new(id: TaskId, number: usize, stage: Arc<StageCx>, job: Arc<JobCx>) -> Task {
        let cx = TaskCx::new(job, &stage, number);
        Task {
            id,
            number,
            stage,
            cx,
            phase: Phase::Waiting,
            input: None,
            ops: Vec::new(),
            outputs: Vec::new(),
            errors: Vec::new(),
            packets: 0,
            batches: 0,
        }
    }

    fn open(&mut self) -> Result<(), RunError> {
        if self.stage.opened.fetch_add(1, Ordering::AcqRel) == 0 {
            self.cx.stage_started(&self.stage);
        }
        self.input = Some(match &self.stage.input {
            InputPort::Source(port) => {
                let reader = port.source.reader(self.number).map_err(|error| port.failed(error))?;
                Input::Source { port: port.clone(), reader, rows_left: port.limit_rows }
            }
            InputPort::Exchange(exchange) => {
                exchange.bound();
                let lane = self.number % exchange.lanes();
                Input::Exchange { exchange: exchange.clone(), lane }
            }
        });
        self.ops = self.stage.ops.iter().map(|op| op.open(self.number)).collect::<Result<_, _>>()?;
        self.outputs = self.stage.outputs.iter().map(|port| port.open(self.number)).collect::<Result<_, _>>()?;
        self.cx.opened();
        Ok(())
    }

    /// Reads once. `None`: nothing there yet.
    fn read(&mut self) -> Result<Option<Read>, RunError> {
        self.cx.enter(0);
        match &mut self.input {
            Some(Input::Source { port, reader, rows_left }) => {
                if *rows_left == Some(0) {
                    return Ok(Some(Read::End));
                }
                let batch = reader.next(&mut self.errors).map_err(|error| port.failed(error))?;
                self.cx.report(&mut self.errors, &port.node)?;
                let mut batch = match batch {
                    Next::Batch(batch) => batch,
                    Next::Barrier(_) | Next::Wait(_) => return Ok(None),
                    Next::End => return Ok(Some(Read::End)),
                };
                if let Some(left) = rows_left {
                    let wanted = usize::try_from(*left).unwrap_or(usize::MAX).min(batch.rows);
                    if wanted < batch.rows {
                        let first: Vec<u32> = (0..wanted as u32).collect();
                        batch = dfc_batch::select(&batch, &first);
                    }
                    *left -= wanted as u64;
                }
                self.cx.given(0, batch.rows);
                Ok(Some(Read::Packet(Packet::Rows { seq: batch.seq, batches: vec![batch] })))
            }
            Some(Input::Exchange { exchange, lane }) => match exchange.pop(*lane, self.id) {
                Received::Packet(packet) => {
                    if let Packet::Rows { batches, .. } = &packet {
                        batches.iter().for_each(|batch| self.cx.given(0, batch.rows));
                    }
                    Ok(Some(Read::Packet(packet)))
                }
                Received::Empty => Ok(None),
                Received::End => Ok(Some(Read::End)),
            },
            None => Ok(Some(Read::End)),
        }
    }

    /// Passes a packet through the operators.
    fn process(&mut self, packet: Packet) -> Result<(), RunError> {
        let mut made = Vec::new();
        let single = self.stage.tasks == 1;
        let seq = match packet {
            Packet::Rows { seq, batches } => {
                for batch in batches {
                    let seq = if single { self.batches } else { batch.seq };
                    self.batches += 1;
                    self.out(0, &mut made).emit(Batch { seq, ..batch })?;
                }
                seq
            }
            Packet::Partial(table) => {
                self.out(0, &mut made).emit_partial(table)?;
                TAIL
            }
        };
        let seq = if single { self.next_number() } else { seq };
        self.hand_over(seq, made)
    }

    /// Lets operator `op` give what it holds: true when it has given everything.
    fn finish_operator(&mut self, op: usize) -> Result<bool, RunError> {
        let mut made = Vec::new();
        let (operator, rest) = match self.ops[op..].split_first_mut() {
            Some(split) => split,
            None => return Ok(true),
        };
        self.cx.enter(op + 1);
        let done = operator.finish(&mut Out::new(rest, op + 1, &mut self.cx, &mut made))?;
        let seq = if self.stage.tasks == 1 { self.next_number() } else { TAIL };
        self.hand_over(seq, made)?;
        Ok(done)
    }

    fn out<'t>(&'t mut self, slot: usize, made: &'t mut Vec<Made>) -> Out<'t> {
        Out::new(&mut self.ops, slot, &mut self.cx, made)
    }

    fn next_number(&mut self) -> u64 {
        self.packets += 1;
        self.packets - 1
    }

    fn hand_over(&mut self, seq: u64, made: Vec<Made>) -> Result<(), RunError> {
        let first = self.ops.len() + 1;
        for (k, output) in self.outputs.iter_mut().enumerate() {
            self.cx.enter(first + k);
            output.take(seq, &made, &mut self.cx, first + k)?;
        }
        Ok(())
    }

    /// Empties the outputs: false where one is blocked.
    fn flush(&mut self) -> Result<bool, RunError> {
        let first = self.ops.len() + 1;
        let mut free = true;
        for (k, output) in self.outputs.iter_mut().enumerate() {
            self.cx.enter(first + k);
            free &= output.flush(self.id)?;
        }
        Ok(free)
    }

    /// Nobody wants more of its rows.
    fn unwanted(&self) -> bool {
        self.outputs.iter().all(Output::abandoned)
    }

    fn close_input(&mut self) {
        if let Some(Input::Exchange { exchange, lane }) = self.input.take() {
            exchange.reader_done(lane);
        }
    }

    fn advance(&mut self) -> Result<Step, RunError> {
        if matches!(self.phase, Phase::Waiting) {
            if !self.stage.waits_for.iter().all(|table| table.wait(self.id)) {
                return Ok(Step::Blocked);
            }
            self.open()?;
            self.phase = Phase::Running;
        }
        if !self.flush()? {
            return Ok(Step::Blocked);
        }
        match self.phase {
            Phase::Waiting => {}
            Phase::Running if self.unwanted() || self.ops.iter().any(|op| op.satisfied()) => {
                self.close_input();
                self.phase = Phase::Finishing(0);
            }
            Phase::Running => match self.read()? {
                Some(Read::Packet(packet)) => self.process(packet)?,
                Some(Read::End) => {
                    self.close_input();
                    self.phase = Phase::Finishing(0);
                }
                None => return Ok(Step::Blocked),
            },
            Phase::Finishing(op) if op == self.ops.len() || self.unwanted() => self.phase = Phase::Closing,
            Phase::Finishing(op) => {
                if self.finish_operator(op)? {
                    self.phase = Phase::Finishing(op + 1);
                }
            }
            Phase::Closing => {
                for output in &mut self.outputs {
                    output.close()?;
                }
                self.cx.closed();
                if self.stage.closed.fetch_add(1, Ordering::AcqRel) + 1 == self.stage.tasks {
                    self.cx.stage_finished();
                }
                return Ok(Step::Done);
            }
        }
        if self.flush()? { Ok(Step::Again) } else { Ok(Step::Blocked) }
    }
}

enum Read {
    Packet(Packet),
    End,
}

impl Runnable for Task {
    fn step(&mut self) -> Result<Step, RunError> {
        self.cx.resume();
        let step = self.advance();
        self.cx.pause();
        step
    }

    fn name(&self) -> &str {
        &self.stage.name
    }

    fn stage(&self) -> usize {
        self.stage.index
    }
}
