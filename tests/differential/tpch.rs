//! The main job against DuckDB: the same answers, column by column, decimals exactly, averages to 1e-9.

use crate::support::{dfc, python, root};

/// Pipelines of `examples/tpch` with the name of DuckDB's statement.
const WORKLOADS: [&str; 7] = ["q1", "q1_parquet", "q3", "q6", "sync", "highcard", "lookup"];

fn compare(scale: &str, workload: &str, extra: &[&str]) {
    let data = python::tpch(scale);
    let out = tempfile::tempdir().expect("a temporary folder");
    // A copy: two runs of one job at a time would share its checkpoints.
    let pipeline = out.path().join("pipeline.df");
    for (from, to) in [(format!("{workload}.df"), "pipeline.df"), ("tables.df".into(), "tables.df")] {
        let from = root().join("examples/tpch").join(from);
        std::fs::copy(from, out.path().join(to)).expect("the pipeline is copied");
    }
    let pipeline = pipeline.display().to_string();
    let data_arg = format!("data={}", data.display());
    let out_arg = format!("out={}", out.path().display());
    let mut args = vec!["run", pipeline.as_str(), "--set", &data_arg, "--set", &out_arg];
    args.extend(extra);
    let output = dfc(&root(), &args);
    assert_eq!(output.code, 0, "{workload} {extra:?}: {}", output.stderr);
    let result = out.path().join(format!("{workload}.csv"));
    let (data, result) = (data.display().to_string(), result.display().to_string());
    python::script("compare.py", &[workload, &data, &result]);
}

#[test]
fn small_scale_answers_equal_duckdbs_at_any_parallelism() {
    for workload in WORKLOADS {
        for parallelism in ["1", "2", "3"] {
            compare("0.01", workload, &["--parallelism", parallelism]);
        }
    }
}

#[test]
fn the_interpreter_gives_the_same_answers() {
    for workload in WORKLOADS {
        compare("0.01", workload, &["--engine", "interpreter", "--parallelism", "2"]);
    }
}

#[test]
fn json_lines_give_the_same_answers() {
    python::script("to_jsonl.py", &[&python::tpch("0.01").display().to_string()]);
    for extra in [["--parallelism", "1"], ["--parallelism", "3"], ["--engine", "interpreter"]] {
        compare("0.01", "q1_jsonl", &extra);
    }
}

#[test]
fn scale_one_answers_equal_duckdbs() {
    for workload in WORKLOADS {
        compare("1", workload, &["--parallelism", "2"]);
    }
}

#[test]
fn parquet_out_and_in_again_is_the_table() {
    let data = python::tpch("0.01");
    let out = tempfile::tempdir().expect("a temporary folder");
    let args = [
        "run".to_owned(),
        "examples/tpch/to_parquet.df".to_owned(),
        "--set".to_owned(),
        format!("data={}", data.display()),
        "--set".to_owned(),
        format!("out={}", out.path().display()),
    ];
    let output = dfc(&root(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let written = out.path().join("lineitem.parquet").display().to_string();
    python::script("compare.py", &["to_parquet", &data.display().to_string(), &written]);
}
