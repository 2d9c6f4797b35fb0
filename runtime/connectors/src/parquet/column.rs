//! Writes the columns that most files consist of: whole numbers and what is stored as such, and texts, neither nested nor in another
//! compression than Zstandard. It replaces the library's writer there on purpose: by profile that one, value by value, took as long as reading
//! the CSV file that the values come from. Here a page's values are gathered and written down at once, in the forms that `choice` has
//! chosen, with the same statistics and the same index of pages. All else is left to the library.

use std::cell::RefCell;
use std::io::Write;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding, EncodingMask, PageType, Type as Physical};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, LevelHistogram, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::encode;
use super::values::{Bound, Numbers, Rows, Texts, Values};

/// A column chunk that is being written.
pub(super) struct Column {
    descr: ColumnDescPtr,
    values: Values,
    /// Of the open page.
    rows: usize,
    nulls: usize,
    /// Where there may be nulls: 0 for each, and 1 for each value.
    levels: Vec<u32>,
    pages: Vec<CompressedPage>,
    dictionary: Option<CompressedPage>,
    /// Bytes of all of these.
    size: usize,
    index: ColumnIndexBuilder,
    offsets: OffsetIndexBuilder,
    order: Order,
    all: Totals,
    how: How,
    /// Room for a page.
    room: Vec<u8>,
}

/// What the writer's properties say of a column.
struct How {
    compression: Compression,
    rows: usize,
    bytes: usize,
    dictionary_bytes: usize,
    /// Bytes of a bound of a page, and of the column, at most.
    page_bound: usize,
    bound: usize,
}

/// What is known of all pages.
#[derive(Default)]
struct Totals {
    rows: usize,
    nulls: usize,
    text_bytes: Option<i64>,
    bounds: Option<(Bound, Bound)>,
}

/// Whether the pages' bounds rise or fall.
struct Order {
    rises: bool,
    falls: bool,
    last: Option<(Bound, Bound)>,
}

/// A column chunk that is whole.
pub(super) struct Chunk {
    bytes: Bytes,
    close: ColumnCloseResult,
}

impl Chunk {
    /// Appends it to a row group.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) fn append<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        group.append_column(&self.bytes, self.close)
    }
}

impl Column {
    /// For a column that can be written here.
    pub(super) fn new(descr: &ColumnDescPtr, arrow: &ArrowType, properties: &WriterProperties) -> Option<Column> {
        let path = descr.path();
        let flat = descr.max_rep_level() == 0 && descr.max_def_level() <= 1 && path.parts().len() == 1;
        let compression = properties.compression(path);
        let known = matches!(compression, Compression::ZSTD(_) | Compression::UNCOMPRESSED)
            && properties.statistics_enabled(path) == EnabledStatistics::Page
            && properties.bloom_filter_properties(path).is_none();
        let dictionary = properties.dictionary_enabled(path);
        let values = match (arrow, descr.physical_type()) {
            (ArrowType::Int32 | ArrowType::Date32 | ArrowType::Decimal64(..), Physical::INT32) => {
                Values::Narrow(Numbers::new(dictionary))
            }
            (
                ArrowType::Int64
                | ArrowType::Decimal64(..)
                | ArrowType::Time64(TimeUnit::Microsecond)
                | ArrowType::Timestamp(TimeUnit::Microsecond, _),
                Physical::INT64,
            ) => Values::Wide(Numbers::new(dictionary)),
            (ArrowType::Utf8View, Physical::BYTE_ARRAY) => Values::Texts(Texts::new(dictionary)),
            _ => return None,
        };
        if !flat || !known {
            return None;
        }
        let how = How {
            compression,
            rows: properties.column_data_page_row_count_limit(path).max(1),
            bytes: properties.column_data_page_size_limit(path),
            dictionary_bytes: properties.column_dictionary_page_size_limit(path),
            page_bound: properties.column_index_truncate_length().unwrap_or(usize::MAX),
            bound: properties.statistics_truncate_length().unwrap_or(usize::MAX),
        };
        Some(Column {
            descr: descr.clone(),
            values,
            rows: 0,
            nulls: 0,
            levels: Vec::new(),
            pages: Vec::new(),
            dictionary: None,
            size: 0,
            index: ColumnIndexBuilder::new(descr.physical_type()),
            offsets: OffsetIndexBuilder::new(),
            order: Order { rises: true, falls: true, last: None },
            all: Totals::default(),
            how,
            room: Vec::new(),
        })
    }

    fn is_nullable(&self) -> bool {
        self.descr.max_def_level() > 0
    }

    /// Appends values.
    ///
    /// # Errors
    /// When a page can't be compressed.
    pub(super) fn write(&mut self, array: &ArrayRef) -> Result<(), ParquetError> {
        let nulls = array.nulls();
        let mut from = 0;
        while from < array.len() {
            let most = (array.len() - from).min(self.how.rows - self.rows);
            let some = self.values.within(array, from..from + most, self.how.bytes);
            let rows = from..from + some;
            if self.is_nullable() {
                let level = |row: usize| u32::from(nulls.is_none_or(|nulls| nulls.is_valid(row)));
                self.levels.extend(rows.clone().map(level));
            }
            let there = Rows::there(rows, nulls);
            if let Rows::Some(there) = &there {
                self.nulls += some - there.len();
            }
            self.values.push(array, &there);
            self.rows += some;
            from += some;
            let dictionary = self.values.dictionary_bytes().unwrap_or(0);
            if self.rows >= self.how.rows || self.values.bytes() + self.levels.len() / 8 >= self.how.bytes {
                self.end_page()?;
            } else if dictionary >= 2 * self.how.dictionary_bytes {
                // Long texts fill it within a page.
                self.end_page()?;
            }
        }
        Ok(())
    }

    /// Bytes so far, about.
    pub(super) fn bytes(&self) -> usize {
        self.size + self.values.bytes() + self.values.dictionary_bytes().unwrap_or(0)
    }

    fn end_page(&mut self) -> Result<(), ParquetError> {
        let mut page = std::mem::take(&mut self.room);
        page.clear();
        if self.is_nullable() {
            page.extend_from_slice(&[0; 4]);
            encode::runs(&self.levels, 1, &mut page);
            let levels = (page.len() - 4) as u32;
            page[..4].copy_from_slice(&levels.to_le_bytes());
            self.levels.clear();
        }
        let written = self.values.write(&mut page);
        self.note(&written.bounds, written.text_bytes);
        let data = Page::DataPage {
            buf: compressed(self.how.compression, &page)?,
            num_values: self.rows as u32,
            encoding: written.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.put(data, page.len());
        self.room = page;
        (self.rows, self.nulls) = (0, 0);
        if self.values.dictionary_bytes().is_some_and(|bytes| bytes >= self.how.dictionary_bytes) {
            self.end_dictionary()?;
        }
        Ok(())
    }

    fn put(&mut self, page: Page, length: usize) {
        self.size += page.buffer().len();
        self.pages.push(CompressedPage::new(page, length));
    }

    /// What comes later does without it.
    fn end_dictionary(&mut self) -> Result<(), ParquetError> {
        if let Some((plain, values)) = self.values.take_dictionary() {
            let page = Page::DictionaryPage {
                buf: compressed(self.how.compression, &plain)?,
                num_values: values as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            self.size += page.buffer().len();
            self.dictionary = Some(CompressedPage::new(page, plain.len()));
        }
        Ok(())
    }

    /// Notes what is known of the page.
    fn note(&mut self, bounds: &Option<(Bound, Bound)>, text_bytes: Option<i64>) {
        let nulls = self.nulls as i64;
        match bounds {
            None => self.index.append(true, Vec::new(), Vec::new(), nulls, None),
            Some((least, most)) => {
                let low = least.low(self.how.page_bound).0;
                let high = most.high(self.how.page_bound).0;
                self.index.append(false, low, high, nulls, None);
                self.order.meet(least, most);
                self.all.bounds = Some(match self.all.bounds.take() {
                    Some((low, high)) => {
                        (if *least < low { least.clone() } else { low }, if *most > high { most.clone() } else { high })
                    }
                    None => (least.clone(), most.clone()),
                });
            }
        }
        self.index.append_histograms(&None, &self.histogram(self.rows, self.nulls));
        self.offsets.append_row_count(self.rows as i64);
        self.offsets.append_unencoded_byte_array_data_bytes(text_bytes);
        self.all.rows += self.rows;
        self.all.nulls += self.nulls;
        if let Some(bytes) = text_bytes {
            *self.all.text_bytes.get_or_insert(0) += bytes;
        }
    }

    /// How many nulls and how many values there are, where there may be nulls.
    fn histogram(&self, rows: usize, nulls: usize) -> Option<LevelHistogram> {
        self.is_nullable().then(|| LevelHistogram::from(vec![nulls as i64, (rows - nulls) as i64]))
    }

    /// Ends the chunk.
    ///
    /// # Errors
    /// When what is left can't be compressed.
    pub(super) fn close(mut self) -> Result<Chunk, ParquetError> {
        if self.rows > 0 {
            self.end_page()?;
        }
        self.end_dictionary()?;
        let mut out = TrackedWrite::new(Vec::with_capacity(self.size + 64 * (self.pages.len() + 1)));
        let mut pages = SerializedPageWriter::new(&mut out);
        let (mut plain_size, mut encodings, mut counts) = (0, vec![Encoding::RLE], Vec::<PageEncodingStats>::new());
        let mut dictionary_offset = None;
        if let Some(page) = self.dictionary.take() {
            let spec = pages.write_page(page)?;
            (dictionary_offset, plain_size) = (Some(spec.offset as i64), spec.uncompressed_size as i64);
            encodings.push(Encoding::PLAIN);
            counts.push(PageEncodingStats {
                page_type: PageType::DICTIONARY_PAGE,
                encoding: Encoding::PLAIN,
                count: 1,
            });
        }
        let mut data_offset = None;
        for page in self.pages.drain(..) {
            let encoding = page.encoding();
            let spec = pages.write_page(page)?;
            plain_size += spec.uncompressed_size as i64;
            self.offsets.append_offset_and_size(spec.offset as i64, spec.compressed_size as i32);
            data_offset.get_or_insert(spec.offset as i64);
            match counts.last_mut().filter(|last| (last.page_type, last.encoding) == (PageType::DATA_PAGE, encoding)) {
                Some(last) => last.count += 1,
                None => {
                    encodings.push(encoding);
                    counts.push(PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: 1 });
                }
            }
        }
        pages.close()?;
        out.flush()?;
        let bytes = out.into_inner()?;
        let metadata = ColumnChunkMetaData::builder(self.descr.clone())
            .set_compression(self.how.compression)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_page_encoding_stats(counts)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(plain_size)
            .set_num_values(self.all.rows as i64)
            .set_data_page_offset(data_offset.unwrap_or(0))
            .set_dictionary_page_offset(dictionary_offset)
            .set_statistics(self.statistics())
            .set_unencoded_byte_array_data_bytes(self.all.text_bytes)
            .set_definition_level_histogram(self.histogram(self.all.rows, self.all.nulls))
            .build()?;
        self.index.set_boundary_order(self.order.known());
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.all.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: Some(self.index.build()?),
            offset_index: Some(self.offsets.build()),
        };
        Ok(Chunk { bytes: bytes.into(), close })
    }

    fn statistics(&self) -> Statistics {
        let nulls = Some(self.all.nulls as u64);
        let (low, high) = self.all.bounds.clone().unzip();
        match self.values {
            Values::Narrow(_) => {
                let of = |bound: Option<Bound>| {
                    bound.and_then(|bound| if let Bound::Narrow(n) = bound { Some(n) } else { None })
                };
                ValueStatistics::new(of(low), of(high), None, nulls, false)
                    .with_backwards_compatible_min_max(true)
                    .into()
            }
            Values::Wide(_) => {
                let of = |bound: Option<Bound>| {
                    bound.and_then(|bound| if let Bound::Wide(n) = bound { Some(n) } else { None })
                };
                ValueStatistics::new(of(low), of(high), None, nulls, false)
                    .with_backwards_compatible_min_max(true)
                    .into()
            }
            Values::Texts(_) => {
                let low = low.map(|low| low.low(self.how.bound));
                let high = high.map(|high| high.high(self.how.bound));
                let exact = |bound: &Option<(Vec<u8>, bool)>| bound.as_ref().is_none_or(|bound| bound.1);
                let (low_is_exact, high_is_exact) = (exact(&low), exact(&high));
                let text = |bound: (Vec<u8>, bool)| ByteArray::from(bound.0);
                ValueStatistics::new(low.map(text), high.map(text), None, nulls, false)
                    .with_min_is_exact(low_is_exact)
                    .with_max_is_exact(high_is_exact)
                    .into()
            }
        }
    }
}

impl Order {
    fn meet(&mut self, least: &Bound, most: &Bound) {
        if let Some((low, high)) = &self.last {
            self.rises &= low <= least && high <= most;
            self.falls &= low >= least && high >= most;
        }
        self.last = Some((least.clone(), most.clone()));
    }

    fn known(&self) -> BoundaryOrder {
        match (self.rises, self.falls) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        }
    }
}

impl Bound {
    /// What is no greater, of at most so many bytes if it is a text; and whether it is the bound itself.
    fn low(&self, most: usize) -> (Vec<u8>, bool) {
        match self {
            Bound::Narrow(n) => (n.to_le_bytes().to_vec(), true),
            Bound::Wide(n) => (n.to_le_bytes().to_vec(), true),
            Bound::Text(text) => match cut(text, most) {
                Some(start) => (start.as_bytes().to_vec(), false),
                None => (text.clone(), true),
            },
        }
    }

    /// The same of what is no smaller.
    fn high(&self, most: usize) -> (Vec<u8>, bool) {
        let Bound::Text(text) = self else { return self.low(most) };
        let beyond = cut(text, most).and_then(|start| {
            // The last character that has a next one of the same length is replaced by that.
            start.char_indices().rev().find_map(|(at, c)| {
                let next = char::from_u32(c as u32 + 1).filter(|next| next.len_utf8() == c.len_utf8())?;
                Some(format!("{}{next}", &start[..at]))
            })
        });
        beyond.map_or_else(|| (text.clone(), true), |beyond| (beyond.into_bytes(), false))
    }
}

/// The start of a text that is longer, by whole characters.
fn cut(text: &[u8], most: usize) -> Option<&str> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() > most)?;
    let end = text.floor_char_boundary(most);
    (end > 0).then(|| &text[..end])
}

/// What compresses pages: a thread's own, whichever column it works on, so that its tables stay in the cache.
struct Zstd {
    level: i32,
    compressor: zstd::bulk::Compressor<'static>,
    room: Vec<u8>,
}

/// A page's bytes as they go to the file.
fn compressed(how: Compression, page: &[u8]) -> Result<Bytes, ParquetError> {
    thread_local! {
        static ZSTD: RefCell<Option<Zstd>> = const { RefCell::new(None) };
    }
    let Compression::ZSTD(level) = how else { return Ok(Bytes::copy_from_slice(page)) };
    let level = level.compression_level();
    ZSTD.with_borrow_mut(|kept| {
        let Zstd { compressor, room, .. } = match kept {
            Some(zstd) if zstd.level == level => zstd,
            _ => kept.insert(Zstd { level, compressor: zstd::bulk::Compressor::new(level)?, room: Vec::new() }),
        };
        room.clear();
        room.reserve(zstd::zstd_safe::compress_bound(page.len()));
        compressor.compress_to_buffer(page, room)?;
        Ok(Bytes::copy_from_slice(room))
    })
}
