//! What the tests share: running the binary, golden files, the Python environment with DuckDB.

pub mod databases;
pub mod golden;
pub mod halfway;
pub mod lsp;
pub mod python;
pub mod random;
pub mod s3;
pub mod session;
pub mod slow;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the binary gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; −1 if it was killed by a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("cli/ is in the project's folder").to_owned()
}

/// The built binary.
pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dfc"));
    command.env("NO_COLOR", "1").env_remove("DFC_LOG").stdin(Stdio::null());
    command
}

/// Runs the binary in a folder.
pub fn dfc(folder: &Path, args: &[&str]) -> Output {
    run(binary().current_dir(folder).args(args))
}

/// Runs a command and takes what it writes.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("can't start {command:?}: {error}"));
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A folder with these files in it, removed when dropped.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        write(&dir.path().join(name), text);
    }
    dir
}

/// Writes a file, with its folders.
pub fn write(path: &Path, text: &str) {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
    }
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Reads a file.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of a Parquet file in a folder, as lines of text, as dfc itself reads them.
pub fn parquet_rows(dir: &Path, file: &str) -> Vec<String> {
    let text = format!("job show {{ checkpoint: off }}\nsource p = parquet(\"{file}\")\nsink p |> csv(\"-\")\n");
    let pipeline = dir.join("show.df");
    write(&pipeline, &text);
    let output = dfc(dir, &["run", "show.df"]);
    assert_eq!(output.code, 0, "{file}: {}", output.stderr);
    std::fs::remove_file(&pipeline).expect("removed");
    // Beside it the fields that were found are kept.
    let _ = std::fs::remove_file(dir.join("show.df.lock"));
    output.stdout.lines().map(str::to_owned).collect()
}

/// Copies a folder with everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the target folder can be made");
    for entry in std::fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let path = entry.expect("a readable entry").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// All files below a folder, relative to it, sorted.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    fn walk(base: &Path, at: &Path, out: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(at) else { return };
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            if path.ends_with(".dfc") {
                continue;
            }
            if path.is_dir() {
                walk(base, &path, out);
            } else {
                out.push(path.strip_prefix(base).expect("below the base").to_owned());
            }
        }
    }
    let mut out = Vec::new();
    walk(folder, folder, &mut out);
    out.sort();
    out
}
