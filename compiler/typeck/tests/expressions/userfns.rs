//! User functions.

use dfc_typeck::{NoSites, Scope};

use crate::support::{check_with, checker, globals, line, show};

fn call(fns: &str, text: &str) -> String {
    let checked = check_with(text, None, fns);
    match checked.expr {
        Some(e) => show(&e),
        None => checked.diagnostics.iter().map(line).collect::<Vec<_>>().join("; "),
    }
}

/// What checking the declarations by themselves reports.
fn declared(fns: &str) -> String {
    let globals = globals(fns);
    let mut out = Vec::new();
    for function in globals.functions.values() {
        let mut sites = NoSites;
        let mut checker = checker(&globals, Scope::None, &mut sites);
        checker.item = function.item.clone();
        checker.check_fn(function);
        out.extend(checker.diagnostics.iter().map(line));
    }
    out.join("; ")
}

const NET: &str = "fn net(p: decimal(15, 2), d: decimal(4, 2)?) = p * (1 - d ?? 0)\n";

#[test]
fn bodies_are_written_out() {
    assert_eq!(call(NET, "net(price, discount)"), "(price * (1 - coalesce(discount, 0.00))): decimal(21, 4)");
    assert_eq!(call(NET, "net(d: discount, p: price)"), "(price * (1 - coalesce(discount, 0.00))): decimal(21, 4)");
    assert_eq!(call(NET, "net(5, null)"), "5.0000: decimal(21, 4)");
    assert_eq!(declared(NET), "");
    assert_eq!(call("fn twice(x: any) = x + x\n", "twice(small)"), "(small + small): int8");
    assert_eq!(
        call("fn tax(x: int64, rate: int64 = 19) -> decimal(38, 2) = x * rate\n", "tax(id)"),
        "((id * 19) as decimal(38, 2)): decimal(38, 2)"
    );
    assert!(declared("fn cents(x: int64) -> decimal(38, 2) = x * 0.001\n").starts_with("E0504"));
}

#[test]
fn a_null_argument_gives_null() {
    assert_eq!(
        call("fn shout(s: string) = upper(s)\n", "shout(nick)"),
        "case { (nick is null) => null, else => upper((nick as string)) }: string?"
    );
    assert_eq!(call("fn shout(s: string) = upper(s)\n", "shout(null)"), "null: string?");
}

#[test]
fn what_is_refused() {
    assert!(declared("fn f(x: int64) = f(x)\n").contains("f → f"));
    assert!(call("fn f(x: any) = f(x)\n", "f(1)").contains("f → f"));
    assert!(declared("fn f(x: int64) = x + y\n").starts_with("E0410: the function has no parameter `y`"));
    assert!(declared("fn f(x: string) -> int64 = x\n").starts_with("E0504"));
    assert!(declared("fn f(x: int46) = x\n").starts_with("E0423"));
    assert!(call(NET, "net(price)").starts_with("E0418"));
    assert!(call(NET, "net(name, discount)").starts_with("E0504"));
    assert!(call(NET, "net(price, discount, 1)").starts_with("E0418"));
    assert!(call("fn twice(x: number) = x + x\n", "twice(name)").starts_with("E0512"));
    assert!(call("fn twice(x: any) = x + x\n", "twice(name)").starts_with("E0500"));
}

#[test]
fn growth_is_limited() {
    let fns = "fn quad(x: int64) = x + x + x + x\nfn more(x: int64) = quad(quad(quad(x)))\n";
    assert_eq!(declared(fns), "");
    let grown = call(fns, "more(more(more(id)))");
    assert!(grown.starts_with("E0422: with `more` written out"), "{grown}");
}

#[test]
fn what_is_wrong_with_a_function_is_said_once() {
    let mutual = "fn f(x: int64) = g(x)\nfn g(x: int64) = f(x)\n";
    assert_eq!(
        declared(mutual),
        "E0416: the function `f` calls itself: f → g → f | functions are written out where they are used, so none can call itself"
    );
    assert_eq!(call(mutual, "f(id)"), "");
    assert_eq!(call("fn f(x: int64) = x + y\n", "f(id)"), "");
    let mut fns = String::from("fn f0(x: int64) = x + x\n");
    for n in 1..20 {
        fns.push_str(&format!("fn f{n}(x: int64) = f{}(x + x)\n", n - 1));
    }
    assert_eq!(declared(&fns).matches("E0422").count(), 1);
    assert_eq!(call(&fns, "f19(id)"), "");
}
