//! Stores a checkpoint whose barrier is complete: what was handed over becomes parts, and the manifest names them, the positions and the
//! closed epochs. It may not know when one is taken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use dfc_checkpoint::{
    Counters, HistoryEntry, Kind as CheckpointKind, Manifest, OperatorState, RejectsState, SinkState, SourceState,
    StageState,
};
use dfc_connect::Sealed;
use dfc_trial::{Planted, planted, turns};
use rkyv::util::AlignedVec;

use super::{Coordinator, STATE_SCHEMA, Setback};
use crate::RunError;
use crate::barrier::{Complete, Content, Key, Pending, RESTORED, Stored};
use crate::observe::Event;
use crate::sink::SinkPort;
use crate::state::{Change, Kind};
use crate::task::StageCx;

/// Bytes of state that are made one part, about.
const PART_BYTES: usize = 32 << 20;

impl Coordinator {
    /// Stores what was handed over and publishes the manifest.
    pub(super) fn store(
        &mut self,
        complete: Complete,
        kind: CheckpointKind,
        note: Option<String>,
        begun: Instant,
        at_micros: i64,
        report: &mut HistoryEntry,
    ) -> Result<(), Setback> {
        let number = complete.number;
        let Complete { pending, live, unstarted, ended, sealed, rows, ordinals, alignment, stop, .. } = complete;
        let mut pending = pending;
        let ends = kind == CheckpointKind::Terminal;
        if ends {
            // Nothing is read any more: what was kept for stages that went on after its own is needed no longer.
            pending.clear();
        }
        let fatal = |error: RunError| Setback::Fatal(Box::new(error));
        let spool: u64 = sealed.iter().map(|(_, sealed)| sealed.bytes).sum();
        (report.alignment_ms, report.spool_bytes) = (alignment.as_millis() as u64, spool);
        report.stop_micros = stop.as_micros() as u64;
        let mut next = self.ledger.stored.clone();
        let stored = self.store_parts(number, &mut pending, &mut next, begun);
        match stored.and_then(|bytes| self.carry(&sealed).map(|()| bytes).map_err(|error| self.weigh(error))) {
            Ok(bytes) => report.state_bytes = bytes,
            Err(setback) => {
                self.scene.barriers.put_back(number, pending, sealed);
                return Err(setback);
            }
        }
        next.retain(|key, _| match key {
            Key { kind: Kind::Build, stage, .. } => !(ends || planted(Planted::EndedStateForgotten) && ended[*stage]),
            // What stood before a stage was put back there: it has been read since, or was recorded anew.
            Key { slot: 0, copy, .. } if *copy >= RESTORED => false,
            Key { stage, .. } if ended[*stage] => false,
            Key { stage, copy, .. } if *copy >= RESTORED => unstarted[*stage],
            key => live.contains(key),
        });
        turns::pass();
        let counted = self.scene.job.errors.seal(number);
        let (rejected, rejects) = counted.map_err(fatal)?;
        let mut all_rejects = self.ledger.rejects.clone();
        all_rejects.extend(rejects);
        let mut all_sealed = self.ledger.sealed.clone();
        for (sink, sealed) in &sealed {
            all_sealed[*sink].push(sealed.clone());
        }
        for (sink, (port, list)) in self.scene.sinks.iter().zip(&mut all_sealed).enumerate() {
            if !port.sink().visible_at_end() {
                let applied = match planted(Planted::UnappliedRemoved) {
                    true => number - 1,
                    false => self.applier.applied(sink),
                };
                list.retain(|sealed| sealed.number > applied);
            }
        }
        let mut sources = Vec::new();
        for ((port, connector), rows) in
            self.scene.sources.iter().zip(rows).filter_map(|(s, r)| s.as_ref().zip(Some(r)))
        {
            let positions = port.source.positions(number).map_err(|error| fatal(port.failed(error)))?;
            let counters = port.source.counters();
            sources.push(SourceState {
                node: port.node.to_string(),
                connector: connector.clone(),
                ended: positions.splits.iter().all(|split| split.ended),
                positions,
                rows: port.rows_before + rows,
                bytes: counters.bytes.load(Ordering::Relaxed),
            });
        }
        // Neither side counts what was read or written since the barrier.
        let rows_out = self.ledger.rows_out + sealed.iter().map(|(_, sealed)| sealed.rows).sum::<u64>();
        let rows_in = sources.iter().map(|source| source.rows).sum();
        let manifest = Manifest {
            created_micros: at_micros,
            now_micros: self.scene.now_micros,
            parallelism: self.scene.parallelism as u32,
            ordinal_base: ordinals,
            sources,
            stages: self.stages(&next, &ended),
            sinks: self.sinks(&all_sealed),
            rejects: RejectsState { count: rejected, sealed: all_rejects.clone() },
            counters: Counters { rows_in, rows_out },
            spool_bytes: all_sealed.iter().flatten().map(|sealed| sealed.bytes).sum(),
            state_bytes: report.state_bytes,
            duration_ms: (turns::now() - begun).as_millis() as u64,
            alignment_ms: report.alignment_ms,
            savepoint_note: note,
            ..Manifest::new(kind, number, self.ledger.lineage.clone(), self.ledger.print.clone())
        };
        turns::pass();
        if planted(Planted::ApplyBeforeManifest) {
            sealed.iter().for_each(|(sink, sealed)| self.applier.add(*sink, sealed.clone()));
        }
        self.ledger.taken |= !planted(Planted::LostAnswerForgotten);
        if let Err(error) = self.publish(&manifest) {
            // What was stored stays stored, under the names that the next manifest will give.
            self.ledger.stored = next;
            self.ledger.rejects = all_rejects;
            self.scene.barriers.put_back(number, Vec::new(), sealed);
            return Err(self.weigh(error));
        }
        self.ledger.stored = next;
        self.ledger.rejects = all_rejects;
        self.ledger.sealed = all_sealed;
        self.ledger.rows_out = rows_out;
        self.ledger.taken = true;
        turns::pass();
        tracing::info!(
            job = %self.scene.job.job,
            checkpoint = number,
            kind = kind.word(),
            rows_in,
            state_bytes = manifest.state_bytes,
            spool_bytes = spool,
            duration_ms = manifest.duration_ms,
            alignment_ms = manifest.alignment_ms,
            stop_micros = report.stop_micros,
            event = "staged"
        );
        self.scene.job.observer.event(&Event::Checkpoint { number, duration: (turns::now() - begun) });
        for (sink, sealed) in sealed {
            self.applier.add(sink, sealed);
        }
        Ok(())
    }

    fn store_parts(
        &mut self,
        number: u64,
        pending: &mut Vec<Pending>,
        next: &mut Stored,
        begun: Instant,
    ) -> Result<u64, Setback> {
        let fatal = |error: RunError| Setback::Fatal(Box::new(error));
        let pieces: Result<Vec<_>, RunError> = std::mem::take(pending).into_iter().map(in_pieces).collect();
        *pending = pieces.map_err(fatal)?.into_iter().flatten().collect();
        let mut written = 0;
        self.measure().map_err(|error| self.weigh(error))?;
        // One after another in the same memory: what is new from the system has to be cleared by it.
        let (mut room, mut stored_room) = (AlignedVec::new(), Vec::new());
        for item in pending.iter_mut() {
            turns::pass();
            self.in_time(begun)?;
            let content = std::mem::replace(&mut item.content, Content::Archived(AlignedVec::new(), 0));
            let (bytes, rows) = match content {
                Content::Saved(saved) => {
                    let rows = saved.rows();
                    (saved.archive_in(std::mem::take(&mut room)).map_err(fatal)?, rows)
                }
                Content::Archived(bytes, rows) => (bytes, rows),
                Content::Stored(part) => {
                    change(next, &item.key, item.change, part.clone());
                    item.content = Content::Stored(part);
                    continue;
                }
            };
            let stage = &self.scene.stages[item.key.stage];
            self.parts += 1;
            let (slot, kind, copy) = (&stage.slots[item.key.slot], item.key.kind.name(), item.key.copy);
            let name = format!("{slot}-{kind}-{copy}-{}", self.parts);
            match self.checkpoints.write_part(number, &name, STATE_SCHEMA, &bytes, &mut stored_room) {
                Ok(part) => {
                    room = bytes;
                    written += part.bytes;
                    let part = dfc_checkpoint::Part { rows, ..part };
                    change(next, &item.key, item.change, part.clone());
                    item.content = Content::Stored(part);
                }
                Err(error) => {
                    item.content = Content::Archived(bytes, rows);
                    return Err(self.weigh(RunError::Checkpoint(error)));
                }
            }
        }
        self.in_time(begun)?;
        Ok(written)
    }

    /// Closed epochs go where the checkpoint goes: another machine may have to apply them.
    fn carry(&self, sealed: &[(usize, Sealed)]) -> Result<(), RunError> {
        sealed.iter().try_for_each(|(sink, sealed)| {
            turns::pass();
            self.checkpoints.carry(&self.scene.sinks[*sink].node, sealed).map_err(RunError::Checkpoint)
        })
    }

    fn publish(&self, manifest: &Manifest) -> Result<(), RunError> {
        self.checkpoints.publish(manifest).map(drop).map_err(RunError::Checkpoint)
    }

    fn stages(&self, stored: &Stored, ended: &[bool]) -> Vec<StageState> {
        // What a stage that hasn't started was to begin with is another run's, which may have had other tasks.
        let of_this_run = |index: usize| stored.keys().all(|key| key.stage != index || key.copy < RESTORED);
        let stage = |(index, stage): (usize, &Arc<StageCx>)| StageState {
            name: stage.name.to_string(),
            ended: ended[index],
            tasks: if of_this_run(index) { stage.tasks as u32 } else { 0 },
            operators: stored
                .iter()
                .filter(|(key, parts)| key.stage == index && !parts.is_empty())
                .map(|(key, parts)| OperatorState {
                    node: stage.slots[key.slot].to_string(),
                    kind: key.kind.name().to_owned(),
                    parts: parts.clone(),
                })
                .collect(),
        };
        self.scene.stages.iter().enumerate().map(stage).collect()
    }

    fn sinks(&self, sealed: &[Vec<Sealed>]) -> Vec<SinkState> {
        let state = |(port, sealed): (&Arc<SinkPort>, &Vec<Sealed>)| SinkState {
            node: port.node.to_string(),
            target: port.target.clone(),
            at_end: port.sink().visible_at_end(),
            sealed: sealed.clone(),
        };
        self.scene.sinks.iter().zip(sealed).map(state).collect()
    }
}

/// State in pieces that are stored one after another.
fn in_pieces(pending: Pending) -> Result<Vec<Pending>, RunError> {
    let Pending { key, change, content } = pending;
    let Content::Saved(saved) = content else { return Ok(vec![Pending { key, change, content }]) };
    let pieces = saved.pieces(PART_BYTES)?.into_iter().enumerate();
    let pieces = pieces.map(|(number, saved)| Pending {
        key: key.clone(),
        change: if number == 0 { change } else { Change::Append },
        content: Content::Saved(saved),
    });
    Ok(pieces.collect())
}

fn change(stored: &mut Stored, key: &Key, change: Change, part: dfc_checkpoint::Part) {
    let parts = stored.entry(key.clone()).or_default();
    if change == Change::Replace || planted(Planted::ChainBroken) {
        parts.clear();
    }
    parts.push(part);
}
