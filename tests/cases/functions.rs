//! Every function's examples in the standard library are true: checked, planned and run by the real program (D9).

use dfc_typeck::functions::FunctionTable;

use crate::support::{dfc, folder, read};

#[test]
fn examples_are_true() {
    let table = FunctionTable::standard();
    let mut examples = Vec::new();
    for function in table.iter() {
        let of_function: Vec<_> = function.overloads.iter().flat_map(|o| &o.examples).collect();
        assert!(!function.overloads.iter().any(|o| o.doc.is_empty()), "`{}` has no documentation", function.name);
        if function.aggregate {
            continue; // tried by the runs and by the tests of the keyed table
        }
        assert!(!of_function.is_empty(), "`{}` has no example", function.name);
        examples.extend(of_function.into_iter().filter(|(_, fails)| !fails).map(|(text, _)| text.clone()));
    }
    assert!(examples.len() > 90, "only {} examples", examples.len());
    let fields: String = (0..examples.len()).map(|i| format!("    e{i}: {},\n", examples[i])).collect();
    let pipeline = format!(
        "job examples {{}}\nrecord One {{ n: int64 }}\nsource one = csv(\"one.csv\", schema: One)\n\
         stream results = one |> select(\n{fields})\nsink results |> csv(\"out.csv\")\n"
    );
    let dir = folder(&[("pipeline.df", &pipeline), ("one.csv", "n\n1\n")]);
    for tier in ["jit", "interpreter"] {
        let output = dfc(dir.path(), &["run", "pipeline.df", "--engine", tier]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let result = read(&dir.path().join("out.csv"));
        let values: Vec<&str> = result.lines().nth(1).expect("one row").split(',').collect();
        let untrue: Vec<_> = examples.iter().zip(&values).filter(|(_, value)| **value != "true").collect();
        assert!(untrue.is_empty(), "{tier}: {untrue:#?}");
        assert_eq!(values.len(), examples.len());
    }
}

#[test]
fn examples_of_errors_are_errors() {
    let table = FunctionTable::standard();
    let fails = table.iter().flat_map(|f| &f.overloads).flat_map(|o| &o.examples).filter(|(_, fails)| *fails);
    for (text, _) in fails {
        let pipeline = format!(
            "job example {{}}\nrecord One {{ n: int64 }}\nsource one = csv(\"one.csv\", schema: One)\n\
             stream results = one |> select(e: {text})\nsink results |> csv(\"out.csv\")\n"
        );
        let dir = folder(&[("pipeline.df", &pipeline), ("one.csv", "n\n1\n")]);
        let output = dfc(dir.path(), &["run", "pipeline.df"]);
        assert_eq!(output.code, 1, "`{text}` should be an error: {}", output.stderr);
        assert!(!dir.path().join("out.csv").exists(), "`{text}` left a result");
    }
}
