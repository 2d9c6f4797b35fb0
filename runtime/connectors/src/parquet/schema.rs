//! The fields of Parquet files, from the footer of the first.

use dfc_ir::{DataType, Schema};

use super::convert;
use super::source::footer;
use crate::ConnectError;
use crate::options::OptionReader;
use crate::schema::{field, sampled};

/// The names of the columns.
///
/// # Errors
/// What reading the footer gives.
pub(crate) fn find_names(options: &OptionReader) -> Result<Vec<String>, ConnectError> {
    let mut names = Vec::new();
    if let Some(file) = sampled(options.required("path")?)?.first() {
        names.extend(footer(file)?.schema().fields().iter().map(|field| field.name().clone()));
    }
    Ok(names)
}

/// The fields, each with the type that its column has of itself.
///
/// # Errors
/// What reading the footer gives; a column whose values can't be read.
pub(crate) fn find_fields(options: &OptionReader) -> Result<Schema, ConnectError> {
    let files = sampled(options.required("path")?)?;
    let Some(file) = files.first() else { return Ok(Schema::default()) };
    let footer = footer(file)?;
    let fields = footer.schema().fields().iter().enumerate().map(|(i, column)| {
        let ty = convert::natural(column.data_type()).ok_or_else(|| {
            ConnectError::new(
                "R0213",
                format!(
                    "the column `{}` of `{}` is of the type {}, which can't be read",
                    column.name(),
                    file.name,
                    column.data_type()
                ),
            )
            .help("declare the fields that are needed: `schema: record { id: int64, … }`")
        })?;
        Ok(field(i, column.name(), DataType { ty, nullable: column.is_nullable() }))
    });
    Ok(Schema { fields: fields.collect::<Result<_, _>>()? })
}
