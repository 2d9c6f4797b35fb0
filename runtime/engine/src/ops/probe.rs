//! Joins and lookups: each left row meets its partners in the right side's table.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use dfc_batch::{Batch, ColumnBuilder, RowError, take};
use dfc_ir::plan::{Join, JoinColumn, JoinKind, MatchMode};
use dfc_ir::{DataType, Site};
use dfc_jit::{Evaluated, PreparedProgram};
use dfc_table::JoinTable;

use super::grace::Grace;
use super::{Operator, Out, batch_rows};
use crate::RunError;
use crate::budget::Budget;
use crate::spill::Spill;
use crate::state::{self, Kind, Piece, Restored, Saved, Share};
use crate::table::TableSlot;

/// Most rows that leave in one batch. Far above what a batch of unique partners gives: only joins that multiply rows are cut.
fn most_rows() -> usize {
    8 * batch_rows()
}

/// In place of a right row: none. A table has fewer rows than this.
const NOBODY: u32 = u32::MAX;

/// A probe, ready to be opened.
pub(crate) struct PreparedProbe {
    node: Arc<str>,
    join: Join,
    site: Site,
    left: Vec<DataType>,
    keys: Arc<dyn PreparedProgram>,
    residual: Option<Arc<dyn PreparedProgram>>,
    table: Arc<TableSlot>,
    /// Tasks that still probe: the last one gives the right rows without a partner.
    probing: AtomicUsize,
    /// Right rows without a partner that were given before the job went on from a checkpoint.
    given_before: AtomicUsize,
    /// The right side is on disk: left rows of tasks that have ended.
    lefts: Mutex<Vec<Spill>>,
}

impl PreparedProbe {
    /// `keys` computes the left keys, `residual` the further condition over left and right columns.
    pub(crate) fn new(
        node: &str,
        join: &Join,
        site: Site,
        left: Vec<DataType>,
        keys: Arc<dyn PreparedProgram>,
        residual: Option<Arc<dyn PreparedProgram>>,
        table: &Arc<TableSlot>,
        tasks: usize,
    ) -> PreparedProbe {
        PreparedProbe {
            node: node.into(),
            join: join.clone(),
            site,
            left,
            keys,
            residual,
            table: table.clone(),
            probing: AtomicUsize::new(tasks),
            given_before: AtomicUsize::new(0),
            lefts: Mutex::default(),
        }
    }

    pub(crate) fn open(self: &Arc<Self>, budget: Option<&Arc<Budget>>) -> Result<Box<dyn Operator>, RunError> {
        if let (Some(right), Some(budget)) = (self.table.divided(), budget) {
            return Ok(Box::new(Grace::open(self.clone(), right, budget)?));
        }
        let table = self.table.get().ok_or_else(|| RunError::Internal {
            node: self.node.to_string(),
            message: "it was started before its join table was complete".to_owned(),
        })?;
        Ok(Box::new(Probe::of(self, table)))
    }

    /// The operator's name.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Columns of the result.
    pub(super) fn width(&self) -> usize {
        self.join.output.len()
    }

    /// The right side.
    pub(super) fn table(&self) -> &TableSlot {
        &self.table
    }

    /// The keys of left rows.
    pub(super) fn keys(&self, batch: &Batch, errors: &mut Vec<RowError>) -> Evaluated {
        self.keys.evaluate(batch, errors)
    }

    /// A task has put all its left rows on disk. The last one is given those of all.
    pub(super) fn hand_over(&self, left: Spill) -> Option<Vec<Spill>> {
        // Spills are whole whoever panicked.
        let mut lefts = self.lefts.lock().unwrap_or_else(|e| e.into_inner());
        lefts.push(left);
        let last = self.probing.fetch_sub(1, Ordering::AcqRel) == 1;
        last.then(|| std::mem::take(&mut *lefts))
    }

    fn keeps_right(&self) -> bool {
        matches!(self.join.kind, JoinKind::Right | JoinKind::Full)
    }
}

/// Left rows meet a table.
pub(super) struct Probe {
    probe: Arc<PreparedProbe>,
    table: Arc<JoinTable>,
    errors: Vec<RowError>,
    /// The right rows without a partner, once this task knows that it has to give them.
    rest: Option<Vec<u32>>,
    given: usize,
}

/// Pairs of a left and a right row, left rows ascending.
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Probe {
    pub(super) fn of(probe: &Arc<PreparedProbe>, table: Arc<JoinTable>) -> Probe {
        Probe { probe: probe.clone(), table, errors: Vec::new(), rest: None, given: 0 }
    }

    /// Gives what a batch leads to, as rows of the batch and the result of them. No row is rejected: where one may be, a right side stays in
    /// memory.
    pub(super) fn matched(
        &mut self,
        batch: &Batch,
        give: &mut dyn FnMut(&[u32], Batch) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let (pairs, rejected) = self.pairs(batch);
        if self.probe.keeps_right() {
            self.table.mark(&pairs.right);
        }
        let Pairs { left, right } = self.result(pairs, &rejected, batch);
        parts(left.len(), most_rows()).try_for_each(|part| {
            let (left, right) = (&left[part.clone()], &right[part]);
            give(left, self.made(batch, left, right))
        })
    }

    /// The right rows that had no partner, where they belong to the result.
    pub(super) fn alone(&self) -> Vec<u32> {
        if self.probe.keeps_right() { self.table.unmarked() } else { Vec::new() }
    }

    /// The pairs of a batch that count, and for each left row whether it was rejected.
    fn pairs(&mut self, batch: &Batch) -> (Pairs, Vec<bool>) {
        let mut rejected = vec![false; batch.rows];
        let keys = self.probe.keys.evaluate(batch, &mut self.errors);
        let key_rows = keys.kept.as_ref().map_or(batch.rows, Vec::len);
        let (mut left, right) = self.table.probe(&keys.columns, key_rows);
        if let Some(kept) = &keys.kept {
            rejected.fill(true);
            kept.iter().for_each(|&row| rejected[row as usize] = false);
            left.iter_mut().for_each(|row| *row = kept[*row as usize]);
        }
        let mut pairs = Pairs { left, right };
        if let Some(residual) = self.probe.residual.clone() {
            pairs = self.filter(batch, pairs, residual.as_ref(), &mut rejected);
        }
        match self.probe.join.matches {
            MatchMode::All => {}
            MatchMode::First => pairs.retain(|before, _| before.is_none()),
            MatchMode::One => {
                let errors = &mut self.errors;
                let site = self.probe.site;
                pairs.retain(|before, row| {
                    let second = before.is_some();
                    if second && !std::mem::replace(&mut rejected[row as usize], true) {
                        let rule = "it has more than one partner on the right side, where `match: one` allows one";
                        errors.push(row_error("R0108", rule, batch, row as usize, site));
                    }
                    !second
                });
            }
        }
        if rejected.contains(&true) {
            pairs.retain(|_, row| !rejected[row as usize]);
        }
        (pairs, rejected)
    }

    /// The pairs for which the further condition is true, worked through in parts of bounded size.
    fn filter(&mut self, batch: &Batch, pairs: Pairs, residual: &dyn PreparedProgram, rejected: &mut [bool]) -> Pairs {
        let mut kept = Pairs { left: Vec::new(), right: Vec::new() };
        for part in parts(pairs.left.len(), most_rows()) {
            let (left, right) = (&pairs.left[part.clone()], &pairs.right[part]);
            let joined = self.joined(batch, left, right);
            let mut errors = Vec::new();
            let evaluated = residual.evaluate(&joined, &mut errors);
            // A left row with several partners may fail with each: it is one rejected row.
            errors.dedup_by(|a, b| a.place.is_some() && (&a.place, a.code, a.site) == (&b.place, b.code, b.site));
            self.errors.append(&mut errors);
            let alive: Vec<u32> = match evaluated.kept {
                Some(alive) => alive,
                None => (0..left.len() as u32).collect(),
            };
            let mut failed = vec![true; left.len()];
            alive.iter().for_each(|&pair| failed[pair as usize] = false);
            for (pair, _) in failed.iter().enumerate().filter(|(_, failed)| **failed) {
                rejected[left[pair] as usize] = true;
            }
            for (value, &pair) in alive.iter().enumerate() {
                if is_true(evaluated.columns.first(), value) {
                    kept.left.push(left[pair as usize]);
                    kept.right.push(right[pair as usize]);
                }
            }
        }
        kept
    }

    /// Left columns followed by right columns.
    fn joined(&self, batch: &Batch, left: &[u32], right: &[u32]) -> Batch {
        let (left_rows, right_rows) = (UInt32Array::from(left.to_vec()), UInt32Array::from(right.to_vec()));
        let columns = batch.columns.iter().map(|column| take(column, &left_rows));
        let columns = columns.chain(self.table.columns().iter().map(|column| take(column, &right_rows)));
        Batch {
            columns: columns.collect(),
            rows: left.len(),
            seq: batch.seq,
            origin: batch.origin.as_ref().map(|origin| origin.select(left)),
        }
    }

    /// The rows of the result that a batch leads to: its row, and the partner's, or [`NOBODY`].
    fn result(&mut self, pairs: Pairs, rejected: &[bool], batch: &Batch) -> Pairs {
        let join = &self.probe.join;
        let (kind, required, site) = (join.kind, join.required, self.probe.site);
        let as_they_are = match kind {
            JoinKind::Inner | JoinKind::Right => !required,
            JoinKind::Left | JoinKind::Full => is_whole(&pairs.left, batch.rows),
            JoinKind::Semi | JoinKind::Anti => false,
        };
        if as_they_are {
            return pairs;
        }
        let (mut left, mut right) = (Vec::with_capacity(pairs.left.len()), Vec::with_capacity(pairs.left.len()));
        let mut next = 0;
        for row in 0..batch.rows as u32 {
            let first = next;
            while pairs.left.get(next) == Some(&row) {
                next += 1;
            }
            let partners = &pairs.right[first..next];
            if partners.is_empty() && required && !rejected[row as usize] {
                let rule = "it has no partner on the right side, where `missing: fail` demands one";
                self.errors.push(row_error("R0107", rule, batch, row as usize, site));
                continue;
            }
            let alone = match kind {
                JoinKind::Left | JoinKind::Full | JoinKind::Anti => partners.is_empty() && !rejected[row as usize],
                JoinKind::Semi => !partners.is_empty(),
                JoinKind::Inner | JoinKind::Right => false,
            };
            if alone {
                left.push(row);
                right.push(NOBODY);
            } else if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
                left.extend(partners.iter().map(|_| row));
                right.extend_from_slice(partners);
            }
        }
        Pairs { left, right }
    }

    /// These pairs as rows of the result.
    fn made(&self, batch: &Batch, left: &[u32], right: &[u32]) -> Batch {
        let whole = is_whole(left, batch.rows);
        let left_rows = UInt32Array::from(if whole { Vec::new() } else { left.to_vec() });
        let alone = right.contains(&NOBODY);
        let nulls = alone.then(|| right.iter().map(|&row| row != NOBODY).collect());
        let right_rows = UInt32Array::new(right.to_vec().into(), nulls);
        let column = |column: &JoinColumn| match *column {
            JoinColumn::Left(column) | JoinColumn::Merged(column, _) if whole => batch.columns[column].clone(),
            JoinColumn::Left(column) | JoinColumn::Merged(column, _) => take(&batch.columns[column], &left_rows),
            JoinColumn::Right(column) => take(&self.table.columns()[column], &right_rows),
        };
        let origin = batch.origin.as_ref();
        Batch {
            columns: self.probe.join.output.iter().map(column).collect(),
            rows: left.len(),
            seq: batch.seq,
            origin: if whole { origin.cloned() } else { origin.map(|origin| origin.select(left)) },
        }
    }

    /// Right rows without a partner: no left values.
    pub(super) fn without_left(&self, rows: &[u32]) -> Batch {
        let indices = UInt32Array::from(rows.to_vec());
        let column = |column: &JoinColumn| match *column {
            JoinColumn::Left(column) => nulls(&self.probe.left[column], rows.len()),
            JoinColumn::Right(column) | JoinColumn::Merged(_, column) => take(&self.table.columns()[column], &indices),
        };
        let columns = self.probe.join.output.iter().map(column).collect();
        Batch::new(columns, rows.len(), 0)
    }
}

impl Operator for Probe {
    fn push(&mut self, batch: Batch, out: &mut Out<'_>) -> Result<(), RunError> {
        let (pairs, rejected) = self.pairs(&batch);
        if self.probe.keeps_right() {
            self.table.mark(&pairs.right);
        }
        let Pairs { left, right } = self.result(pairs, &rejected, &batch);
        out.report(&mut self.errors)?;
        for part in parts(left.len(), most_rows()) {
            out.emit(self.made(&batch, &left[part.clone()], &right[part]))?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<bool, RunError> {
        if self.rest.is_none() {
            // Counted down by every task exactly once, after its last batch.
            let last = self.probe.probing.fetch_sub(1, Ordering::AcqRel) == 1;
            let rest = if last { self.alone() } else { Vec::new() };
            self.given = self.probe.given_before.load(Ordering::Acquire).min(rest.len());
            self.rest = Some(rest);
        }
        let Some(rest) = &self.rest else { return Ok(true) };
        let end = rest.len().min(self.given + batch_rows());
        let seq = (self.given / batch_rows()) as u64;
        out.emit(Batch { seq, ..self.without_left(&rest[self.given..end]) })?;
        self.given = end;
        Ok(self.given == self.rest.as_ref().map_or(0, Vec::len))
    }

    fn save(&mut self, _fresh: bool) -> Vec<Piece> {
        if !self.probe.keeps_right() {
            return Vec::new();
        }
        // Marks of rows that belong to a later checkpoint do no harm: these rows will come again and mark them again.
        let mut pieces = vec![Piece::whole(Kind::Marks, Saved::Numbers(self.table.marks()))];
        if self.rest.as_ref().is_some_and(|rest| !rest.is_empty()) {
            pieces.push(Piece::whole(Kind::Numbers, Saved::Numbers(vec![self.given as u64])));
        }
        pieces
    }

    fn restore(&mut self, state: &Restored, _share: Share) -> Result<(), RunError> {
        for part in state.parts.all()? {
            let numbers = state::numbers(&part)?;
            match state.kind {
                Kind::Marks => self.table.set_marks(&numbers).map_err(|e| RunError::State(e.to_string()))?,
                _ => {
                    let given = numbers.first().map_or(0, |&given| given as usize);
                    self.probe.given_before.fetch_max(given, Ordering::AcqRel);
                }
            }
        }
        Ok(())
    }
}

impl Pairs {
    /// Keeps the pairs for which `keep` is true, given the left row and whether a kept pair of it came right before.
    fn retain(&mut self, mut keep: impl FnMut(Option<u32>, u32) -> bool) {
        let mut kept = 0;
        for pair in 0..self.left.len() {
            let row = self.left[pair];
            let before = self.left[..kept].last().copied().filter(|&before| before == row);
            if keep(before, row) {
                self.left[kept] = row;
                self.right[kept] = self.right[pair];
                kept += 1;
            }
        }
        self.left.truncate(kept);
        self.right.truncate(kept);
    }
}

/// Whether these are the rows of a batch as they are: all of them, each once.
fn is_whole(left: &[u32], rows: usize) -> bool {
    left.len() == rows && left.iter().zip(0..).all(|(&row, number)| row == number)
}

/// `0..rows` in parts of at most `size`.
fn parts(rows: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(size).map(move |start| start..rows.min(start + size))
}

fn is_true(column: Option<&ArrayRef>, row: usize) -> bool {
    column.and_then(|column| column.as_boolean_opt()).is_some_and(|values| values.is_valid(row) && values.value(row))
}

fn nulls(ty: &DataType, rows: usize) -> ArrayRef {
    let mut column = ColumnBuilder::new(&ty.with_nullable(true), rows);
    (0..rows).for_each(|_| column.push_null());
    column.finish()
}

fn row_error(code: &'static str, rule: &str, batch: &Batch, row: usize, site: Site) -> RowError {
    RowError {
        place: batch.origin.as_ref().map(|origin| origin.place(row)),
        raw: batch.origin.as_ref().and_then(|origin| origin.raw(row)),
        site,
        ..RowError::new(code, rule)
    }
}
