//! Native functions: overloads, conversions of arguments, nulls, results.

use crate::support::{errors, refused, type_of, typed};

#[test]
fn strict_functions_pass_null_on() {
    assert_eq!(typed("upper(name)"), "upper(name): string");
    assert_eq!(typed("upper(nick)"), "upper(nick): string?");
    assert_eq!(typed("length(nick) > 2"), "(length(nick) > 2): bool?");
    assert_eq!(typed("nullif(name, \"n/a\")"), "nullif(name, \"n/a\"): string?");
    assert_eq!(type_of("regexp_extract(name, r\"\\d+\")"), "string?");
}

#[test]
fn overloads_go_by_type() {
    assert_eq!(typed("date(at)"), "date(at): date");
    assert_eq!(typed("date(due)"), "date((due as datetime?)): date?");
    assert_eq!(typed("date(moment, \"UTC\")"), "date(moment, \"UTC\"): date");
    assert_eq!(type_of("length(tags)"), "int64");
    assert_eq!(type_of("length(raw)"), "int64");
    assert_eq!(typed("concat(name, id)"), "concat(name, (id as string)): string");
    assert_eq!(typed("greatest(small, 5)"), "greatest(small, 5): int8");
    assert_eq!(typed("greatest(price, discount)"), "greatest(price, (discount as decimal(15, 2)?)): decimal(15, 2)");
    assert_eq!(type_of("least(discount, null)"), "decimal(4, 2)?");
    assert_eq!(typed("now()"), "now(): timestamp");
    assert_eq!(typed("today() - due"), "(today() - due): int64?");
    assert_eq!(type_of("power(2, 0.5)"), "float64");
}

#[test]
fn results_by_rule() {
    assert_eq!(type_of("round(price, 1)"), "decimal(15, 1)");
    assert_eq!(type_of("round(price)"), "decimal(14, 0)");
    assert_eq!(type_of("round(price, small)"), "decimal(16, 2)");
    assert_eq!(type_of("round(discount)"), "decimal(3, 0)?");
    assert_eq!(type_of("round(ratio, 2)"), "float64");
    assert_eq!(type_of("abs(n32)"), "int32");
    assert_eq!(type_of("mod(id, 3)"), "int64");
}

#[test]
fn named_arguments() {
    assert_eq!(typed("substring(name, count: 2, start: 1)"), "substring(name, 1, 2): string");
    assert!(refused("substring(name, 1, cuont: 2)", "E0418").contains("did you mean `count`?"));
    refused("substring(s: name, 1)", "E0418");
}

#[test]
fn what_calls_refuse() {
    assert!(refused("uper(name)", "E0413").contains("did you mean `upper`?"));
    assert!(refused("substr(name, 1)", "E0413").contains("it is called `substring` here"));
    assert!(refused("len(name)", "E0413").contains("length"));
    assert!(refused("nvl(nick, \"\")", "E0413").contains("coalesce"));
    assert!(refused("cast(name)", "E0413").contains("x as int64"));
    assert!(refused("price(1)", "E0413").contains("field"));
    assert!(refused("substring(name)", "E0418").contains("takes 2 or 3 arguments, not 1 | the forms are `substring"));
    assert!(refused("upper()", "E0418").contains("takes 1 argument, not none"));
    assert!(refused("year(name)", "E0512").contains("name as date"));
    assert!(refused("year(moment)", "E0509").contains("time zone"));
    refused("sqrt(name)", "E0512");
    assert!(refused("sum(price)", "E0414").contains("aggregate(by:"));
    assert_eq!(errors("upper(nmae)").len(), 1);
}

#[test]
fn constant_arguments_are_checked() {
    refused("regexp_replace(name, \"(\", \"\")", "E0520");
    refused("parse_date(name, \"%Q\")", "E0521");
    refused("to_timestamp(at, \"Mars/Olympus\")", "E0524");
    refused("date_trunc(\"decade\", at)", "E0526");
}
