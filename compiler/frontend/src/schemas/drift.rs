//! How the fields outside differ from those that a pipeline was compiled with (F10), by name.

use std::fmt;

use dfc_ir::{DataType, Field, Schema};

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A column is not there any more.
    Gone(String),
    /// A column has another type.
    Changed {
        /// Its name outside.
        name: String,
        /// The type that is known.
        from: DataType,
        /// The type that it has now.
        to: DataType,
    },
    /// A column has come. It is left out until the fields are renewed.
    Added(String, DataType),
    /// The same columns in another order. Columns are matched by name.
    Order,
}

impl Difference {
    /// Whether a pipeline that was compiled with the old fields still means the same.
    pub fn harmless(&self) -> bool {
        matches!(self, Difference::Added(..) | Difference::Order)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Gone(name) => write!(f, "the column `{name}` is gone"),
            Difference::Changed { name, from, to } => write!(f, "the column `{name}` was {from} and is {to} now"),
            Difference::Added(name, ty) => write!(f, "the column `{name}` ({ty}) has come"),
            Difference::Order => f.write_str("the columns stand in another order"),
        }
    }
}

/// What has changed from `known` to `live`, in the order of the known fields, then of the live ones.
pub fn differences(known: &Schema, live: &Schema) -> Vec<Difference> {
    fn find<'s>(schema: &'s Schema, field: &Field) -> Option<&'s Field> {
        schema.fields.iter().find(|other| other.external_name() == field.external_name())
    }
    let mut out: Vec<Difference> = Vec::new();
    for field in &known.fields {
        let name = field.external_name().to_owned();
        match find(live, field) {
            None => out.push(Difference::Gone(name)),
            Some(now) if now.ty != field.ty => {
                out.push(Difference::Changed { name, from: field.ty.clone(), to: now.ty.clone() });
            }
            Some(_) => {}
        }
    }
    let added = live.fields.iter().filter(|field| find(known, field).is_none());
    out.extend(added.map(|field| Difference::Added(field.external_name().to_owned(), field.ty.clone())));
    let common = |a: &Schema, b: &Schema| -> Vec<String> {
        let kept = a.fields.iter().filter(|field| find(b, field).is_some());
        kept.map(|field| field.external_name().to_owned()).collect()
    };
    if common(known, live) != common(live, known) {
        out.push(Difference::Order);
    }
    out
}

#[cfg(test)]
mod tests {
    use dfc_ir::Type;

    use super::*;

    fn schema(fields: &[(&str, DataType)]) -> Schema {
        Schema { fields: fields.iter().map(|(name, ty)| Field::new(*name, ty.clone())).collect() }
    }

    #[test]
    fn each_difference_is_named() {
        let (int, text) = (DataType::of(Type::INT64), DataType::optional(Type::String));
        let known = schema(&[("a", int.clone()), ("b", int.clone()), ("c", text.clone()), ("d", int.clone())]);
        let live = schema(&[("d", int.clone()), ("a", int.clone()), ("c", int.clone()), ("e", text)]);
        let found: Vec<String> = differences(&known, &live).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "the column `b` is gone",
                "the column `c` was string? and is int64 now",
                "the column `e` (string?) has come",
                "the columns stand in another order",
            ]
        );
        assert!(differences(&known, &known).is_empty());
    }
}
