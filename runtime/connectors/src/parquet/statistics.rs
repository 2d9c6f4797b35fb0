//! What a Parquet file says of its columns' values: bounds of a row group, and of the pages in it, as values of the declared type.
//!
//! Rows that are left out for their bounds aren't looked at, so a value among them that doesn't fit its type would go unnoticed. Bounds
//! are given only where every value within them fits: not for floats (a NaN is outside all bounds), nor for nanoseconds.

use arrow_schema::{DataType as ArrowType, TimeUnit};
use dfc_ir::{Field, Type, Value};
use parquet::basic::{ColumnOrder, SortOrder};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use super::convert;
use crate::Bounds;

/// A column of a file without nesting, read as a declared field.
pub(super) struct Leaf {
    /// Its position among the file's leaves.
    pub(super) number: usize,
    arrow: ArrowType,
    /// The type that its values have of themselves.
    from: Type,
    field: Field,
    order: ColumnOrder,
    /// The file has no nulls in it, by its type.
    required: bool,
}

/// A bound as it is stored.
enum Stored<'s> {
    Bool(bool),
    Narrow(i32),
    Wide(i64),
    Bytes(&'s [u8]),
}

impl Leaf {
    /// The leaf of a root column, if that has no others.
    pub(super) fn find(file: &ParquetMetaData, root: usize, arrow: &ArrowType, field: &Field) -> Option<Leaf> {
        let schema = file.file_metadata().schema_descr();
        let mut leaves = (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == root);
        let (number, more) = (leaves.next()?, leaves.next());
        let column = schema.column(number);
        let flat = more.is_none() && column.max_rep_level() == 0 && column.path().parts().len() == 1;
        flat.then_some(())?;
        Some(Leaf {
            number,
            arrow: arrow.clone(),
            from: convert::natural(arrow)?,
            field: field.clone(),
            order: file.file_metadata().column_order(number),
            required: column.max_def_level() == 0,
        })
    }

    /// What is known of it in a row group; `None`: a value in it may not fit.
    pub(super) fn of_group(&self, group: &RowGroupMetaData) -> Option<Bounds> {
        let rows = u64::try_from(group.num_rows()).ok()?;
        let Some(statistics) = group.columns().get(self.number)?.statistics() else {
            return self.bounds(None, None, None, rows);
        };
        let nulls = statistics.null_count_opt();
        if statistics.is_min_max_deprecated() {
            return self.bounds(None, None, nulls, rows);
        }
        let (low, high) = match statistics {
            Statistics::Boolean(s) => (s.min_opt().map(|b| Stored::Bool(*b)), s.max_opt().map(|b| Stored::Bool(*b))),
            Statistics::Int32(s) => (s.min_opt().map(|n| Stored::Narrow(*n)), s.max_opt().map(|n| Stored::Narrow(*n))),
            Statistics::Int64(s) => (s.min_opt().map(|n| Stored::Wide(*n)), s.max_opt().map(|n| Stored::Wide(*n))),
            Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) => {
                (statistics.min_bytes_opt().map(Stored::Bytes), statistics.max_bytes_opt().map(Stored::Bytes))
            }
            Statistics::Int96(_) | Statistics::Float(_) | Statistics::Double(_) => (None, None),
        };
        self.bounds(low, high, nulls, rows)
    }

    /// What is known of it in a page of so many rows; `None`: a value in it may not fit.
    pub(super) fn of_page(&self, index: &ColumnIndexMetaData, page: usize, rows: u64) -> Option<Bounds> {
        let nulls = index.null_count(page).and_then(|nulls| u64::try_from(nulls).ok());
        let (low, high) = match index {
            // Only here it is said that there is nothing but nulls.
            _ if index.is_null_page(page) => return self.bounds(None, None, Some(rows), rows),
            ColumnIndexMetaData::BOOLEAN(i) => {
                (i.min_value(page).map(|b| Stored::Bool(*b)), i.max_value(page).map(|b| Stored::Bool(*b)))
            }
            ColumnIndexMetaData::INT32(i) => {
                (i.min_value(page).map(|n| Stored::Narrow(*n)), i.max_value(page).map(|n| Stored::Narrow(*n)))
            }
            ColumnIndexMetaData::INT64(i) => {
                (i.min_value(page).map(|n| Stored::Wide(*n)), i.max_value(page).map(|n| Stored::Wide(*n)))
            }
            ColumnIndexMetaData::BYTE_ARRAY(i) | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(i) => {
                (i.min_value(page).map(Stored::Bytes), i.max_value(page).map(Stored::Bytes))
            }
            ColumnIndexMetaData::INT96(_) | ColumnIndexMetaData::FLOAT(_) | ColumnIndexMetaData::DOUBLE(_) => {
                (None, None)
            }
        };
        self.bounds(low, high, nulls, rows)
    }

    fn bounds(&self, low: Option<Stored>, high: Option<Stored>, nulls: Option<u64>, rows: u64) -> Option<Bounds> {
        let nulls = if self.required { Some(0) } else { nulls };
        if nulls != Some(0) && !self.field.ty.nullable {
            return None;
        }
        let values = nulls != Some(rows);
        let ends = low.zip(high).filter(|_| self.comparable());
        let ends = ends.and_then(|(low, high)| Some((self.value(low)?, self.value(high)?)));
        let mut bounds = Bounds { low: None, high: None, nulls: nulls != Some(0), values };
        match ends {
            Some((low, high)) if self.rises() => {
                let declared = |value: Value<'static>| convert::coerce(value, &self.from, &self.field.ty).ok();
                let (low, high) = (declared(low)?, declared(high)?);
                // What contradicts itself says nothing.
                if dfc_eval::compare(&low, &high).is_some_and(|order| order.is_le()) {
                    (bounds.low, bounds.high) = (Some(low.into_owned()), Some(high.into_owned()));
                } else if !self.fits_always() {
                    return None;
                }
            }
            _ if values && !self.fits_always() => return None,
            _ => {}
        }
        Some(bounds)
    }

    /// Whether the stored order is that of the values, and known to be.
    fn comparable(&self) -> bool {
        let unsigned = match &self.from {
            Type::Bool => return true,
            Type::Int(int) => !int.signed(),
            Type::String => true,
            _ => false,
        };
        match self.order {
            ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::SIGNED) => !unsigned,
            ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::UNSIGNED) => unsigned,
            // Older programs don't say; of whole numbers with a sign they had one idea.
            ColumnOrder::UNDEFINED => !unsigned && !matches!(self.from, Type::Decimal(..)),
            _ => false,
        }
    }

    /// Whether every value of the file fits the declared type, whatever it is.
    fn fits_always(&self) -> bool {
        self.from == self.field.ty.ty && matches!(self.from, Type::Bool | Type::Int(_) | Type::String)
    }

    /// Whether the conversion to the declared type keeps the order, and what lies between two values that fit, fits.
    fn rises(&self) -> bool {
        match (&self.from, &self.field.ty.ty) {
            (Type::Bool, Type::Bool)
            | (Type::Int(_), Type::Int(_) | Type::Decimal(..))
            | (Type::Decimal(..), Type::Decimal(..))
            | (Type::Decimal(_, 0), Type::Int(_))
            | (Type::String, Type::String)
            | (Type::Date, Type::Date) => true,
            (Type::DateTime, Type::DateTime) | (Type::Timestamp, Type::Timestamp) | (Type::Time, Type::Time) => {
                !matches!(
                    self.arrow,
                    ArrowType::Timestamp(TimeUnit::Nanosecond, _) | ArrowType::Time64(TimeUnit::Nanosecond)
                )
            }
            _ => false,
        }
    }

    /// A stored bound as a value of the type that it has of itself.
    fn value(&self, stored: Stored) -> Option<Value<'static>> {
        let whole = match stored {
            Stored::Bool(b) => return (self.from == Type::Bool).then_some(Value::Bool(b)),
            Stored::Bytes(bytes) if self.from == Type::String => {
                // One that was cut off may end within a character.
                return std::str::from_utf8(bytes).ok().map(Value::string);
            }
            Stored::Bytes(bytes) => match self.from {
                Type::Decimal(..) => big_endian(bytes)?,
                _ => return None,
            },
            Stored::Narrow(n) if self.unsigned() => i128::from(n as u32),
            Stored::Wide(n) if self.unsigned() => i128::from(n as u64),
            Stored::Narrow(n) => n.into(),
            Stored::Wide(n) => n.into(),
        };
        let of_second = |unit: &TimeUnit| match unit {
            TimeUnit::Second => 1_000_000,
            TimeUnit::Millisecond => 1000,
            TimeUnit::Microsecond | TimeUnit::Nanosecond => 1,
        };
        let micros = |unit: &TimeUnit| i64::try_from(whole.checked_mul(of_second(unit))?).ok();
        Some(match (&self.from, &self.arrow) {
            (Type::Int(_), _) => Value::Int(whole),
            (Type::Decimal(..), _) => Value::Decimal(whole),
            (Type::Date, ArrowType::Date32) => Value::Date(i32::try_from(whole).ok()?),
            (Type::Time, ArrowType::Time32(unit) | ArrowType::Time64(unit)) => Value::Time(micros(unit)?),
            (Type::DateTime, ArrowType::Timestamp(unit, _)) => Value::DateTime(micros(unit)?),
            (Type::Timestamp, ArrowType::Timestamp(unit, _)) => Value::Timestamp(micros(unit)?),
            _ => return None,
        })
    }

    fn unsigned(&self) -> bool {
        matches!(&self.from, Type::Int(int) if !int.signed())
    }
}

/// A whole number with a sign, its highest byte first.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first().filter(|_| bytes.len() <= 16)?;
    let sign = if first & 0x80 != 0 { -1 } else { 0 };
    Some(bytes.iter().fold(sign, |whole: i128, byte| whole << 8 | i128::from(*byte)))
}
