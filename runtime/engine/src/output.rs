//! A task's outputs: exchanges, join tables, sinks. What can't go on at once is kept until it can; meanwhile the task reads nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use dfc_batch::{Batch, select};
use dfc_connect::Encoder;
use dfc_ir::DataType;
use dfc_jit::PreparedProgram;
use dfc_trial::{Planted, planted};

use crate::RunError;
use crate::budget::Stays;
use crate::counters::TaskCx;
use crate::exchange::{Exchange, Packet};
use crate::ops::Made;
use crate::reorder::TAIL;
use crate::rowkey::{RowKeys, hash};
use crate::schedule::TaskId;
use crate::sink::{Pieces, SinkPort};
use crate::state::{Change, Kind, Piece, Saved};
use crate::store::{bytes_of, to_hold};
use crate::table::{BuildPart, TableSlot};

/// An output of a stage, to be opened by each task.
pub(crate) enum OutputPort {
    /// To the readers of an exchange; to which of several lanes is decided by the hash of these columns.
    Exchange {
        /// Which.
        exchange: Arc<Exchange>,
        /// Columns and their types.
        columns: Vec<(usize, DataType)>,
        /// Empty packets go too, because the readers count.
        ordered: bool,
        /// Name, for messages.
        node: Arc<str>,
    },
    /// Into a join table.
    Build {
        /// Which.
        table: Arc<TableSlot>,
        /// The keys.
        keys: Arc<dyn PreparedProgram>,
    },
    /// To a sink.
    Sink(Arc<SinkPort>),
}

impl OutputPort {
    pub(crate) fn open(&self, task: usize) -> Result<Output, RunError> {
        Ok(match self {
            OutputPort::Exchange { exchange, columns, ordered, node } => {
                let by_hash = exchange.lanes() > 1 && !columns.is_empty();
                let types: Vec<_> = columns.iter().map(|(_, ty)| (ty.clone(), Default::default())).collect();
                let keys = if by_hash { Some(RowKeys::new(node.clone(), &types)?) } else { None };
                Output::Exchange(ExchangeOutput {
                    exchange: exchange.clone(),
                    columns: columns.iter().map(|(column, _)| *column).collect(),
                    keys,
                    ordered: *ordered,
                    pending: VecDeque::new(),
                })
            }
            OutputPort::Build { table, keys } => {
                Output::Build { table: table.clone(), keys: keys.clone(), parts: Vec::new(), saved: 0, counted: 0 }
            }
            OutputPort::Sink(port) => {
                let encoder = port.sink().encoder(task);
                let encoder = encoder.map_err(|error| RunError::Connect { node: port.node.to_string(), error })?;
                Output::Sink { port: port.clone(), encoder, pending: VecDeque::new() }
            }
        })
    }
}

/// An output of a task.
pub(crate) enum Output {
    Exchange(ExchangeOutput),
    Build { table: Arc<TableSlot>, keys: Arc<dyn PreparedProgram>, parts: Vec<BuildPart>, saved: usize, counted: usize },
    Sink { port: Arc<SinkPort>, encoder: Box<dyn Encoder>, pending: VecDeque<Offer> },
}

/// What waits for a sink.
pub(crate) enum Offer {
    /// What was made of a packet.
    Pieces(u64, Pieces),
    /// A barrier.
    Barrier(u64),
}

/// The writing end of an exchange.
pub(crate) struct ExchangeOutput {
    exchange: Arc<Exchange>,
    columns: Vec<usize>,
    keys: Option<RowKeys>,
    ordered: bool,
    pending: VecDeque<(usize, Packet)>,
}

impl Output {
    /// Takes what the task made of packet `seq`.
    pub(crate) fn take(&mut self, seq: u64, made: &[Made], cx: &mut TaskCx, slot: usize) -> Result<(), RunError> {
        for item in made {
            cx.given(slot, item.rows());
        }
        match self {
            Output::Exchange(output) => {
                let rows = output.take(seq, made)?;
                cx.gave(slot, rows);
            }
            Output::Build { table, keys, parts, counted, .. } => {
                let mut errors = Vec::new();
                for batch in batches(made) {
                    let evaluated = keys.evaluate(batch, &mut errors);
                    let rows = match &evaluated.kept {
                        Some(kept) => select(batch, kept),
                        None => batch.clone(),
                    };
                    let rows = to_hold(rows);
                    cx.gave(slot, rows.rows);
                    let bytes = bytes_of(&rows.columns) + bytes_of(&evaluated.columns);
                    parts.push(BuildPart { seq, batch: rows, keys: evaluated.columns });
                    let Some(budget) = cx.budget() else { continue };
                    *counted += bytes;
                    let checkpoints = cx.barriers().map(|_| Stays::Checkpoints);
                    let stays = table.shape().stays.or(checkpoints);
                    let fits = budget.fix(&cx.operator(slot), bytes, stays.unwrap_or(Stays::Checkpoints));
                    match stays {
                        Some(_) => fits?,
                        None if fits.is_err() || table.on_disk() => {
                            table.put_away(std::mem::take(parts), budget)?;
                            budget.free(std::mem::take(counted));
                        }
                        None => {}
                    }
                }
                cx.report(&mut errors, &cx.operator(slot))?;
            }
            Output::Sink { port, encoder, pending } => {
                let mut errors = Vec::new();
                let mut pieces = Pieces::new();
                for batch in batches(made) {
                    let piece = encoder.encode(batch.clone(), &mut errors);
                    let piece = piece.map_err(|error| RunError::Connect { node: port.node.to_string(), error })?;
                    cx.gave(slot, usize::try_from(piece.1).unwrap_or(usize::MAX));
                    pieces.push(piece);
                }
                cx.report(&mut errors, &port.node)?;
                pending.push_back(Offer::Pieces(seq, pieces));
            }
        }
        Ok(())
    }

    /// Hands on what it can: false if something is left. Then `task` is woken when there is room.
    pub(crate) fn flush(&mut self, task: TaskId) -> Result<bool, RunError> {
        match self {
            Output::Exchange(output) => {
                while let Some((lane, packet)) = output.pending.pop_front() {
                    if let Err(packet) = output.exchange.push(lane, task, packet) {
                        output.pending.push_front((lane, packet));
                        return Ok(false);
                    }
                }
            }
            Output::Build { .. } => {}
            Output::Sink { port, pending, .. } => {
                while let Some(offer) = pending.pop_front() {
                    let back = match offer {
                        Offer::Pieces(seq, pieces) => {
                            port.offer(seq, task, pieces)?.map(|pieces| Offer::Pieces(seq, pieces))
                        }
                        Offer::Barrier(number) => {
                            port.barrier(task, number)?;
                            None
                        }
                    };
                    if let Some(back) = back {
                        pending.push_front(back);
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Nobody reads it any more.
    pub(crate) fn abandoned(&self) -> bool {
        match self {
            Output::Exchange(output) => output.exchange.abandoned(),
            Output::Build { .. } | Output::Sink { .. } => false,
        }
    }

    /// Sends a barrier after everything that was taken; what the output itself holds is handed over.
    pub(crate) fn barrier(&mut self, number: u64) -> Option<Piece> {
        match self {
            Output::Exchange(output) => {
                let barriers = (0..output.exchange.lanes()).map(|lane| (lane, Packet::Barrier(number)));
                match planted(Planted::BarrierBeforeBufferedRows) {
                    true => barriers.for_each(|barrier| output.pending.push_front(barrier)),
                    false => output.pending.extend(barriers),
                }
                None
            }
            Output::Build { parts, saved, .. } => Some(unsaved(parts, saved)),
            Output::Sink { pending, .. } => {
                match planted(Planted::BarrierBeforeBufferedRows) {
                    true => pending.push_front(Offer::Barrier(number)),
                    false => pending.push_back(Offer::Barrier(number)),
                }
                None
            }
        }
    }

    /// The task has ended and this output is empty. What it leaves for good is handed over.
    pub(crate) fn close(&mut self, task: TaskId, cx: &TaskCx) -> Result<Option<Piece>, RunError> {
        match self {
            Output::Exchange(output) => output.exchange.writer_done(task),
            Output::Build { table, parts, saved, .. } => {
                let rest = unsaved(parts, saved);
                table.task_done(std::mem::take(parts), cx.budget())?;
                return Ok(Some(rest));
            }
            Output::Sink { port, .. } => port.task_done(task)?,
        }
        Ok(None)
    }
}

/// The rows for a join table that no checkpoint has yet: those before never change.
fn unsaved(parts: &[BuildPart], saved: &mut usize) -> Piece {
    let new = &parts[*saved..];
    *saved = parts.len();
    let batches: Vec<Batch> = new.iter().map(|part| Batch { seq: part.seq, ..part.batch.clone() }).collect();
    match batches.is_empty() {
        true => Piece { kind: Kind::Build, change: Change::Keep, saved: None },
        false => Piece {
            kind: Kind::Build,
            change: Change::Append,
            saved: Some(Saved::Rows { batches, arrivals: Vec::new() }),
        },
    }
}

impl ExchangeOutput {
    fn take(&mut self, seq: u64, made: &[Made]) -> Result<usize, RunError> {
        for item in made {
            if let Made::Partial(table) = item {
                let lanes = 0..self.exchange.lanes();
                self.pending.extend(lanes.map(|lane| (lane, Packet::Partial(table.clone()))));
            }
        }
        let batches: Vec<Batch> = batches(made).cloned().collect();
        let rows = made.iter().map(Made::rows).sum();
        match &self.keys {
            Some(_) => self.deal(seq, &batches)?,
            None if batches.is_empty() && (!self.ordered || seq == TAIL) => {}
            None => self.pending.push_back((0, Packet::Rows { seq, batches })),
        }
        Ok(rows)
    }

    /// Each row to the lane of its key.
    fn deal(&mut self, seq: u64, batches: &[Batch]) -> Result<(), RunError> {
        let Some(keys) = &self.keys else { return Ok(()) };
        let lanes = self.exchange.lanes();
        let mut dealt = vec![Vec::new(); lanes];
        for batch in batches {
            let rows = dealt_rows(batch, &self.columns, keys, lanes)?;
            for (dealt, rows) in dealt.iter_mut().zip(rows) {
                if !rows.is_empty() {
                    dealt.push(select(batch, &rows));
                }
            }
        }
        let packets = dealt.into_iter().enumerate().filter(|(_, batches)| !batches.is_empty());
        self.pending.extend(packets.map(|(lane, batches)| (lane, Packet::Rows { seq, batches })));
        Ok(())
    }
}

/// For each lane the rows of a batch whose keys are its.
pub(crate) fn dealt_rows(
    batch: &Batch,
    columns: &[usize],
    keys: &RowKeys,
    lanes: usize,
) -> Result<Vec<Vec<u32>>, RunError> {
    let columns: Vec<_> = columns.iter().map(|&column| batch.columns[column].clone()).collect();
    let mut rows = vec![Vec::new(); lanes];
    for (row, key) in keys.encode(&columns)?.iter().enumerate() {
        rows[(hash(key.as_ref()) >> 32) as usize % lanes].push(row as u32);
    }
    Ok(rows)
}

fn batches(made: &[Made]) -> impl Iterator<Item = &Batch> {
    made.iter().filter_map(|item| match item {
        Made::Batch(batch) => Some(batch),
        Made::Partial(_) => None,
    })
}
