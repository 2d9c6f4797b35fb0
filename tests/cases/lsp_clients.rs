//! The language server with clients that are not ours: Neovim without a screen, and pytest-lsp. `tests/run` installs both.

use std::path::Path;
use std::process::Command;

use crate::support::{Output, python, root, run};

const PROJECT: &str = r#"job nightly {}

record Order { id: int64, status: string, price: decimal(9, 2) }

source orders = csv("orders.csv", schema: Order)

stream paid = orders |> filter(status == "paid")

stream net = paid |> derive(net: price * 2)

stream by_status = net |> aggregate(by: [status], total: sum(net))

sink by_status |> csv("out.csv")
"#;

#[test]
fn neovim() {
    let project = crate::support::folder(&[("main.df", PROJECT)]);
    let script = root().join("tests/lsp/session.lua");
    let output = run(Command::new(python::environment().join("bin/nvim"))
        .args(["--headless", "--clean", "-n"])
        .arg("-c")
        .arg(format!("luafile {}", script.display()))
        .env("DFC", env!("CARGO_BIN_EXE_dfc"))
        .env("SETUP", root().join("editors/neovim/dfc.lua"))
        .env("PROJECT", project.path())
        .env("XDG_STATE_HOME", project.path())
        .env("XDG_CACHE_HOME", project.path())
        .current_dir(project.path()));
    assert_good(&output, "session: ok");
}

#[test]
fn pytest_lsp() {
    let tests = root().join("tests/lsp");
    let cache = tempfile::tempdir().expect("a temporary folder");
    let output = run(Command::new(python::environment().join("bin/python"))
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto"])
        .arg("--basetemp")
        .arg(cache.path().join("tests"))
        .arg(&tests)
        .env("DFC", env!("CARGO_BIN_EXE_dfc"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(Path::new(&tests)));
    assert_good(&output, " passed");
}

fn assert_good(output: &Output, word: &str) {
    assert!(output.code == 0 && format!("{}{}", output.stdout, output.stderr).contains(word), "{output:#?}");
}
