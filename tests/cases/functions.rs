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
        assert!(!of_function.is_empty(), "`{}` has no example", function.name);
        if function.aggregate {
            continue; // they need rows, see below
        }
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
fn examples_of_aggregates_are_true() {
    let table = FunctionTable::standard();
    let examples = table.iter().filter(|f| f.aggregate).flat_map(|f| &f.overloads).flat_map(|o| &o.examples);
    for (text, _) in examples {
        let (condition, values) = text.split_once(" for x = ").unwrap_or_else(|| panic!("`{text}` names no values"));
        let values: Vec<&str> = values.trim_matches(['[', ']']).split(", ").collect();
        let ty = match values.iter().find(|value| **value != "null") {
            Some(value) if value.starts_with('"') => "string",
            Some(&("true" | "false")) => "bool",
            Some(value) if value.contains('.') => "decimal(10, 2)",
            _ => "int64",
        };
        let pipeline = format!(
            "job example {{}}\nrecord One {{ x: {ty}? }}\nsource rows = jsonl(\"rows.jsonl\", schema: One)\n\
             stream results = rows |> aggregate(e: {condition})\nsink results |> csv(\"out.csv\")\n"
        );
        let rows: String = values.iter().map(|value| format!("{{\"x\": {value}}}\n")).collect();
        let dir = folder(&[("pipeline.df", &pipeline), ("rows.jsonl", &rows)]);
        for tier in ["jit", "interpreter"] {
            let output = dfc(dir.path(), &["run", "pipeline.df", "--engine", tier]);
            assert_eq!(output.code, 0, "`{text}`: {}", output.stderr);
            assert_eq!(read(&dir.path().join("out.csv")), "e\ntrue\n", "{tier}: `{text}`");
        }
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
