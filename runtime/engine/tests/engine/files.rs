//! The connectors of this build: CSV in, CSV out, with the interruptions and rejected rows of real files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dfc_engine::{Event, Observer, RunError, RunOptions, Silent, run as run_plan};
use dfc_ir::expr::BinaryOp;
use dfc_ir::plan::{OptionValue, Options, SinkSpec, SourceSpec};
use dfc_ir::stage::{Stage, StageInput, StageOutput, Step};
use dfc_ir::{Schema, Site, StagePlan, Type, Value};

use crate::support::*;

fn options_of(path: &Path) -> Options {
    let value = Value::string(path.to_str().unwrap());
    BTreeMap::from([("path".to_owned(), OptionValue::Value(value))])
}

fn copy_plan(schema: &Schema, input: &Path, output: &Path) -> StagePlan {
    let spec = SourceSpec {
        connector: "csv".into(),
        options: options_of(input),
        schema: schema.clone(),
        projection: (0..schema.len()).collect(),
    };
    let input = StageInput::Source { node: "orders".into(), spec, site: Site::default() };
    let spec = SinkSpec { connector: "csv".into(), options: options_of(output) };
    let filter = binary(BinaryOp::Ge, col(schema, 0), lit(10), Type::Bool);
    let stage = Stage {
        outputs: vec![StageOutput::Sink { node: "copy".into(), spec, site: Site::default() }],
        ..stage("orders → copy", input, vec![steps("f", schema, vec![Step::Filter(filter)])], sink("x"), schema)
    };
    plan(vec![stage], 0, 0)
}

fn table(rows: usize) -> (Schema, String, String) {
    let schema = schema(&[("id", int()), ("name", text())]);
    let (mut input, mut expected) = ("id,name\n".to_owned(), "id,name\n".to_owned());
    for id in 0..rows {
        let line = format!("{id},\"name, {id}\"\n");
        input.push_str(&line);
        if id >= 10 {
            write!(expected, "{line}").unwrap();
        }
    }
    (schema, input, expected)
}

#[test]
fn a_file_is_copied_in_order_by_several_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.csv"), folder.path().join("out.csv"));
    let (schema, text, expected) = table(300_000);
    std::fs::write(&input, &text).unwrap();
    for parallelism in 1..=3 {
        let plan = copy_plan(&schema, &input, &output);
        let summary = run_plan(&plan, options(parallelism), Arc::new(Silent)).unwrap();
        assert!(std::fs::read_to_string(&output).unwrap() == expected, "{parallelism} tasks");
        assert_eq!((summary.rows_in, summary.rows_out()), (300_000, 299_990));
        assert_eq!(summary.bytes_in, text.len() as u64);
        assert_eq!(summary.sinks[0].written.bytes, expected.len() as u64);
    }
}

#[test]
fn a_row_that_does_not_fit_is_named_and_no_target_appears() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.csv"), folder.path().join("out.csv"));
    let (schema, text, _) = table(50_000);
    let line = 40_002;
    let text = text.replace("\n40000,", "\nforty,");
    let offset = text.find("forty").unwrap() as u64;
    std::fs::write(&input, &text).unwrap();
    for parallelism in 1..=3 {
        let plan = copy_plan(&schema, &input, &output);
        let error = run_plan(&plan, options(parallelism), Arc::new(Silent)).unwrap_err();
        let RunError::RowLimit { first, .. } = &error else { panic!("{error}") };
        let place = first.place.as_ref().unwrap();
        assert_eq!((first.node.as_str(), first.field.as_deref()), ("orders", Some("id")));
        assert_eq!((first.value.as_deref(), place.line, place.offset), (Some("forty"), Some(line), Some(offset)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the input is there");
    }
}

/// Cancels as soon as the sink was given a row.
struct CancelAtFirstRow(RunOptions);

impl Observer for CancelAtFirstRow {
    fn event(&self, event: &Event) {
        if let Event::Operator { id, moment: dfc_engine::Moment::FirstRow, .. } = event
            && &*id.operator == "copy"
        {
            self.0.cancelled.store(true, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

#[test]
fn an_interrupted_copy_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.csv"), folder.path().join("out.csv"));
    let (schema, text, _) = table(300_000);
    std::fs::write(&input, text).unwrap();
    let options = options(2);
    let plan = copy_plan(&schema, &input, &output);
    let result = run_plan(&plan, options.clone(), Arc::new(CancelAtFirstRow(options)));
    assert_eq!(result.unwrap_err(), RunError::Cancelled);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the input is there");
}
