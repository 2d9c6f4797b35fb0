//! How a file's columns are written down, chosen by its first rows: whether a column has a dictionary, and whether it is compressed.
//!
//! The library looks every value up in a table for as long as the dictionary isn't too large. For whole numbers, dates and the like the
//! differences packed into bits are often as small without that; texts that are mostly different gain nothing from it at all. And what the
//! compression makes hardly smaller is better not compressed: readers are spared it, too. So the first rows are written down both ways, and
//! the sizes decide. They are the same for the same rows, whoever encodes them.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType as ArrowType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

/// Rows by which it is chosen. A file with fewer is written down as it comes.
pub(super) const SAMPLE: usize = 4096;
/// A column of whose sample more than this part is distinct has no dictionary.
const DISTINCT: f64 = 0.75;
/// What is compressed to more than this part isn't compressed.
const WORTH: f64 = 0.92;

/// The properties for a file that begins with these rows.
///
/// # Errors
/// When they can't be encoded.
pub(super) fn choose(
    schema: &SchemaRef,
    given: &WriterProperties,
    columns: &[ArrayRef],
) -> Result<WriterProperties, ParquetError> {
    let rows = columns.first().map_or(0, |column| column.len());
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let sample = RecordBatch::try_new_with_options(schema.clone(), columns.to_vec(), &options)?;
    let with = sizes(&sample, given.clone())?;
    let without = sizes(&sample, WriterPropertiesBuilder::from(given.clone()).set_dictionary_enabled(false).build())?;
    let mut chosen = WriterPropertiesBuilder::from(given.clone());
    for (with, without) in with.iter().zip(&without) {
        let path = with.column_path();
        // A root column by itself: its values stand in the sample as they are.
        let flat = (path.parts().len() == 1).then(|| sample.column_by_name(&path.parts()[0])).flatten();
        let plain = flat.is_some_and(|column| {
            let texts = *column.data_type() == ArrowType::Utf8View;
            if !texts && !is_whole(column.data_type()) {
                return false;
            }
            // A quarter more and a bit a row is what the table's time is worth.
            let small = || data(without) as f64 <= data(with) as f64 * 1.25 + rows as f64 / 8.0;
            distinct(column) as f64 > rows as f64 * DISTINCT || (!texts && small())
        });
        let of = if plain { without } else { with };
        if plain {
            chosen = chosen.set_column_dictionary_enabled(path.clone(), false);
        }
        if of.compressed_size() as f64 > of.uncompressed_size() as f64 * WORTH {
            chosen = chosen.set_column_compression(path.clone(), Compression::UNCOMPRESSED);
        }
    }
    Ok(chosen.build())
}

/// What a sample takes, column by column.
fn sizes(sample: &RecordBatch, properties: WriterProperties) -> Result<Vec<ColumnChunkMetaData>, ParquetError> {
    let mut writer = ArrowWriter::try_new(std::io::sink(), sample.schema(), Some(properties))?;
    writer.write(sample)?;
    let written = writer.close()?;
    Ok(written.row_groups().first().map_or_else(Vec::new, |group| group.columns().to_vec()))
}

/// Bytes of a column without its dictionary, which is there once for many more rows.
fn data(column: &ColumnChunkMetaData) -> i64 {
    let dictionary = column.dictionary_page_offset().map_or(0, |start| column.data_page_offset() - start);
    column.compressed_size() - dictionary
}

/// Whole numbers, and what is stored as such.
fn is_whole(ty: &ArrowType) -> bool {
    ty.is_integer()
        || matches!(ty, ArrowType::Date32 | ArrowType::Time64(_) | ArrowType::Timestamp(..) | ArrowType::Decimal64(..))
}

/// How many values of a column of texts or whole numbers are different.
fn distinct(column: &ArrayRef) -> usize {
    if let Some(texts) = column.as_string_view_opt() {
        return texts.iter().flatten().collect::<HashSet<_>>().len();
    }
    let (data, width) = (column.to_data(), column.data_type().primitive_width().unwrap_or(1));
    let bytes = data.buffers().first().map_or(&[][..], |buffer| buffer.as_slice());
    let bytes = bytes.get(data.offset() * width..(data.offset() + data.len()) * width).unwrap_or_default();
    bytes.chunks(width).collect::<HashSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Date32Array, Int64Array, StringViewArray};
    use arrow_schema::{Field, Schema};
    use parquet::basic::{Encoding, ZstdLevel};
    use parquet::schema::types::ColumnPath;

    use super::*;

    #[test]
    fn the_first_rows_decide() {
        let mut pick = crate::testing::random(5);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values((0..SAMPLE as i64).map(|n| n * 3)))),
            ("key", Arc::new(Int64Array::from_iter_values((0..SAMPLE).map(|_| pick(1 << 40) as i64)))),
            ("few", Arc::new(Int64Array::from_iter_values((0..SAMPLE).map(|_| pick(20) as i64 * 1_000_003)))),
            ("day", Arc::new(Date32Array::from_iter_values((0..SAMPLE).map(|_| 9000 + pick(2500) as i32)))),
            ("word", Arc::new(StringViewArray::from_iter_values((0..SAMPLE).map(|_| format!("word {}", pick(9)))))),
            ("text", Arc::new(StringViewArray::from_iter_values((0..SAMPLE).map(|n| format!("the text of row {n}"))))),
        ];
        let fields: Vec<Field> =
            columns.iter().map(|(name, c)| Field::new(*name, c.data_type().clone(), false)).collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let columns: Vec<ArrayRef> = columns.into_iter().map(|(_, column)| column).collect();
        let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
        let mut given = WriterProperties::builder().set_compression(zstd);
        for name in ["id", "key", "few", "day"] {
            given = given.set_column_encoding(ColumnPath::from(name), Encoding::DELTA_BINARY_PACKED);
        }
        let chosen = choose(&schema, &given.build(), &columns).unwrap();
        let dictionary = |name| chosen.dictionary_enabled(&ColumnPath::from(name));
        assert_eq!(
            ["id", "key", "few", "day", "word", "text"].map(dictionary),
            [false, false, true, false, true, false]
        );
        let compressed = |name| chosen.compression(&ColumnPath::from(name)) == zstd;
        assert_eq!(["key", "text"].map(compressed), [false, true]);
    }
}
