//! The examples in the declarations of the standard library: typed as bool, and true where they are constant.

use dfc_ir::{ExprKind, Type, Value};
use dfc_typeck::{FunctionTable, Globals, NoSites, Scope};

use crate::support::{checker, line, parse_one};

#[test]
fn every_example_of_a_function_holds() {
    let globals = Globals::default();
    let mut count = 0;
    let mut wrong = Vec::new();
    // Those of aggregates need rows: the tests of the whole program run them.
    for function in FunctionTable::standard().iter().filter(|function| !function.aggregate) {
        for (example, fails) in function.overloads.iter().flat_map(|overload| &overload.examples) {
            count += 1;
            let mut sites = NoSites;
            let mut checker = checker(&globals, Scope::None, &mut sites);
            let checked = checker.check(&parse_one(example), None);
            let reported: Vec<_> = checker.diagnostics.iter().map(line).collect();
            match checked {
                Some(e) if *fails => wrong.push(format!("{example}: has a value: {e:?}")),
                Some(e) if e.ty.ty != Type::Bool => wrong.push(format!("{example}: {}", e.ty)),
                Some(e) => {
                    if let ExprKind::Literal(value) = &e.kind
                        && *value != Value::Bool(true)
                    {
                        wrong.push(format!("{example}: {value:?}"));
                    }
                }
                None if *fails => {}
                None => wrong.push(format!("{example}: {reported:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count} examples");
}
