//! `plans/NAME.df` with its typed operators (`.ir`) and the stages that are cut from them (`.stages`).

use crate::support::golden::{Golden, inputs};
use crate::support::{dfc, root};

#[test]
fn operators_and_stages() {
    let mut golden = Golden::default();
    let folder = root().join("tests/golden/plans");
    for file in inputs("plans", "df") {
        let name = file.file_name().and_then(|n| n.to_str()).expect("golden files have plain names");
        if name.starts_with("lib-") {
            continue; // used by the others
        }
        for emit in ["ir", "stages"] {
            let output = dfc(&folder, &["plan", name, "--emit", emit]);
            assert_eq!(output.code, 0, "{name}: {}", output.stderr);
            // Paths in a plan are resolved: they begin with this folder.
            let text = output.stdout.replace(&format!("{}/", folder.display()), "");
            golden.check(&file.with_extension(emit), &text);
        }
    }
    golden.finish();
}
