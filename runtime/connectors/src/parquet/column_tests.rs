//! Columns that are written here, beside those that the library writes of the same rows: what can be read is the same, and so is what the
//! file says of it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, Date32Array, Decimal64Array, Int32Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;

use super::lanes::Lanes;
use super::writer::Writer;

/// Rows of a page: the library counts them after so many.
const PAGE: usize = 1024;

struct Case {
    /// The column, in pieces as it comes.
    pieces: Vec<ArrayRef>,
    nullable: bool,
    dictionary: bool,
    dictionary_bytes: usize,
    compressed: bool,
}

impl Case {
    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("c", self.pieces[0].data_type().clone(), self.nullable)]))
    }

    fn properties(&self) -> WriterProperties {
        let (path, whole) = (ColumnPath::from("c"), self.pieces[0].as_string_view_opt().is_none());
        let encoding = if whole { Encoding::DELTA_BINARY_PACKED } else { Encoding::DELTA_LENGTH_BYTE_ARRAY };
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
        WriterProperties::builder()
            .set_compression(if self.compressed { zstd } else { Compression::UNCOMPRESSED })
            .set_dictionary_enabled(self.dictionary)
            .set_column_encoding(path, encoding)
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            .set_data_page_row_count_limit(PAGE)
            .set_max_row_group_row_count(Some(1 << 20))
            .build()
    }

    fn by_library(&self) -> Bytes {
        let mut writer = ArrowWriter::try_new(Vec::new(), self.schema(), Some(self.properties())).unwrap();
        for piece in &self.pieces {
            writer.write(&RecordBatch::try_new(self.schema(), vec![piece.clone()]).unwrap()).unwrap();
        }
        writer.into_inner().unwrap().into()
    }

    fn by_us(&self) -> Bytes {
        let lanes = Lanes::new("t", 1, 2);
        lanes.chosen.set(self.properties()).unwrap();
        let mut writer = Writer::new("t", Vec::new(), self.schema(), self.properties(), lanes, None).unwrap();
        for piece in &self.pieces {
            writer.write(std::slice::from_ref(piece), piece.len()).unwrap();
        }
        writer.close().unwrap().into()
    }

    /// Compares both; `pages`: those have the same rows.
    fn check(&self, pages: bool) -> (Arc<ParquetMetaData>, usize) {
        let (ours, theirs) = (self.by_us(), self.by_library());
        let rows = |file: &Bytes| {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
            let batches: Vec<RecordBatch> =
                reader.with_batch_size(1 << 20).build().unwrap().map(Result::unwrap).collect();
            batches
        };
        assert!(rows(&ours) == rows(&theirs), "other rows");
        let known = |file: &Bytes| {
            let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
            ArrowReaderMetadata::load(file, options).unwrap().metadata().clone()
        };
        let (of_ours, of_theirs) = (known(&ours), known(&theirs));
        if of_theirs.num_row_groups() == 0 {
            assert_eq!(of_ours.num_row_groups(), 0);
            return (of_ours, ours.len());
        }
        let (a, b) = (of_ours.row_group(0).column(0), of_theirs.row_group(0).column(0));
        assert_eq!(a.statistics(), b.statistics());
        assert_eq!((a.num_values(), a.compression()), (b.num_values(), b.compression()));
        assert_eq!(a.unencoded_byte_array_data_bytes(), b.unencoded_byte_array_data_bytes());
        assert_eq!(a.definition_level_histogram(), b.definition_level_histogram());
        if pages {
            assert_eq!(a.encodings().collect::<Vec<_>>(), b.encodings().collect::<Vec<_>>());
            assert_eq!(a.page_encoding_stats(), b.page_encoding_stats());
            let index = |file: &ParquetMetaData| file.page_index().unwrap().column_index(0, 0).cloned();
            assert_eq!(index(&of_ours), index(&of_theirs));
            let first = |file: &ParquetMetaData| -> Vec<i64> {
                let pages = file.page_index().unwrap().page_locations(0, 0).unwrap();
                pages.iter().map(|page| page.first_row_index).collect()
            };
            assert_eq!(first(&of_ours), first(&of_theirs));
        }
        // Runs end at groups of eight here; beside that they are as long.
        assert!(
            ours.len() <= theirs.len() + theirs.len() / 50 + 200,
            "{} bytes, {} by the library",
            ours.len(),
            theirs.len()
        );
        (of_ours, ours.len())
    }
}

/// Cuts a column where the library begins to count anew, now and then.
fn pieces(column: ArrayRef, lens: &[usize]) -> Vec<ArrayRef> {
    let (mut from, mut pieces) = (0, Vec::new());
    for len in lens.iter().map(|len| len * PAGE) {
        let len = len.min(column.len() - from);
        pieces.push(column.slice(from, len));
        from += len;
    }
    pieces.push(column.slice(from, column.len() - from));
    pieces
}

fn text(n: u64, long: bool) -> String {
    match n % 7 {
        0 => String::new(),
        1 | 2 if long => format!("{}é{n}", "ü".repeat(28 + (n % 9) as usize)),
        3 => format!("number {n}, in words of more than thirty-two bytes"),
        4 => format!("word {}", n % 100),
        _ => format!("a text of {n}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn columns_are_those_of_the_library(
        kind in 0usize..6, rows in 0usize..5000, distinct in prop_oneof![Just(1u64), 2..40u64, 40..3000u64, Just(u64::MAX)],
        sorted in any::<bool>(), long in any::<bool>(), nulls in 0u64..4, lens in prop::collection::vec(1usize..3, 0..3),
        dictionary in any::<bool>(), compressed in any::<bool>(), seed in 0u64..1000,
    ) {
        let mut random = crate::testing::random(seed);
        let mut pick = |below: u64| match below {
            u64::MAX => (random(1 << 31) as u64) << 40 ^ (random(1 << 31) as u64) << 20 ^ random(1 << 31) as u64,
            below => random(below as usize) as u64,
        };
        let mut numbers: Vec<u64> = (0..rows).map(|_| match distinct {
            u64::MAX => pick(u64::MAX),
            distinct => pick(distinct).wrapping_mul(77_777),
        }).collect();
        if sorted {
            numbers.sort_unstable();
        }
        let all_null = pick(5) == 0;
        let values: Vec<Option<u64>> = numbers.into_iter().map(|n| {
            (nulls == 0 || (!all_null && pick(4) >= nulls)).then_some(n)
        }).collect();
        let narrow = || values.iter().map(|n| n.map(|n| n as i32));
        let wide = || values.iter().map(|n| n.map(|n| n as i64));
        let column: ArrayRef = match kind {
            0 => Arc::new(Int32Array::from_iter(narrow())),
            1 => Arc::new(Date32Array::from_iter(narrow().map(|n| n.map(|n| n % 30_000)))),
            2 => Arc::new(Int64Array::from_iter(wide())),
            3 => Arc::new(TimestampMicrosecondArray::from_iter(wide()).with_timezone("UTC")),
            4 => {
                let short = wide().map(|n| n.map(|n| n % 100_000_000));
                Arc::new(Decimal64Array::from_iter(short).with_precision_and_scale(if long { 9 } else { 15 }, 2).unwrap())
            }
            _ => Arc::new(StringViewArray::from_iter(values.iter().map(|n| n.map(|n| text(n / 77_777, long))))),
        };
        let case = Case {
            pieces: pieces(column, &lens), nullable: nulls > 0, dictionary, dictionary_bytes: 1 << 20, compressed,
        };
        case.check(true);
    }
}

#[test]
fn a_dictionary_that_is_too_large_ends() {
    let mut pick = crate::testing::random(9);
    let numbers: Vec<u64> = (0..20_000).map(|k| pick(if k < 5000 { 9 } else { 1 << 31 }) as u64).collect();
    let columns: [ArrayRef; 2] = [
        Arc::new(Int64Array::from_iter_values(numbers.iter().map(|n| *n as i64))),
        Arc::new(StringViewArray::from_iter_values(numbers.iter().map(|n| text(*n, true)))),
    ];
    for column in columns {
        let case =
            Case { pieces: vec![column], nullable: false, dictionary: true, dictionary_bytes: 4096, compressed: true };
        let (file, _) = case.check(false);
        let chunk = file.row_group(0).column(0);
        assert!(chunk.dictionary_page_offset().is_some());
        let encodings: Vec<Encoding> = chunk.encodings().collect();
        assert!(encodings.contains(&Encoding::RLE_DICTIONARY) && encodings.len() == 4, "{encodings:?}");
    }
}

/// A page of texts ends when it is long enough, however few they are; a dictionary of them does, too.
#[test]
fn long_texts_have_pages_of_their_own() {
    let texts = (0..40).map(|n| char::from(b'a' + n % 26).to_string().repeat(100_000));
    let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts.cycle().take(100)));
    for dictionary in [false, true] {
        let pieces = vec![column.clone()];
        let case = Case { pieces, nullable: true, dictionary, dictionary_bytes: 1 << 20, compressed: true };
        let (file, bytes) = case.check(false);
        assert!(bytes < 200_000, "{bytes}");
        let pages = file.page_index().unwrap().page_locations(0, 0).unwrap().len();
        assert!(pages > 3, "{pages} pages");
    }
}
