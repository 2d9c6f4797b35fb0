//! Key columns of a batch as packed keys, row by row, without a [`dfc_ir::Value`] for each.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer};
use dfc_batch::value_at;
use dfc_ir::{DataType, Type};

use crate::fixed;
use crate::key::encode;

/// How one column's values are read.
enum Cells<'a> {
    /// Values whose bytes in the array are those of the key.
    Plain(Buffer, usize),
    Text(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
    /// Bools (packed to bits), floats (−0), nested values.
    Other(&'a dyn Array, DataType),
}

/// Key columns, none of whose types counts as nullable: a row with a null has no key.
pub(crate) struct KeyColumns<'a> {
    cells: Vec<Cells<'a>>,
    nulls: Option<NullBuffer>,
}

impl<'a> KeyColumns<'a> {
    /// Columns of these types.
    pub fn new(columns: &'a [ArrayRef], types: &[Type]) -> Self {
        let cells = columns.iter().zip(types).map(|(column, ty)| match (ty, fixed::width(ty)) {
            (Type::Bool | Type::Float32 | Type::Float64, _) => Cells::Other(column.as_ref(), DataType::of(ty.clone())),
            // A primitive array has one buffer, which begins with its first value.
            (_, Some(width)) => Cells::Plain(column.to_data().buffers()[0].clone(), width),
            (Type::String | Type::Json, _) => Cells::Text(column.as_string_view()),
            (Type::Bytes, _) => Cells::Bytes(column.as_binary_view()),
            _ => Cells::Other(column.as_ref(), DataType::of(ty.clone())),
        });
        let nulls = columns.iter().fold(None, |nulls, column| NullBuffer::union(nulls.as_ref(), column.nulls()));
        KeyColumns { cells: cells.collect(), nulls }
    }

    /// Whether a column of this row is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The bits of the one column, if it is one whose values are plain numbers of at most 64 bits.
    pub fn number(&self, row: usize) -> Option<u64> {
        let [Cells::Plain(values, width @ ..=8)] = &self.cells[..] else {
            return None;
        };
        let mut word = [0; 8];
        word[..*width].copy_from_slice(&values[row * width..(row + 1) * width]);
        Some(u64::from_le_bytes(word))
    }

    /// The same of so many rows from `first` on, whatever stands where one is null; false where they are none.
    pub fn numbers(&self, first: usize, out: &mut [u64]) -> bool {
        fn widened<const N: usize>(bytes: &[u8], out: &mut [u64]) {
            for (number, bytes) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
                let mut word = [0; 8];
                word[..N].copy_from_slice(bytes);
                *number = u64::from_le_bytes(word);
            }
        }
        let [Cells::Plain(values, width)] = &self.cells[..] else { return false };
        let bytes = &values[first * width..(first + out.len()) * width];
        match width {
            1 => widened::<1>(bytes, out),
            2 => widened::<2>(bytes, out),
            4 => widened::<4>(bytes, out),
            8 => widened::<8>(bytes, out),
            _ => return false,
        }
        true
    }

    /// Appends the key of a row that has no null.
    pub fn encode(&self, row: usize, out: &mut Vec<u8>) {
        fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        for cells in &self.cells {
            match cells {
                Cells::Plain(values, width) => out.extend_from_slice(&values[row * width..(row + 1) * width]),
                Cells::Text(texts) => counted(out, texts.value(row).as_bytes()),
                Cells::Bytes(bytes) => counted(out, bytes.value(row)),
                Cells::Other(column, ty) => encode(&value_at(*column, &ty.ty, row), ty, out),
            }
        }
    }
}
