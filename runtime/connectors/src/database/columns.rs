//! A target's columns and a stream's fields (D7, D8): every field finds its column by name, every column that needs a value gets one,
//! and the types fit; where only some values fit, each value is looked at. It may not know which database has the columns.

use dfc_ir::text::written;
use dfc_ir::types::IntType;
use dfc_ir::{DataType, Field, Schema, Type, Value};

use super::{COLUMNS, listed};
use crate::ConnectError;

/// What kind of values a column takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Class {
    /// Whatever it is given.
    Any,
    Bool,
    /// Signed integers of so many bits.
    Int(u32),
    Float32,
    Float64,
    /// Precision and scale, where they are limited.
    Decimal(Option<(u8, u8)>),
    /// Text of at most so many characters.
    Text(Option<u32>),
    Bytes,
    Date,
    Time,
    DateTime,
    Timestamp,
    Duration,
    Json,
    Uuid,
    /// One of these texts.
    Labels(Vec<String>),
    List(Box<Class>),
    /// A type of the database's own, written as text.
    Other,
}

/// A column of a target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub name: String,
    pub class: Class,
    /// Its type as the database calls it.
    pub declared: String,
    pub nullable: bool,
    /// Has a value where none is given.
    pub default: bool,
    /// Can't be given a value.
    pub generated: bool,
}

/// Whether values of a type go into a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// All.
    Exact,
    /// Those that [`check`] passes.
    Checked,
    No,
}

/// Whole numbers that a float64 has all of.
const FLOAT_INTEGERS: i128 = 1 << 53;
/// The same for float32.
const FLOAT32_INTEGERS: i128 = 1 << 24;

/// Whether values of `ty` go into a column of this kind.
pub(crate) fn fits(ty: &Type, class: &Class) -> Fit {
    let when = |exact: bool| if exact { Fit::Exact } else { Fit::Checked };
    match (ty, class) {
        (_, Class::Any) => Fit::Exact,
        (Type::Bool, Class::Bool) => Fit::Exact,
        (Type::Int(int), Class::Int(bits)) => when(int.bits() < *bits || (int.signed() && int.bits() == *bits)),
        (Type::Int(int), Class::Float64) => when((*int).max() <= FLOAT_INTEGERS),
        (Type::Int(int), Class::Float32) => when((*int).max() <= FLOAT32_INTEGERS),
        (Type::Int(_), Class::Decimal(None)) => Fit::Exact,
        (Type::Int(int), Class::Decimal(Some((p, s)))) => when(int.digits() <= p - s),
        (Type::Float32, Class::Float32 | Class::Float64) | (Type::Float64, Class::Float64) => Fit::Exact,
        (Type::Float64, Class::Float32) => Fit::Checked,
        (Type::Decimal(..), Class::Decimal(None)) => Fit::Exact,
        (Type::Decimal(p, s), Class::Decimal(Some((to_p, to_s)))) => when(s <= to_s && p - s <= to_p - to_s),
        (Type::Bytes, Class::Bytes) => Fit::Exact,
        (Type::Date, Class::Date | Class::DateTime) => Fit::Exact,
        (Type::Time, Class::Time) | (Type::DateTime, Class::DateTime) | (Type::Timestamp, Class::Timestamp) => {
            Fit::Exact
        }
        (Type::Duration, Class::Duration) => Fit::Exact,
        (Type::Json | Type::List(_) | Type::Record(_), Class::Json) => Fit::Exact,
        (Type::String, Class::Json | Class::Uuid | Class::Labels(_)) => Fit::Checked,
        (Type::String, Class::Other) => Fit::Exact,
        (Type::Bytes, _) => Fit::No,
        (_, Class::Text(limit)) => when(limit.is_none()),
        (Type::List(item), Class::List(class)) => fits(&item.ty, class),
        _ => Fit::No,
    }
}

/// Whether a value goes into a column that takes only some of its type.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn check(value: &Value, ty: &Type, class: &Class) -> Result<(), String> {
    match (value, class) {
        (Value::Null, _) => Ok(()),
        (Value::Int(n), Class::Int(bits)) => {
            let limit = 1i128 << (bits - 1);
            match (-limit..limit).contains(n) {
                true => Ok(()),
                false => Err(format!("`{n}` is outside the range of the target's column")),
            }
        }
        (Value::Int(n), Class::Float64 | Class::Float32) => {
            let limit = if *class == Class::Float64 { FLOAT_INTEGERS } else { FLOAT32_INTEGERS };
            match n.abs() <= limit {
                true => Ok(()),
                false => Err(format!("`{n}` has more digits than the target's column keeps")),
            }
        }
        (Value::Int(n), Class::Decimal(Some((p, s)))) => match n.unsigned_abs() < 10u128.pow(u32::from(p - s)) {
            true => Ok(()),
            false => Err(format!("`{n}` has more digits than the target's column, decimal({p}, {s})")),
        },
        (Value::Float(x), Class::Float32) => match (*x as f32).is_finite() {
            true => Ok(()),
            false => Err(format!("`{x}` is outside the range of the target's column")),
        },
        (Value::Decimal(mantissa), Class::Decimal(Some((p, s)))) => {
            let Type::Decimal(_, scale) = ty else { return Ok(()) };
            let exact = match s.checked_sub(*scale) {
                Some(more) => mantissa.checked_mul(10i128.pow(u32::from(more))),
                None => {
                    let less = 10i128.pow(u32::from(scale - s));
                    (mantissa % less == 0).then(|| mantissa / less)
                }
            };
            match exact.is_some_and(|m| m.unsigned_abs() < 10u128.pow(u32::from(*p))) {
                true => Ok(()),
                false => Err(format!("the value has more digits than the target's column, decimal({p}, {s})")),
            }
        }
        (Value::Str(text), Class::Uuid) => {
            let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
            match digits == 32 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
                true => Ok(()),
                false => Err("the text is no UUID".into()),
            }
        }
        (Value::Str(text), Class::Json) => {
            serde_json::from_str::<serde::de::IgnoredAny>(text).map(drop).map_err(|_| "the text is no JSON".into())
        }
        (Value::Str(text), Class::Labels(labels)) => match labels.iter().any(|label| label == text) {
            true => Ok(()),
            false => Err(format!("the text is none of the column's values, {}", listed(labels.iter().take(20)))),
        },
        (Value::List(items), Class::List(class)) => match ty {
            Type::List(item) => items.iter().try_for_each(|value| check(value, &item.ty, class)),
            _ => Ok(()),
        },
        (value, Class::Text(Some(limit))) => {
            let length = match value {
                Value::Str(text) => text.chars().count(),
                other => dfc_eval::format_value(other, ty).chars().count(),
            };
            match length <= *limit as usize {
                true => Ok(()),
                false => Err(format!("the text has {length} characters, the target's column takes {limit}")),
            }
        }
        _ => Ok(()),
    }
}

/// For each field its column.
///
/// # Errors
/// Fields without a column, columns that need a value and get none, types that don't fit: all of them are named.
pub(crate) fn match_columns(target: &str, schema: &Schema, columns: &[Column]) -> Result<Vec<usize>, ConnectError> {
    let mut wrong: Vec<String> = Vec::new();
    let mut help: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for field in &schema.fields {
        let name = field.external_name();
        let Some(at) = columns.iter().position(|column| column.name == name) else {
            wrong.push(format!("it has no column `{name}`"));
            let near = columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
            help.push(match near {
                Some(near) => format!("`rename({}: {})`", written(&near.name), written(&field.name)),
                None => format!("leave the field out: `drop({})`, or add the column", written(&field.name)),
            });
            continue;
        };
        found.push(at);
        if let Err((why, cure)) = takes(&columns[at], field) {
            wrong.push(why);
            help.push(cure);
        }
    }
    for (at, column) in columns.iter().enumerate() {
        if !found.contains(&at) && !column.nullable && !column.default && !column.generated {
            wrong.push(format!(
                "its column `{}` is NOT NULL and has no default, and the stream has no such field",
                column.name
            ));
            help.push(format!("compute it: `derive({}: …)`", written(&column.name)));
        }
    }
    if wrong.is_empty() {
        return Ok(found);
    }
    help.dedup();
    Err(ConnectError::new(COLUMNS, format!("the rows don't fit {target}: {}", wrong.join("; "))).help(help.join("; ")))
}

/// Whether a column takes a field; otherwise why not, and what to do.
fn takes(column: &Column, field: &Field) -> Result<(), (String, String)> {
    let name = &column.name;
    if column.generated {
        return Err((
            format!("its column `{name}` is computed by the database and can't be written"),
            format!("leave the field out: `drop({})`", written(&field.name)),
        ));
    }
    if fits(&field.ty.ty, &column.class) == Fit::No {
        return Err((
            format!("its column `{name}` is {}, the field is {}", column.declared, field.ty.ty),
            conversion(field, &column.class),
        ));
    }
    if field.ty.nullable && !column.nullable {
        return Err((
            format!("its column `{name}` is NOT NULL, and the field may be null"),
            format!(
                "put a value in its place, `derive({0}: {0} ?? …)`, or leave such rows out, `filter({0} is not null)`",
                written(&field.name)
            ),
        ));
    }
    Ok(())
}

/// What makes a field fit a column of this kind; leaving it out where nothing does.
fn conversion(field: &Field, class: &Class) -> String {
    let ty = match class {
        // Any number goes into it: the digits are the user's to choose.
        Class::Decimal(None) => Some(Type::Decimal(18, 2)),
        Class::Other => Some(Type::String),
        class => natural(class),
    };
    let name = written(&field.name);
    match ty.filter(|ty| *ty != field.ty.ty && dfc_eval::can_cast(&field.ty.ty, ty)) {
        Some(ty) => {
            let ty = DataType { ty, nullable: field.ty.nullable };
            format!("convert it, `cast({name} as {ty})`, or give the column another type")
        }
        None => format!("give the column another type, or leave the field out: `drop({name})`"),
    }
}

/// The type whose values a column of this kind holds; `None`: there is none of its own, and text shows them.
pub(crate) fn natural(class: &Class) -> Option<Type> {
    Some(match class {
        Class::Bool => Type::Bool,
        Class::Int(16) => Type::Int(IntType::I16),
        Class::Int(32) => Type::INT32,
        Class::Int(_) => Type::INT64,
        Class::Float32 => Type::Float32,
        Class::Float64 => Type::Float64,
        Class::Decimal(Some((p, s))) => Type::Decimal(*p, *s),
        Class::Decimal(None) => return None,
        Class::Text(_) | Class::Uuid | Class::Labels(_) => Type::String,
        Class::Bytes => Type::Bytes,
        Class::Date => Type::Date,
        Class::Time => Type::Time,
        Class::DateTime => Type::DateTime,
        Class::Timestamp => Type::Timestamp,
        Class::Duration => Type::Duration,
        Class::Json => Type::Json,
        // An array's items may always be null.
        Class::List(item) => Type::List(Box::new(DataType::optional(natural(item)?))),
        Class::Any | Class::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::schema;

    fn column(name: &str, class: Class, nullable: bool) -> Column {
        Column { name: name.into(), declared: format!("{class:?}"), class, nullable, default: false, generated: false }
    }

    /// D7: missing, extra, NOT NULL, type; all at once.
    #[test]
    fn fields_are_compared_with_the_columns() {
        let fields = schema("id: int64; name: string?; price: decimal(4,2)");
        let columns = [
            column("price", Class::Decimal(Some((6, 3))), true),
            column("id", Class::Int(32), false),
            column("name", Class::Text(Some(3)), true),
        ];
        assert_eq!(match_columns("`t`", &fields, &columns).unwrap(), [1, 2, 0]);
        let other = [
            column("id", Class::Date, false),
            column("Name", Class::Text(None), true),
            column("price", Class::Decimal(None), true),
            column("more", Class::Bool, false),
        ];
        let error = match_columns("the table `t`", &fields, &other).unwrap_err();
        assert_eq!(
            error.message,
            "the rows don't fit the table `t`: its column `id` is Date, the field is int64; it has no column `name`; its column `more` is NOT NULL and has no default, and the stream has no such field"
        );
        assert_eq!(
            error.help.unwrap(),
            "give the column another type, or leave the field out: `drop(id)`; `rename(Name: name)`; compute it: `derive(more: …)`"
        );
        let error =
            match_columns("`t`", &schema("name: string?"), &[column("name", Class::Text(None), false)]).unwrap_err();
        assert!(error.message.ends_with("its column `name` is NOT NULL, and the field may be null"), "{error}");
    }

    /// A cast is advised only where there is one that changes something.
    #[test]
    fn the_advised_cast_is_one_that_helps() {
        for (field, class, help) in [
            ("x: string", Class::Int(64), "convert it, `cast(x as int64)`, or give the column another type"),
            (
                "x: string?",
                Class::Decimal(None),
                "convert it, `cast(x as decimal(18, 2)?)`, or give the column another type",
            ),
            ("x: int64", Class::Other, "convert it, `cast(x as string)`, or give the column another type"),
            ("x: timestamp", Class::Int(64), "give the column another type, or leave the field out: `drop(x)`"),
        ] {
            let error = match_columns("`t`", &schema(field), &[column("x", class, true)]).unwrap_err();
            assert_eq!(error.help.as_deref(), Some(help), "{field}");
        }
    }

    #[test]
    fn values_that_would_not_fit_are_found() {
        let decimal = Type::Decimal(6, 3);
        for (value, ty, class, fits) in [
            (Value::Int(1 << 31), Type::INT64, Class::Int(32), false),
            (Value::Int(-(1 << 31)), Type::INT64, Class::Int(32), true),
            (Value::Int(u64::MAX.into()), Type::Int(IntType::U64), Class::Int(64), false),
            (Value::Decimal(1250), decimal.clone(), Class::Decimal(Some((4, 2))), true),
            (Value::Decimal(1251), decimal.clone(), Class::Decimal(Some((4, 2))), false),
            (Value::Decimal(100_000), decimal.clone(), Class::Decimal(Some((4, 2))), false),
            (Value::str("äöü"), Type::String, Class::Text(Some(3)), true),
            (Value::str("abcd"), Type::String, Class::Text(Some(3)), false),
            (Value::str("c0ffee00-0000-0000-0000-00000000000g"), Type::String, Class::Uuid, false),
            (Value::str("{"), Type::String, Class::Json, false),
            (Value::str("b"), Type::String, Class::Labels(vec!["a".into()]), false),
            (Value::Float(1e300), Type::Float64, Class::Float32, false),
            (Value::Null, Type::INT64, Class::Int(16), true),
        ] {
            assert_eq!(check(&value, &ty, &class).is_ok(), fits, "{value:?} {class:?}");
        }
        assert_eq!(fits(&Type::String, &Class::Int(64)), Fit::No);
        assert_eq!(fits(&Type::Bytes, &Class::Text(None)), Fit::No);
    }
}
