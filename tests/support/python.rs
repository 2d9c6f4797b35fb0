//! The Python environment that holds the peers: DuckDB and the TPC-H generator. `tests/run` makes it.

use std::path::PathBuf;
use std::process::Command;

use super::{Output, run};

/// The environment's folder: `DFC_VENV`, else below the user's cache.
pub fn environment() -> PathBuf {
    let folder = match std::env::var_os("DFC_VENV") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache/dfc/venv"),
    };
    assert!(
        folder.join("bin/python").exists(),
        "MISSING: a Python environment with duckdb and tpchgen-cli at {}; `tests/run` makes it",
        folder.display()
    );
    folder
}

/// Runs a script of `tests/differential` with these arguments; it must end well.
pub fn script(name: &str, args: &[&str]) -> Output {
    let script = super::root().join("tests/differential").join(name);
    let output = run(Command::new(environment().join("bin/python")).arg(&script).args(args));
    assert_eq!(output.code, 0, "{name} {args:?}\n{}{}", output.stdout, output.stderr);
    output
}

/// The TPC-H tables at a scale as CSV and Parquet: generated once, kept beside the test's build.
pub fn tpch(scale: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tpch-{scale}"));
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    // A test that failed while it held the lock left no half-made folder: the name appears at the end.
    let _guard = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if folder.exists() {
        return folder;
    }
    let making = folder.with_extension(format!("making-{}", std::process::id()));
    for format in ["csv", "parquet"] {
        let output = run(Command::new(environment().join("bin/tpchgen-cli"))
            .args([format, "-s", scale, "--tables=lineitem,orders,customer", "--output-dir"])
            .arg(&making));
        assert_eq!(output.code, 0, "tpchgen-cli: {}", output.stderr);
    }
    std::fs::rename(&making, &folder).expect("the generated tables can be moved into place");
    folder
}
