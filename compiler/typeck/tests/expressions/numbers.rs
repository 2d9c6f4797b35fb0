//! Literals and arithmetic.

use crate::support::{errors, ir, refused, type_of, typed};

#[test]
fn literals_have_their_smallest_type() {
    assert_eq!(type_of("42"), "int64");
    assert_eq!(type_of("-9223372036854775808"), "int64");
    assert_eq!(type_of("9223372036854775808"), "decimal(19, 0)");
    assert_eq!(type_of("1.25"), "decimal(3, 2)");
    assert_eq!(type_of("0.05"), "decimal(2, 2)");
    assert_eq!(type_of("1.25f"), "float64");
    assert_eq!(type_of("1e3"), "float64");
    assert_eq!(type_of("64MB"), "int64");
    assert_eq!(typed("64MiB"), "67108864: int64");
    assert_eq!(type_of("@2026-01-31"), "date");
    assert_eq!(type_of("@2026-01-31T10:00:00"), "datetime");
    assert_eq!(type_of("@2026-01-31T10:00:00Z"), "timestamp");
    assert_eq!(type_of("7d"), "duration");
    assert_eq!(type_of("99999999999999999999999999999999999999"), "decimal(38, 0)");
    refused("100000000000000000000000000000000000000", "E0514");
}

#[test]
fn a_literal_takes_the_type_of_the_other_operand() {
    assert_eq!(typed("small + 1"), "(small + 1): int8");
    assert_eq!(typed("small + 300"), "((small as int64) + 300): int64");
    assert_eq!(typed("price * 2"), "(price * 2): decimal(17, 2)");
    assert_eq!(typed("ratio * 2"), "(ratio * 2.0f): float64");
    assert_eq!(typed("ratio * 1.5"), "(ratio * 1.5f): float64");
    assert_eq!(typed("ratio32 * 1.5"), "(ratio32 * 1.5f): float32");
    assert_eq!(typed("price * (24 * 60)"), "(price * 1440): decimal(20, 2)");
    assert_eq!(typed("id == 5"), "(id == 5): bool");
    assert_eq!(typed("price > 100"), "(price > 100.00): bool");
    assert_eq!(type_of("1 + 2.5"), "decimal(3, 1)");
    assert_eq!(typed("-price < -1.5"), "(-price < -1.50): bool");
}

#[test]
fn the_orders_example() {
    assert_eq!(typed("price * (1 - discount ?? 0)"), "(price * (1 - coalesce(discount, 0.00))): decimal(21, 4)");
    assert_eq!(typed("price * (1 - discount)"), "(price * (1 - discount)): decimal(21, 4)?");
}

#[test]
fn decimals_follow_the_rules() {
    assert_eq!(type_of("price + price"), "decimal(16, 2)");
    assert_eq!(type_of("price + discount"), "decimal(16, 2)?");
    assert_eq!(type_of("price * price"), "decimal(31, 4)");
    assert_eq!(type_of("price / 3"), "decimal(19, 6)");
    assert_eq!(type_of("price / price"), "decimal(33, 18)");
    assert_eq!(type_of("price % 7"), "decimal(3, 2)");
    assert_eq!(type_of("price div 7"), "decimal(38, 0)");
    assert_eq!(type_of("wide + wide"), "decimal(38, 9)");
    assert_eq!(type_of("wide * wide"), "decimal(38, 6)");
    assert_eq!(type_of("id * price"), "decimal(35, 2)");
    assert_eq!(type_of("id * 1.5"), "decimal(22, 1)");
}

#[test]
fn integers() {
    assert_eq!(typed("id / 2"), "((id as float64) / 2.0f): float64");
    assert_eq!(typed("id div 2"), "(id div 2): int64");
    assert_eq!(typed("small + n32"), "((small as int32) + n32): int32");
    assert_eq!(type_of("u8 + small"), "int16");
    assert_eq!(type_of("u64 + id"), "decimal(21, 0)");
    assert_eq!(typed("-u8"), "-(u8 as int16): int16");
    assert_eq!(typed("id % 2"), "(id % 2): int64");
}

#[test]
fn floats_win_and_a_lint_says_so() {
    assert_eq!(ir("price * ratio"), "((price as float64) * ratio): float64");
    let all = errors("price * ratio");
    assert_eq!(all.len(), 1);
    assert!(all[0].starts_with("W0500: decimal(15, 2) * float64 is computed as float64"), "{all:?}");
    assert_eq!(typed("ratio32 + ratio"), "((ratio32 as float64) + ratio): float64");
    assert_eq!(typed("id + ratio"), "((id as float64) + ratio): float64");
}

#[test]
fn dates_and_durations() {
    assert_eq!(type_of("born + 7d"), "date");
    assert_eq!(typed("7d + born"), "(born + duration(604800000000)): date");
    assert_eq!(type_of("born - due"), "int64?");
    assert_eq!(type_of("at - at"), "duration");
    assert_eq!(typed("at - born"), "(at - (born as datetime)): duration");
    assert_eq!(typed("moment - 30s"), "(moment - duration(30000000)): timestamp");
    assert_eq!(type_of("clock - clock"), "duration");
    assert_eq!(type_of("@2026-01-31 - @2026-01-01 + 1"), "int64");
}

#[test]
fn what_arithmetic_refuses() {
    assert!(refused("name + name", "E0500").contains("concat"));
    assert!(refused("name + 1", "E0500").contains("as int64"));
    assert!(refused("due + 1", "E0500").contains("1d"));
    assert!(refused("flag + 1", "E0500").contains("if x then 1 else 0"));
    assert!(refused("-name", "E0500").contains("number"));
    refused("at - moment", "E0509");
    refused("id + null", "E0507");
    refused("span / 2", "E0500");
    refused("raw * 2", "E0500");
    assert_eq!(typed("span * 2"), "(span * 2): duration");
    assert_eq!(typed("2 * span"), "(span * 2): duration");
}
