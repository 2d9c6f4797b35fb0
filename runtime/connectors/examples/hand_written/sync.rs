//! `sync` by hand: rows of `lineitem.csv` that pass a filter, nine columns of them as lines in the order of the file. What is already written
//! as it must be is copied; trusted are also quantities without decimals and comments without quotes in them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use crate::lineitem::{DISCOUNT, FLAG, ORDER, PRICE, QUANTITY, SHIPPED, WIDTH};
use crate::scan::{Rows, at_once, decimal, read};

const PART_KEY: usize = 1;
const LINE_NUMBER: usize = 3;
const MODE: usize = 14;
const COMMENT: usize = 15;

/// Bytes whose lines are written at once.
const PART: u64 = 4 << 20;
/// Bytes of the longest line.
const LINE: usize = 512;
const HEADER: &[u8] = b"l_orderkey,l_linenumber,l_partkey,l_quantity,revenue,shipmode,ship_year,l_shipdate,l_comment\n";

/// Lines under construction; there is always room for one more.
struct Lines {
    bytes: Vec<u8>,
    at: usize,
}

impl Lines {
    /// Appends a short text: 16 bytes at once, of which what follows takes the rest's place.
    #[inline(always)]
    fn put(&mut self, text: &[u8]) {
        let out = &mut self.bytes[self.at..];
        match text.len() {
            len @ 0..=16 => (0..len).for_each(|k| out[k] = text[k]),
            len => out[..len].copy_from_slice(text),
        }
        self.at += text.len();
    }

    /// A number of four decimals.
    #[inline(always)]
    fn put_decimal(&mut self, n: i64) {
        let mut digits = [b'0'; 20];
        let (mut rest, mut first) = (n, 20);
        while rest > 0 || first > 15 {
            first -= if first == 16 { 2 } else { 1 };
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        digits[15] = b'.';
        self.put(&digits[first..]);
    }

    fn row(&mut self, rows: &Rows<WIDTH>, row: usize) {
        let field = |n: usize| rows.field(row, n);
        let (day, comment) = (field(SHIPPED), field(COMMENT));
        self.put(field(ORDER));
        self.put(b",");
        self.put(field(LINE_NUMBER));
        self.put(b",");
        self.put(field(PART_KEY));
        self.put(b",");
        self.put(field(QUANTITY));
        self.put(b".00,");
        self.put_decimal(decimal(field(PRICE)) * (100 - decimal(field(DISCOUNT))));
        self.put(b",");
        let mode = self.at;
        self.put(field(MODE));
        self.bytes[mode..self.at].make_ascii_uppercase();
        self.put(b",");
        self.put(&day[..4]);
        self.put(b",");
        self.put(day);
        self.put(b",");
        let inner = comment.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(comment);
        self.put(if inner.contains(&b',') { comment } else { inner });
        self.put(b"\n");
    }
}

/// Writes them.
pub(crate) fn sync(folder: &Path, target: &Path, threads: u64) {
    assert!(std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("pclmulqdq"));
    let file = File::open(folder.join("lineitem.csv")).expect("the file is there");
    let size = file.metadata().expect("its size").len();
    let out = File::create(target).expect("the target can be made");
    out.write_all_at(HEADER, 0).expect("the header is written");
    let next = AtomicU64::new(0);
    // The part whose lines have their place next, and that place.
    let (turn, turned) = (Mutex::new((0, HEADER.len() as u64)), Condvar::new());
    at_once(threads, |_| {
        let mut lines = Lines { bytes: vec![0; PART as usize], at: 0 };
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part * PART >= size {
                break;
            }
            lines.at = 0;
            read::<WIDTH>(&file, part * PART..size.min((part + 1) * PART), size, |rows| {
                for row in 0..rows.len() {
                    if rows.field(row, SHIPPED) >= b"1995-01-01".as_slice() && rows.field(row, FLAG) != b"R" {
                        if lines.bytes.len() - lines.at < LINE {
                            lines.bytes.resize(2 * lines.bytes.len(), 0);
                        }
                        lines.row(&rows, row);
                    }
                }
            });
            let mut now = turn.lock().expect("no thread has panicked");
            while now.0 != part {
                now = turned.wait(now).expect("no thread has panicked");
            }
            let place = now.1;
            *now = (part + 1, place + lines.at as u64);
            drop(now);
            turned.notify_all();
            out.write_all_at(&lines.bytes[..lines.at], place).expect("the lines are written");
        }
    });
    out.sync_all().expect("the lines last");
}
