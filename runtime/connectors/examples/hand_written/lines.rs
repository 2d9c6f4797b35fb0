//! Lines, made in a buffer and written many at a time.

use std::io::Write;

/// Bytes that are written at once, about.
const AT_ONCE: usize = 256 << 10;

/// The two digits of each number below 100.
static PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut n) = ([[0; 2]; 100], 0);
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Lines on their way to standard output.
pub(crate) struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    pub(crate) fn new() -> Lines {
        Lines { bytes: Vec::with_capacity(AT_ONCE + 1024) }
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
    }

    /// A number that isn't negative.
    pub(crate) fn number(&mut self, mut n: u64) {
        let (mut digits, mut at) = ([0; 20], 20);
        while n >= 100 {
            at -= 2;
            digits[at..at + 2].copy_from_slice(&PAIRS[(n % 100) as usize]);
            n /= 100;
        }
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[n as usize]);
        self.text(&digits[at + usize::from(n < 10)..]);
    }

    /// A decimal of scale 2 that isn't negative.
    pub(crate) fn decimal(&mut self, n: i64) {
        self.number(n as u64 / 100);
        self.text(b".");
        self.text(&PAIRS[n as usize % 100]);
    }

    /// Ends a line.
    pub(crate) fn end(&mut self) {
        self.text(b"\n");
        if self.bytes.len() > AT_ONCE {
            self.write();
        }
    }

    /// Writes what there is.
    pub(crate) fn write(&mut self) {
        // One at a time, and whole lines: a lock is held meanwhile.
        std::io::stdout().lock().write_all(&self.bytes).expect("lines are written");
        self.bytes.clear();
    }
}
