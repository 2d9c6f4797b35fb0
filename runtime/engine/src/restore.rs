//! Puts what a checkpoint found between the stages back: rows of join tables, packets before a stage that hadn't started (D13).

use std::collections::BTreeMap;
use std::sync::Arc;

use dfc_batch::{Batch, select};
use dfc_ir::DataType;
use dfc_ir::stage::AggregateSpec;
use dfc_jit::PreparedProgram;

use crate::RunError;
use crate::exchange::{Exchange, Packet};
use crate::output::dealt_rows;
use crate::rowkey::RowKeys;
use crate::state::{self, Kind, Restored};
use crate::table::BuildPart;

/// Rows of a join table, with their keys computed anew.
pub(crate) fn rows_of_table(state: &Restored, keys: &dyn PreparedProgram) -> Result<Vec<BuildPart>, RunError> {
    let mut parts = Vec::new();
    for bytes in state.parts.all()? {
        for batch in state::rows(&bytes, None)?.batches {
            // These rows had keys before: no errors now.
            let evaluated = keys.evaluate(&batch, &mut Vec::new());
            if evaluated.kept.is_some_and(|kept| kept.len() != batch.rows) {
                return Err(RunError::State("rows of a join table have no keys any more".into()));
            }
            parts.push(BuildPart { seq: batch.seq, batch, keys: evaluated.columns });
        }
    }
    Ok(parts)
}

/// Packets back into the lanes before a stage: each row into the lane of its key, the first half of an aggregate into all.
pub(crate) fn refill(
    exchange: &Exchange,
    state: &Restored,
    dealt: Option<(Vec<(usize, DataType)>, &Arc<Exchange>)>,
    spec: Option<&AggregateSpec>,
) -> Result<(), RunError> {
    if state.kind == Kind::Groups {
        let spec = spec.ok_or_else(|| RunError::State("groups stand before an operator that takes none".into()))?;
        let table = Arc::new(state::groups(spec, &state.parts.all()?)?);
        (0..exchange.lanes()).for_each(|lane| exchange.refill(lane, Packet::Partial(table.clone())));
        return Ok(());
    }
    let (columns, types): (Vec<usize>, Vec<DataType>) =
        dealt.map(|(dealt, _)| dealt).unwrap_or_default().into_iter().unzip();
    let typed: Vec<_> = types.into_iter().map(|ty| (ty, Default::default())).collect();
    let keys = match exchange.lanes() > 1 && !columns.is_empty() {
        true => Some(RowKeys::new("exchange".into(), &typed)?),
        false => None,
    };
    for bytes in state.parts.all()? {
        // The batches of one packet have its number and stand together.
        let mut packets: BTreeMap<(u64, usize), Vec<Batch>> = BTreeMap::new();
        let mut order = 0;
        let mut before = None;
        for batch in state::rows(&bytes, None)?.batches {
            order += usize::from(before != Some(batch.seq));
            before = Some(batch.seq);
            packets.entry((batch.seq, order)).or_default().push(batch);
        }
        let mut packets: Vec<_> = packets.into_iter().collect();
        packets.sort_by_key(|((_, order), _)| *order);
        for ((seq, _), batches) in packets {
            let Some(keys) = &keys else {
                exchange.refill(0, Packet::Rows { seq, batches });
                continue;
            };
            for batch in batches {
                for (lane, rows) in dealt_rows(&batch, &columns, keys, exchange.lanes())?.into_iter().enumerate() {
                    if !rows.is_empty() {
                        exchange.refill(lane, Packet::Rows { seq, batches: vec![select(&batch, &rows)] });
                    }
                }
            }
        }
    }
    Ok(())
}
