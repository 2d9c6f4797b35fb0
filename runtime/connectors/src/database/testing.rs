//! What the tests of all databases share: reads that stop at random barriers and go on elsewhere, sinks with epochs.

use std::path::Path;
use std::time::{Duration, Instant};

use dfc_batch::{Batch, value_at};
use dfc_ir::Schema;
use dfc_ir::plan::{SinkSpec, SourceSpec};

use crate::testing::context;
use crate::{
    ConnectError, Next, OpenContext, Positions, Sealed, Sink, SinkEpochs, SinkResume, Source, open_sink, open_source,
};

/// A small generator of random numbers.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The rows of a batch as texts.
pub(crate) fn texts(batch: &Batch, schema: &Schema) -> Vec<String> {
    let row = |row: usize| {
        let cells =
            schema.fields.iter().zip(&batch.columns).map(|(field, column)| match value_at(column, &field.ty.ty, row) {
                dfc_ir::Value::Null => "∅".to_string(),
                value => dfc_eval::format_value(&value, &field.ty.ty),
            });
        cells.collect::<Vec<_>>().join("|")
    };
    (0..batch.rows).map(row).collect()
}

/// Reads until all readers have answered barrier 1, which is wanted after so many batches, or to the end. The rows before the barrier,
/// and the positions at it.
pub(crate) fn read_to(
    source: &dyn Source,
    schema: &Schema,
    readers: usize,
    batches: Option<u64>,
) -> Result<(Vec<String>, Option<Positions>), ConnectError> {
    let mut open: Vec<_> = (0..readers).map(|task| source.reader(task)).collect::<Result<_, _>>()?;
    let mut done = vec![false; readers];
    let mut answered = vec![false; readers];
    let (mut rows, mut given, mut errors) = (Vec::new(), 0, Vec::new());
    let start = Instant::now();
    while !done.iter().zip(&answered).all(|(done, answered)| *done || *answered) {
        assert!(start.elapsed() < Duration::from_secs(60), "reading takes for ever");
        for at in 0..readers {
            if done[at] || answered[at] {
                continue;
            }
            if Some(given) == batches {
                source.mark(1);
                given += 1;
            }
            match open[at].next(&mut errors)? {
                Next::Batch(batch) => {
                    given += 1;
                    rows.extend(texts(&batch, schema));
                }
                Next::Barrier(number) => {
                    assert_eq!(number, 1);
                    answered[at] = true;
                }
                Next::Wait(time) => std::thread::sleep(time.min(Duration::from_millis(1))),
                Next::End => done[at] = true,
            }
        }
    }
    assert_eq!(errors, []);
    let positions = match answered.contains(&true) {
        true => Some(source.positions(1)?),
        false => None,
    };
    Ok((rows, positions))
}

/// F4: a read that is broken off at random barriers, each time gone on with by another number of readers, gives every row once. Positions
/// go through JSON, as in a checkpoint.
pub(crate) fn read_in_parts(spec: &SourceSpec, seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let schema = spec.projected();
    let (mut rows, mut positions) = (Vec::new(), None);
    loop {
        let readers = 1 + random.below(3) as usize;
        let cx = OpenContext { tasks: readers, positions: positions.take(), ..context() };
        let source = open_source(spec, &cx).unwrap();
        let (part, at) = read_to(&*source, &schema, readers, Some(random.below(4))).unwrap();
        rows.extend(part);
        match at {
            None => return rows,
            Some(at) => {
                let text = serde_json::to_string(&at).unwrap();
                positions = Some(serde_json::from_str(&text).unwrap());
            }
        }
    }
}

/// A run from the end of the one before (A1): what it reads, and where it ends. Positions go through JSON.
pub(crate) fn read_on(spec: &SourceSpec, positions: Option<Positions>) -> (Vec<String>, Option<Positions>) {
    let cx = OpenContext { positions, continues: true, ..context() };
    let source = open_source(spec, &cx).unwrap();
    let (rows, _) = read_to(&*source, &spec.projected(), 1, None).unwrap();
    source.mark(9);
    let text = serde_json::to_string(&source.positions(9).unwrap()).unwrap();
    (rows, Some(serde_json::from_str(&text).unwrap()))
}

/// Whether these are the same rows, in any order, each as often.
pub(crate) fn same_rows(read: Vec<String>, all: Vec<String>) {
    let mut counts = std::collections::BTreeMap::new();
    read.iter().for_each(|row| *counts.entry(row.as_str()).or_insert(0) += 1);
    all.iter().for_each(|row| *counts.entry(row.as_str()).or_insert(0) -= 1);
    counts.retain(|_, count| *count != 0);
    let some: Vec<_> = counts.iter().take(5).collect();
    assert!(counts.is_empty(), "{} rows come too often (+) or too seldom (-), {some:?}", counts.len());
}

/// The lineage of tests.
pub(crate) const LINEAGE: &str = "00112233445566778899aabbccddeeff";

/// A context with checkpoints.
pub(crate) fn epochs(spool: &Path, resume: Option<SinkResume>) -> OpenContext {
    std::fs::create_dir_all(spool).unwrap();
    let epochs = SinkEpochs { lineage: LINEAGE.into(), spool: spool.into(), resume };
    OpenContext { job: "job".into(), epochs: Some(epochs), ..context() }
}

/// Opens a sink.
pub(crate) fn sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    open_sink(spec, schema, cx)
}

/// Writes a batch and seals it, through JSON.
pub(crate) fn seal(sink: &dyn Sink, batch: Batch, number: u64) -> Sealed {
    assert_eq!(crate::testing::put(sink, vec![batch]).unwrap(), []);
    let sealed = sink.seal(number).unwrap();
    serde_json::from_str(&serde_json::to_string(&sealed).unwrap()).unwrap()
}
