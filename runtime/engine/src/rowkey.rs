//! Rows of key columns as bytes that compare, and are equal, as the values do.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, GenericListArray, StructArray, new_null_array};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType as ArrowType, SortOptions};
use dfc_batch::arrow_type;
use dfc_ir::DataType;
use foldhash::fast::FixedState;

use crate::RunError;

/// How one key column is ordered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyOrder {
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// Encodes key columns. Rows of different encoders of the same types and orders may be compared.
pub(crate) struct RowKeys {
    node: Arc<str>,
    converter: RowConverter,
}

impl RowKeys {
    pub(crate) fn new(node: Arc<str>, keys: &[(DataType, KeyOrder)]) -> Result<RowKeys, RunError> {
        let field = |(ty, order): &(DataType, KeyOrder)| {
            let options = SortOptions { descending: order.descending, nulls_first: order.nulls_first };
            SortField::new_with_options(arrow_type(&ty.ty), options)
        };
        let converter = RowConverter::new(keys.iter().map(field).collect()).map_err(|e| failed(&node, &e))?;
        Ok(RowKeys { node, converter })
    }

    /// The rows of these columns.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<Rows, RunError> {
        let columns: Vec<ArrayRef> = columns.iter().map(without_negative_zero).collect();
        self.converter.convert_columns(&columns).map_err(|e| failed(&self.node, &e))
    }
}

impl RowKeys {
    /// Bytes of every row of these types, where all have as many.
    pub(crate) fn width(&self, keys: &[(DataType, KeyOrder)]) -> Result<Option<usize>, RunError> {
        let types: Vec<ArrowType> = keys.iter().map(|(ty, _)| arrow_type(&ty.ty)).collect();
        if types.is_empty() || !types.iter().all(|ty| ty.is_primitive() || *ty == ArrowType::Boolean) {
            return Ok(None);
        }
        let nulls: Vec<ArrayRef> = types.iter().map(|ty| new_null_array(ty, 1)).collect();
        Ok(Some(self.encode(&nulls)?.row(0).data().len()))
    }

    /// The columns that these rows' bytes were made of, by an encoder of the same types and orders.
    pub(crate) fn decode(&self, rows: &[&[u8]]) -> Result<Vec<ArrayRef>, RunError> {
        let parser = self.converter.parser();
        self.converter.convert_rows(rows.iter().map(|row| parser.parse(row))).map_err(|e| failed(&self.node, &e))
    }
}

/// A hash of a row's bytes, the same in every task and run.
pub(crate) fn hash(row: &[u8]) -> u64 {
    FixedState::with_seed(0x64_66_63).hash_one(row)
}

fn failed(node: &Arc<str>, error: &ArrowError) -> RunError {
    RunError::Internal { node: node.to_string(), message: format!("its keys can't be compared: {error}") }
}

/// −0 equals 0 in the language but not in the bytes.
fn without_negative_zero(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        // Adding 0 turns −0 into 0 and leaves every other value as it is.
        ArrowType::Float32 => Arc::new(column.as_primitive::<Float32Type>().unary::<_, Float32Type>(|x| x + 0.0)),
        ArrowType::Float64 => Arc::new(column.as_primitive::<Float64Type>().unary::<_, Float64Type>(|x| x + 0.0)),
        ArrowType::List(field) => {
            let list = column.as_list::<i32>();
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            let values = without_negative_zero(list.values());
            Arc::new(GenericListArray::new(field.clone(), offsets, values, nulls))
        }
        ArrowType::Struct(fields) if !fields.is_empty() => {
            let record = column.as_struct();
            let columns = record.columns().iter().map(without_negative_zero).collect();
            Arc::new(StructArray::new(fields.clone(), columns, record.nulls().cloned()))
        }
        _ => column.clone(),
    }
}
