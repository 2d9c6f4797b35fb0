//! The states of all groups, in pages of many rows. A row's address stays good until its table is frozen, dropped or finished.
//!
//! Freezing shares the pages instead of copying them: a shared page is copied when it is first written to again (D11, D13).

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use dfc_trial::{Planted, planted};

/// Bytes of a page as it is stored, at most (those of one row where that has more).
const PAGE_BYTES: usize = 64 * 1024;

/// Rows of a page, by the bytes of a row as it is stored: a power of two, as every row that is read asks for its page.
pub(crate) fn page_rows(row_bytes: usize) -> usize {
    1 << (PAGE_BYTES / row_bytes).max(1).ilog2()
}

/// The memory of one page.
struct Page {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the page's bytes are owned by this value alone; shared references only read them.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    fn zeroed(layout: Layout) -> Page {
        // SAFETY: the layout's size isn't 0.
        let start = unsafe { alloc_zeroed(layout) };
        Page { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    fn copy(&self) -> Page {
        // SAFETY: the layout's size isn't 0.
        let start = unsafe { alloc(self.layout) };
        let copy =
            Page { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(self.layout)), layout: self.layout };
        // SAFETY: both pages have this layout; the new one isn't known to anyone else yet.
        unsafe { copy.start.as_ptr().copy_from_nonoverlapping(self.start.as_ptr(), self.layout.size()) }
        copy
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the page has so many bytes, all written when it was allocated; nobody writes to a shared page.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout, and given up nowhere else.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A page as it was when its table was frozen.
#[derive(Clone)]
pub struct FrozenPage {
    /// Its number.
    pub number: usize,
    page: Arc<Page>,
}

impl FrozenPage {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.page.bytes()
    }
}

/// Where a page starts, and whether somebody else may hold it since it was frozen: then it may not be written to. In one word, as it is
/// asked at every row.
#[derive(Clone, Copy)]
struct Start(*mut u8);

// SAFETY: the address is that of a page that the same table holds, used by whoever has the table.
unsafe impl Send for Start {}
// SAFETY: as above; through a shared table it is only read.
unsafe impl Sync for Start {}

impl Start {
    fn of(page: &Page) -> Start {
        Start(page.start.as_ptr())
    }

    /// Pages are aligned to 16 bytes, so this bit is free.
    fn shared(self) -> Start {
        Start(self.0.map_addr(|address| address | 1))
    }

    #[inline]
    fn is_shared(self) -> bool {
        self.0.addr() & 1 == 1
    }

    #[inline]
    fn address(self) -> *mut u8 {
        self.0.map_addr(|address| address & !1)
    }
}

/// Rows of one width, pages aligned to 16 bytes, zero when they are new; at most 2³².
pub(crate) struct Pages {
    pages: Vec<Arc<Page>>,
    /// Where each page starts.
    starts: Vec<Start>,
    /// Of one page.
    layout: Layout,
    /// The logarithm of a page's rows.
    page_bits: u32,
    row_bytes: usize,
    rows: usize,
}

impl Pages {
    /// No row yet. Neither is 0; `page_rows` is a power of two.
    pub fn new(row_bytes: usize, page_rows: usize) -> Self {
        assert!(page_rows.is_power_of_two());
        // Can't fail: a page has at most about PAGE_BYTES, or those of one row, 32 for each of the aggregates in memory.
        let layout = Layout::from_size_align(page_rows * row_bytes, 16).expect("a page fits the address space");
        Pages { pages: Vec::new(), starts: Vec::new(), layout, page_bits: page_rows.ilog2(), row_bytes, rows: 0 }
    }

    /// Appends a row of zeros.
    pub fn push(&mut self) -> *mut u8 {
        if self.rows == self.pages.len() << self.page_bits {
            let page = Page::zeroed(self.layout);
            self.starts.push(Start::of(&page));
            self.pages.push(Arc::new(page));
        }
        self.rows += 1;
        self.writable(self.rows - 1)
    }

    /// The page of a row, and its number there.
    #[inline]
    fn place(&self, row: usize) -> (usize, usize) {
        (row >> self.page_bits, row & ((1 << self.page_bits) - 1))
    }

    /// The address of row `row`; its `row_bytes` bytes may be read as long as nothing else writes them.
    ///
    /// Panics if there is no such row.
    #[inline]
    fn address(&self, row: usize) -> *mut u8 {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let (page, row) = self.place(row);
        // SAFETY: the row lies inside its page.
        unsafe { self.starts[page].address().add(row * self.row_bytes) }
    }

    /// The address of row `row`; its `row_bytes` bytes may be read and written as long as nothing else does.
    ///
    /// Panics if there is no such row.
    #[inline]
    pub fn writable(&mut self, row: usize) -> *mut u8 {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let (page, row) = self.place(row);
        if self.starts[page].is_shared() {
            self.unshare(page);
        }
        // SAFETY: the row lies inside its page.
        unsafe { self.starts[page].0.add(row * self.row_bytes) }
    }

    fn copy_of(&self, page: usize) -> Arc<Page> {
        Arc::new(self.pages[page].copy())
    }

    /// Makes a page this table's alone.
    #[cold]
    fn unshare(&mut self, page: usize) {
        // Once what was frozen is stored, nobody else holds the page any more.
        let alone = Arc::get_mut(&mut self.pages[page]).is_some();
        if !alone && !planted(Planted::PageNotCopied) {
            self.pages[page] = self.copy_of(page);
        }
        self.starts[page] = Start::of(&self.pages[page]);
    }

    /// Copies of all pages.
    pub fn copy(&self) -> Vec<FrozenPage> {
        (0..self.pages.len()).map(|number| FrozenPage { number, page: self.copy_of(number) }).collect()
    }

    /// The pages that were written to since the last freeze (`all`: every page), as they are now.
    pub fn freeze(&mut self, all: bool) -> Vec<FrozenPage> {
        let changed = |number: &usize| all || !self.starts[*number].is_shared();
        let frozen = (0..self.pages.len()).filter(changed);
        let frozen = frozen.map(|number| FrozenPage { number, page: self.pages[number].clone() }).collect();
        self.starts.iter_mut().for_each(|start| *start = start.shared());
        frozen
    }

    /// Which row has this address; `None`: none has.
    #[cold]
    pub fn row_of(&self, address: *const u8) -> Option<usize> {
        let distance = |page: &Arc<Page>| (address as usize).wrapping_sub(page.start.as_ptr() as usize);
        let page = self.pages.iter().position(|page| distance(page) < self.layout.size())?;
        Some((page << self.page_bits) + distance(&self.pages[page]) / self.row_bytes)
    }

    /// Number of pages.
    pub fn count(&self) -> usize {
        self.pages.len()
    }

    /// Rows of one page.
    pub fn page_rows(&self) -> usize {
        1 << self.page_bits
    }

    /// Puts a page's bytes in place; the rows in it must exist.
    ///
    /// Panics if there is no such page, or the length isn't that of a page.
    pub fn fill(&mut self, page: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.layout.size());
        if self.starts[page].is_shared() {
            self.unshare(page);
        }
        // SAFETY: a page has so many bytes; it isn't shared, and `self` is borrowed alone.
        unsafe { self.pages[page].start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// `N` bytes at `offset` of row `row`.
    pub fn read<const N: usize>(&self, row: usize, offset: usize) -> [u8; N] {
        assert!(offset + N <= self.row_bytes);
        // SAFETY: the bytes lie inside the row; nothing writes them while `self` is shared.
        unsafe { self.address(row).add(offset).cast::<[u8; N]>().read() }
    }

    /// Writes `bytes` at `offset` of row `row`.
    pub fn write(&mut self, row: usize, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.row_bytes);
        // SAFETY: the bytes lie inside the row, which nothing else reads while `self` is borrowed alone.
        unsafe { self.writable(row).add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// The bytes of row `row`, to be written.
    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        // SAFETY: the bytes are those of the row, which nothing else uses while `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.writable(row), self.row_bytes) }
    }

    /// Makes row `row` that of another table whose rows have the same width.
    ///
    /// Panics if there is no such row, or the widths differ.
    pub fn copy_row(&mut self, row: usize, other: &Pages, from: usize) {
        assert_eq!(self.row_bytes, other.row_bytes);
        // SAFETY: both addresses are those of rows of this width, in pages of different tables; nothing else uses the one that is
        // written while `self` is borrowed alone.
        unsafe { self.writable(row).copy_from_nonoverlapping(other.address(from), self.row_bytes) }
    }

    /// `N` bytes at `offset` of so many rows from `first` on.
    ///
    /// Panics if there are no such rows.
    pub fn column<const N: usize>(&self, first: usize, rows: usize, offset: usize) -> impl Iterator<Item = [u8; N]> {
        assert!(offset + N <= self.row_bytes && first + rows <= self.rows);
        // SAFETY: the bytes lie inside a row of the page; nothing writes them while `self` is shared.
        (first..first + rows).map(move |row| unsafe {
            let (page, row) = self.place(row);
            self.starts[page].address().add(row * self.row_bytes + offset).cast::<[u8; N]>().read()
        })
    }

    /// Bytes of all pages.
    pub fn memory_bytes(&self) -> usize {
        self.pages.len() * self.layout.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a freeze costs, counted: no page is copied at it, only the pages that changed are handed over, and of those only the ones that are
    /// written to again while somebody still holds them are copied.
    #[test]
    fn a_freeze_copies_nothing_and_gives_what_changed() {
        let mut pages = Pages::new(64, page_rows(64));
        let rows = 100 * pages.page_rows();
        (0..rows).for_each(|_| {
            pages.push();
        });
        let places =
            |pages: &Pages| -> Vec<*const u8> { pages.pages.iter().map(|page| page.bytes().as_ptr()).collect() };
        let before = places(&pages);
        let whole = pages.freeze(true);
        assert_eq!(places(&pages), before, "the task's own pages stay where they are");
        let shared: Vec<_> = whole.iter().map(|page| page.bytes().as_ptr()).collect();
        assert_eq!(shared, before, "and are the ones that were handed over");
        // A twentieth of them changes, each many times.
        let touch = |pages: &mut Pages| {
            let of_page = pages.page_rows();
            for row in (0..rows).filter(|row| row / of_page % 20 == 7) {
                pages.write(row, 0, &[1; 8]);
            }
        };
        touch(&mut pages);
        let copied = places(&pages).iter().zip(&before).filter(|(now, before)| now != before).count();
        assert_eq!(copied, 5);
        let changed: Vec<usize> = pages.freeze(false).iter().map(|page| page.number).collect();
        assert_eq!(changed, [7, 27, 47, 67, 87]);
        assert!(pages.freeze(false).is_empty(), "nothing has changed since");
        // Once what was frozen is stored, nothing is copied any more.
        drop(whole);
        let before = places(&pages);
        touch(&mut pages);
        assert_eq!(places(&pages), before);
    }
}
