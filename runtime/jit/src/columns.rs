//! Arrow arrays as compiled code reads and writes them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{Array, ArrayRef, make_array, new_empty_array};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_schema::DataType as ArrowType;
use dfc_batch::{Batch, arrow_type};
use dfc_ir::{DataType, Type};

use crate::context::{ColumnIn, ColumnOut, TextBlocks};
use crate::kind::Kind;

/// The columns of a batch, with what must live while they are read.
pub(crate) struct Inputs {
    pub(crate) columns: Vec<ColumnIn>,
    /// Tables of buffer addresses.
    _tables: Vec<Vec<*const u8>>,
    /// A bitmap of ones, for columns without nulls.
    _ones: Vec<u8>,
}

/// What an empty table of buffers holds: never read from, as no view is long.
static NOTHING: [u8; 16] = [0; 16];

impl Inputs {
    /// Finds the addresses of the columns `used`.
    pub(crate) fn new(batch: &Batch, types: &[DataType], used: &[usize]) -> Self {
        let unread = ColumnIn {
            values: NOTHING.as_ptr(),
            first_bit: 0,
            validity: NOTHING.as_ptr(),
            first_valid: 0,
            buffers: std::ptr::null(),
        };
        let mut columns = vec![unread; types.len()];
        let mut tables = Vec::new();
        let mut ones = Vec::new();
        for &index in used {
            let array = &batch.columns[index];
            let column = &mut columns[index];
            match array.nulls() {
                Some(nulls) => {
                    column.validity = nulls.validity().as_ptr();
                    column.first_valid = nulls.offset() as u64;
                }
                None if types[index].nullable => {
                    if ones.is_empty() {
                        ones = vec![0xff; batch.rows.div_ceil(8)];
                    }
                    column.validity = ones.as_ptr();
                }
                None => {}
            }
            match Kind::of(&types[index].ty) {
                Some(Kind::Bool) => {
                    let bits = array.as_boolean().values();
                    column.values = bits.values().as_ptr();
                    column.first_bit = bits.offset() as u64;
                }
                Some(Kind::Text) => {
                    let (views, buffers) = match types[index].ty {
                        Type::Bytes => views::<BinaryViewType>(array),
                        _ => views::<StringViewType>(array),
                    };
                    column.values = views;
                    let mut table: Vec<*const u8> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
                    table.push(NOTHING.as_ptr());
                    column.buffers = table.as_ptr();
                    tables.push(table);
                }
                Some(kind) => {
                    let data = array.to_data();
                    // SAFETY: the offset lies inside the buffer, by the array's invariants.
                    column.values = unsafe { data.buffers()[0].as_ptr().add(data.offset() * kind.width()) };
                }
                // Only its validity is read.
                None => {}
            }
        }
        Inputs { columns, _tables: tables, _ones: ones }
    }
}

fn views<T: ByteViewType>(array: &ArrayRef) -> (*const u8, Vec<Buffer>) {
    let array = array.as_byte_view::<T>();
    (array.views().as_ptr().cast(), array.data_buffers().to_vec())
}

/// Room for an output column.
pub(crate) struct Output {
    kind: Kind,
    nullable: bool,
    values: MutableBuffer,
    validity: Vec<u8>,
}

impl Output {
    /// Room for so many rows.
    pub(crate) fn new(kind: Kind, nullable: bool, rows: usize) -> Self {
        let values = MutableBuffer::with_capacity(kind.width() * rows);
        let validity = Vec::with_capacity(if nullable { rows } else { 0 });
        Output { kind, nullable, values, validity }
    }

    /// Where compiled code writes.
    pub(crate) fn column(&mut self) -> ColumnOut {
        ColumnOut { values: self.values.as_mut_ptr(), validity: self.validity.as_mut_ptr() }
    }

    /// The array of the first `rows` values.
    ///
    /// # Safety
    /// So many values, and validity bytes if it is nullable, must have been written; text views into `texts`, and UTF-8 where the type
    /// is text.
    pub(crate) unsafe fn finish(mut self, ty: &DataType, rows: usize, texts: TextBlocks) -> ArrayRef {
        // SAFETY: written, by the caller's promise.
        unsafe {
            self.values.set_len(self.kind.width() * rows);
            self.validity.set_len(if self.nullable { rows } else { 0 });
        }
        let nulls = self.nullable.then(|| NullBuffer::new(pack(&self.validity))).filter(|nulls| nulls.null_count() > 0);
        if self.kind == Kind::Bool {
            return Arc::new(arrow_array::BooleanArray::new(pack(self.values.as_slice()), nulls));
        }
        let arrow: ArrowType = arrow_type(&ty.ty);
        let mut buffers: Vec<Buffer> = vec![self.values.into()];
        buffers.extend(texts.finish().into_iter().map(Buffer::from_vec));
        let data = new_empty_array(&arrow).into_data().into_builder().len(rows).nulls(nulls).buffers(buffers);
        // SAFETY: the buffers were written by code compiled for this type.
        make_array(unsafe { data.build_unchecked() })
    }
}

/// Bytes that are 0 or 1 to bits.
pub(crate) fn pack(bytes: &[u8]) -> BooleanBuffer {
    // Gathers the lowest bits of eight bytes in the highest byte of the product.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut bits = Vec::with_capacity(bytes.len().div_ceil(8));
    let (eights, rest) = bytes.as_chunks::<8>();
    bits.extend(eights.iter().map(|eight| (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) as u8));
    if !rest.is_empty() {
        bits.push(rest.iter().enumerate().fold(0, |byte, (k, bit)| byte | (bit << k)));
    }
    BooleanBuffer::new(Buffer::from_vec(bits), 0, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_the_order() {
        for len in [0, 1, 7, 8, 9, 16, 61] {
            let bytes: Vec<u8> = (0..len).map(|k| u8::from(k % 3 == 0 || k % 7 == 1)).collect();
            let bits = pack(&bytes);
            assert_eq!(bits.len(), len);
            for (k, byte) in bytes.iter().enumerate() {
                assert_eq!(bits.value(k), *byte == 1, "{k} of {len}");
            }
        }
    }
}
