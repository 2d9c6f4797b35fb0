//! The states of all groups, in pages of many rows that never move: a row's address stays good as long as its table lives.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Bytes of a page, about.
const PAGE_BYTES: usize = 64 * 1024;

/// Rows of one width, aligned to 16 bytes, zero when they are new.
pub(crate) struct Pages {
    pages: Vec<NonNull<u8>>,
    /// Of one page.
    layout: Layout,
    page_rows: usize,
    row_bytes: usize,
    rows: usize,
}

// SAFETY: the pages are plain bytes that this value alone owns; shared references only read them.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// No row yet. `row_bytes` is a multiple of 16 and not 0.
    pub fn new(row_bytes: usize) -> Self {
        let page_rows = (PAGE_BYTES / row_bytes).max(1);
        // Can't fail: a page has about PAGE_BYTES, or those of one row, 32 for each of the aggregates in memory.
        let layout = Layout::from_size_align(page_rows * row_bytes, 16).expect("a page fits the address space");
        Pages { pages: Vec::new(), layout, page_rows, row_bytes, rows: 0 }
    }

    /// Appends a row of zeros.
    pub fn push(&mut self) -> *mut u8 {
        if self.rows == self.pages.len() * self.page_rows {
            // SAFETY: the layout's size isn't 0.
            let page = unsafe { alloc_zeroed(self.layout) };
            self.pages.push(NonNull::new(page).unwrap_or_else(|| handle_alloc_error(self.layout)));
        }
        self.rows += 1;
        self.address(self.rows - 1)
    }

    /// The address of row `row`; its `row_bytes` bytes may be read and written as long as nothing else does.
    ///
    /// Panics if there is no such row.
    pub fn address(&self, row: usize) -> *mut u8 {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let page = self.pages[row / self.page_rows];
        // SAFETY: the row lies inside its page.
        unsafe { page.as_ptr().add(row % self.page_rows * self.row_bytes) }
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
        unsafe { self.address(row).add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Bytes of all pages.
    pub fn memory_bytes(&self) -> usize {
        self.pages.len() * self.page_rows * self.row_bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in &self.pages {
            // SAFETY: allocated in `push` with this layout, and given up nowhere else.
            unsafe { dealloc(page.as_ptr(), self.layout) }
        }
    }
}
