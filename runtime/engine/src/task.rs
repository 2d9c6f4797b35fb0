//! A task: one of the parallel runs of a stage, as a state machine (D1, D2).
//!
//! It waits for the join tables its stage probes, then reads packet by packet, passes each through its operators and hands what
//! comes out to its outputs; it stops wherever one of them would block, and goes on there.
//!
//! Between two packets it passes barriers (F2): it hands over its operators' state and sends the barrier on. A barrier comes with the
//! input; a task that has none any more, or none yet, sees by itself that one is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dfc_batch::{Batch, RowError};
use dfc_connect::{Next, Reader};
use dfc_trial::turns;

use crate::RunError;
use crate::counters::TaskCx;
use crate::exchange::{Exchange, Packet, Received};
use crate::ops::{Made, Operator, Out, PreparedOp};
use crate::output::{Output, OutputPort};
use crate::reorder::TAIL;
use crate::run::JobCx;
use crate::schedule::{Runnable, Step, TaskId};
use crate::setup::SourcePort;
use crate::state::{Piece, Restored, Share};
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
    /// A checkpoint found that it had ended: nothing is left to do but to say so.
    pub(crate) ended: bool,
    /// What a checkpoint found in its operators, with their slots.
    pub(crate) restored: Vec<(usize, Restored)>,
    /// Tasks that have taken their share of that.
    pub(crate) restored_by: AtomicUsize,
    /// Number of the first batch and packet.
    pub(crate) first: u64,
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
    /// What a checkpoint found in its operators is still to be taken back.
    Restoring,
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
    /// The source that was read, once it has ended.
    source: Option<Arc<SourcePort>>,
    ops: Vec<Box<dyn Operator>>,
    outputs: Vec<Output>,
    errors: Vec<RowError>,
    /// Packets made so far, and batches read: a single task numbers them itself.
    packets: u64,
    batches: u64,
    /// Above the numbers of all batches read.
    ordinals: u64,
    /// The last barrier that was passed.
    passed: u64,
    /// Nothing was saved yet.
    fresh: bool,
    /// Rows read from a source, rejected ones included.
    rows_read: u64,
}

impl Task {
    pub(crate) fn new(id: TaskId, number: usize, stage: Arc<StageCx>, job: Arc<JobCx>) -> Task {
        let cx = TaskCx::new(job, &stage, number);
        let first = stage.first;
        Task {
            id,
            number,
            stage,
            cx,
            phase: Phase::Waiting,
            input: None,
            source: None,
            ops: Vec::new(),
            outputs: Vec::new(),
            errors: Vec::new(),
            packets: first,
            batches: first,
            ordinals: first,
            passed: 0,
            fresh: true,
            rows_read: 0,
        }
    }

    fn open_outputs(&mut self) -> Result<(), RunError> {
        self.outputs = self.stage.outputs.iter().map(|port| port.open(self.number)).collect::<Result<_, _>>()?;
        Ok(())
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
        self.ops = self.stage.ops.iter().map(|op| op.open(self.number, self.cx.budget())).collect::<Result<_, _>>()?;
        let share = Share { part: self.number, parts: self.stage.tasks };
        for (slot, restored) in &self.stage.restored {
            // Slot 0 is the input, whose state stands in the exchange.
            if let Some(op) = slot.checked_sub(1).and_then(|op| self.ops.get_mut(op)) {
                op.restore(restored, share)?;
            }
        }
        if self.stage.restored_by.fetch_add(1, Ordering::AcqRel) + 1 == self.stage.tasks {
            self.stage.restored.iter().for_each(|(_, restored)| restored.parts.give_up());
        }
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
                let batch = dfc_connect::passing("source-read")
                    .and_then(|()| reader.next(&mut self.errors))
                    .map_err(|error| port.failed(error))?;
                let left_out = reader.left_out();
                self.rows_read += self.errors.len() as u64 + left_out;
                self.cx.left_out(left_out);
                self.cx.report(&mut self.errors, &port.node)?;
                let mut batch = match batch {
                    Next::Batch(batch) => batch,
                    Next::Barrier(number) => return Ok(Some(Read::Packet(Packet::Barrier(number)))),
                    Next::Wait(time) => return Ok(Some(Read::Wait(time))),
                    Next::End => return Ok(Some(Read::End)),
                };
                batch.seq += self.stage.first;
                self.rows_read += batch.rows as u64;
                self.ordinals = self.ordinals.max(batch.seq + 1);
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
            // One that was passed before the input was opened may come again.
            Packet::Barrier(number) if number <= self.passed => return Ok(()),
            Packet::Barrier(number) => return self.pass_barrier(number),
        };
        let seq = if single { self.next_number() } else { seq };
        self.hand_over(seq, made)
    }

    /// Hands over what operators and outputs hold, and sends the barrier on.
    fn pass_barrier(&mut self, number: u64) -> Result<(), RunError> {
        let Some(barriers) = self.cx.barriers() else { return Ok(()) };
        let begun = turns::now();
        let mut pieces: Vec<(usize, Piece)> = Vec::new();
        for (op, operator) in self.ops.iter_mut().enumerate() {
            self.cx.enter(op + 1);
            pieces.extend(operator.save(self.fresh).into_iter().map(|piece| (op + 1, piece)));
        }
        let first = self.stage.ops.len() + 1;
        for (k, output) in self.outputs.iter_mut().enumerate() {
            pieces.extend(output.barrier(number).map(|piece| (first + k, piece)));
        }
        let stop = turns::now() - begun;
        turns::pass();
        self.passed = number;
        // Operators that haven't been opened have saved nothing.
        self.fresh &= self.ops.is_empty();
        self.cx.passed(number);
        barriers.pass(self.id, number, pieces, self.highest(), self.rows_read, stop);
        Ok(())
    }

    /// Above every number that a batch or packet had.
    fn highest(&self) -> u64 {
        self.packets.max(self.batches).max(self.ordinals)
    }

    /// A barrier that nobody will send, where one is wanted.
    fn unsent_barrier(&self) -> Option<u64> {
        self.cx.barriers().map(|barriers| barriers.wanted()).filter(|&wanted| wanted > self.passed)
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
        match self.input.take() {
            Some(Input::Exchange { exchange, lane }) => exchange.reader_done(lane, self.id),
            Some(Input::Source { port, .. }) => self.source = Some(port),
            None => {}
        }
    }

    fn advance(&mut self) -> Result<Step, RunError> {
        if matches!(self.phase, Phase::Waiting) {
            if self.outputs.is_empty() {
                self.open_outputs()?;
            }
            let ready = self.stage.waits_for.iter().all(|table| table.wait(self.id));
            if self.stage.ended {
                if let Some(barriers) = self.cx.barriers() {
                    barriers.may_start(self.stage.index);
                }
                self.phase = Phase::Closing;
            } else if ready && self.cx.barriers().is_none_or(|barriers| barriers.may_start(self.stage.index)) {
                self.phase = Phase::Restoring;
                if !self.stage.restored.is_empty() {
                    // Meanwhile the tasks before it read as much as there is room for.
                    if let InputPort::Exchange(exchange) = &self.stage.input {
                        exchange.bound();
                    }
                    return Ok(Step::Later);
                }
            } else {
                if let Some(number) = self.unsent_barrier() {
                    self.pass_barrier(number)?;
                }
                // Whoever lets it start wakes it.
                self.flush()?;
                return Ok(Step::Blocked);
            }
        }
        if matches!(self.phase, Phase::Restoring) {
            self.open()?;
            self.phase = Phase::Running;
        }
        if matches!(self.phase, Phase::Finishing(_) | Phase::Closing)
            && let Some(number) = self.unsent_barrier()
        {
            self.pass_barrier(number)?;
        }
        if !self.flush()? {
            return Ok(Step::Blocked);
        }
        match self.phase {
            Phase::Waiting | Phase::Restoring => {}
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
                Some(Read::Wait(time)) => return Ok(Step::Sleep(time)),
                None => return Ok(Step::Blocked),
            },
            Phase::Finishing(op) if op == self.ops.len() || self.unwanted() => self.phase = Phase::Closing,
            Phase::Finishing(op) => {
                if self.finish_operator(op)? {
                    self.phase = Phase::Finishing(op + 1);
                }
            }
            Phase::Closing => {
                let first = self.stage.ops.len() + 1;
                let mut rest = Vec::new();
                for (k, output) in self.outputs.iter_mut().enumerate() {
                    rest.extend(output.close(self.id, &self.cx)?.map(|piece| (first + k, piece)));
                }
                if let Some(skipped) = self.source.as_ref().and_then(|port| port.source.skipped()) {
                    self.cx.note(0, format!("{skipped} left unread, no row there passes"));
                }
                self.cx.closed();
                if let Some(barriers) = self.cx.barriers() {
                    barriers.end(self.id, self.passed, rest, self.highest(), self.rows_read);
                }
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
    Wait(Duration),
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
