//! Row groups and pages that hold no row that passes a source's conditions, by what the file says of their values.
//! It may not know the conditions, nor how rows are read.

use std::ops::Range;

use dfc_ir::Field;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::{ColumnChunkMask, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;

use super::guard::guarded;
use super::statistics::Leaf;
use crate::{Bounds, Condition, Possible};

/// Tells of one file.
pub(super) struct Pruner {
    questions: Vec<Question>,
}

struct Question {
    /// The columns that the condition reads; `None`: nothing is known of one of them, ever.
    leaves: Option<Vec<Leaf>>,
    possible: Option<Possible>,
}

/// Rows of a row group that needn't be read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Skipped {
    /// Their numbers from 0, ascending, apart from each other.
    pub(super) rows: Vec<Range<u64>>,
    /// Pages whose values say so.
    pub(super) pages: u64,
}

impl Pruner {
    /// For a file whose root columns of the projected fields are these. `None`: bounds say nothing about the conditions.
    pub(super) fn new(
        conditions: &[Condition],
        file: &ArrowReaderMetadata,
        roots: &[usize],
        fields: &[Field],
    ) -> Option<Pruner> {
        let asked = conditions.iter().rposition(|condition| condition.possible.is_some())?;
        let leaf = |&position: &usize| {
            let (root, field) = (*roots.get(position)?, fields.get(position)?);
            Leaf::find(file.metadata(), root, file.schema().fields().get(root)?.data_type(), field)
        };
        let questions = conditions[..=asked].iter().map(|condition| Question {
            leaves: condition.columns.iter().map(leaf).collect(),
            possible: condition.possible.clone(),
        });
        Some(Pruner { questions: questions.collect() })
    }

    /// Whether no row of a row group passes.
    pub(super) fn skips(&self, file: &ParquetMetaData, group: usize) -> bool {
        self.sound(file, group).any(|(_, possible, bounds)| !possible(&bounds))
    }

    /// What the pages of a row group say, where the file has an index of them.
    pub(super) fn pages(&self, indexed: &ParquetMetaData, group: usize) -> Skipped {
        let mut skipped = Skipped::default();
        let Some(index) = indexed.page_index() else { return skipped };
        let rows = indexed.row_group(group).num_rows().max(0) as u64;
        for (leaves, possible, mut bounds) in self.sound(indexed, group) {
            for (place, leaf) in leaves.iter().enumerate() {
                let (Some(values), Some(pages)) =
                    (index.column_index(group, leaf.number), index.page_locations(group, leaf.number))
                else {
                    continue;
                };
                let firsts: Vec<u64> =
                    pages.iter().filter_map(|page| u64::try_from(page.first_row_index).ok()).collect();
                let sound = firsts.first() == Some(&0)
                    && firsts.len() as u64 == values.num_pages()
                    && firsts.len() == pages.len()
                    && firsts.is_sorted()
                    && firsts.last().is_some_and(|last| *last <= rows);
                if !sound {
                    continue;
                }
                for (page, &first) in firsts.iter().enumerate() {
                    let end = firsts.get(page + 1).copied().unwrap_or(rows);
                    let Some(of_page) = leaf.of_page(values, page, end - first) else { continue };
                    let whole = std::mem::replace(&mut bounds[place], of_page);
                    if first < end && !possible(&bounds) {
                        skipped.rows.push(first..end);
                        skipped.pages += 1;
                    }
                    bounds[place] = whole;
                }
            }
        }
        skipped.rows = joined(skipped.rows);
        skipped
    }

    /// The questions that bounds may answer in a row group, with these; none behind a condition one of whose values may not fit, since whether
    /// that is noticed may not depend on bounds.
    fn sound<'p>(
        &'p self,
        file: &'p ParquetMetaData,
        group: usize,
    ) -> impl Iterator<Item = (&'p [Leaf], &'p Possible, Vec<Bounds>)> {
        let meta = file.row_group(group);
        let bounds = move |question: &'p Question| {
            let leaves = question.leaves.as_deref()?;
            let bounds: Vec<Bounds> = leaves.iter().map(|leaf| leaf.of_group(meta)).collect::<Option<_>>()?;
            Some((leaves, &question.possible, bounds))
        };
        let known = self.questions.iter().map_while(bounds);
        known.filter_map(|(leaves, possible, bounds)| Some((leaves, possible.as_ref()?, bounds)))
    }

    /// The file's metadata with the index of its pages, as far as it is asked for; `None`: it has none, or one that can't be read.
    pub(super) fn index(&self, file: &ParquetMetaData, handle: &impl ChunkReader) -> Option<ParquetMetaData> {
        let leaves = self.questions.iter().filter_map(|question| question.leaves.as_ref()).flatten();
        let mask = ColumnChunkMask::columns(leaves.map(|leaf| leaf.number));
        let mut reader = ParquetMetaDataReader::new_with_metadata(file.clone())
            .with_column_index_policy(PageIndexPolicy::Optional)
            .with_offset_index_policy(PageIndexPolicy::Optional)
            .with_column_index_mask(mask.clone())
            .with_offset_index_mask(mask);
        // Without it more is read: no reason to give up.
        let indexed = guarded(|| reader.read_page_indexes(handle).and_then(|()| reader.finish())).ok()?.ok()?;
        indexed.page_index().is_some().then_some(indexed)
    }
}

/// The same rows as runs apart from each other, ascending.
fn joined(mut runs: Vec<Range<u64>>) -> Vec<Range<u64>> {
    runs.sort_by_key(|run| run.start);
    let mut apart: Vec<Range<u64>> = Vec::with_capacity(runs.len());
    for run in runs {
        match apart.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => apart.push(run),
        }
    }
    apart
}

/// What is left of the first `rows` rows without some runs of them.
pub(super) fn remaining(rows: u64, without: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::with_capacity(without.len() + 1);
    let mut from = 0;
    for run in without {
        left.push(from..run.start.min(rows));
        from = run.end;
    }
    left.push(from..rows);
    left.retain(|run| run.start < run.end);
    left
}

/// The mask of some root columns, and for each of them its column in what is read with it.
pub(super) fn mask(file: &ArrowReaderMetadata, roots: &[usize]) -> (ProjectionMask, Vec<usize>) {
    let mut wanted = roots.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let columns = roots.iter().filter_map(|root| wanted.binary_search(root).ok()).collect();
    (ProjectionMask::roots(file.parquet_schema(), wanted), columns)
}
