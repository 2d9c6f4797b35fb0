//! The editors' set-ups against the real program; Neovim's is tested with the language server. Node's packages are installed
//! by `tests/run`.

use std::process::Command;

use crate::support::{python, root, run};

const DFC: &str = env!("CARGO_BIN_EXE_dfc");

/// The highlighting grammar against the lexer; the extension's client against `dfc lsp`; its commands, tasks and matchers.
#[test]
fn vs_code() {
    let folder = root().join("editors/vscode");
    assert!(
        folder.join("node_modules/vscode-textmate").exists(),
        "MISSING: Node 20 and the packages of {}; `tests/run` installs them (or there: npm ci)",
        folder.display()
    );
    let test = run(Command::new("npm").arg("test").current_dir(&folder).env("DFC_BINARY", DFC));
    assert_eq!(test.code, 0, "{}{}", test.stdout, test.stderr);
}

/// The set-up is TOML with what Helix needs to start the server.
#[test]
fn helix() {
    let check = "import sys, tomllib; f = tomllib.load(open(sys.argv[1], 'rb')); s = f['language-server']['dfc']; \
                 print(s['command'], *s['args'], f['language'][0]['file-types'], f['language'][0]['language-servers'])";
    let python = python::environment().join("bin/python");
    let test = run(Command::new(python).args(["-c", check]).arg(root().join("editors/helix/languages.toml")));
    assert_eq!(test.stdout, "dfc lsp --stdio ['df'] ['dfc']\n", "{}", test.stderr);
}
