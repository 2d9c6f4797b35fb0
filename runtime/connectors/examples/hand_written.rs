//! The yardstick of the CSV stage: TPC-H's Q1 and Q6 over `lineitem.csv` written by hand, for this file and these questions alone. Nothing is
//! checked that the file's maker is trusted for: not the form of numbers and dates, not their range, not the number of fields a row.
//!
//! `cargo run --release -p dfc-connect --example hand_written -- q1|q6 lineitem.csv [THREADS]`
//!
//! Each thread reads its share of the file in pieces into one buffer, finds the separators outside quotes 64 bytes at a time (AVX2, products
//! without carries for the parity of quotes), notes where fields end in a flat array, and of the rows that pass the filter parses the
//! fields that the question needs. Sums are 64 bits wide within a piece. What it prints are the lines that dfc writes.

use std::fs::File;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi8, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
};
#[cfg(unix)]
use std::os::unix::fs::FileExt;

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// Fields a row.
const WIDTH: usize = 16;
const QUANTITY: usize = 4;
const PRICE: usize = 5;
const DISCOUNT: usize = 6;
const TAX: usize = 7;
const FLAG: usize = 8;
const STATUS: usize = 9;
const SHIPPED: usize = 10;

/// What is gathered of a group: quantity, price, discounted price (scale 4), charge (scale 6), discount, and the rows.
#[derive(Clone, Copy, Default)]
struct Sums {
    quantity: i128,
    price: i128,
    discounted: i128,
    charge: i128,
    discount: i128,
    rows: i128,
}

/// The same of one piece.
#[derive(Clone, Copy, Default)]
struct Narrow {
    quantity: i64,
    price: i64,
    discounted: i64,
    charge: i64,
    discount: i64,
    rows: i64,
}

/// Groups by the lowest bits of their two letters.
type Groups<T> = [T; 1 << 10];

/// A field between two places, both letters of it known to be one.
fn group(flag: u8, status: u8) -> usize {
    usize::from(flag & 31) << 5 | usize::from(status & 31)
}

/// A decimal of scale 2 whose point may be missing and whose decimals may be fewer.
#[inline(always)]
fn decimal(text: &[u8]) -> i64 {
    let (mut n, mut decimals) = (0i64, 0);
    let mut behind = false;
    for &byte in text {
        if byte == b'.' {
            behind = true;
        } else {
            n = n * 10 + i64::from(byte & 15);
            decimals += u32::from(behind);
        }
    }
    n * [100, 10, 1][decimals as usize]
}

/// The rows of a piece: where its fields end, one after the other, and the text.
struct Rows<'a> {
    text: &'a [u8],
    ends: &'a [u32],
}

impl Rows<'_> {
    #[inline(always)]
    fn field(&self, row: usize, field: usize) -> &[u8] {
        let at = row * WIDTH + field;
        &self.text[self.ends[at - 1] as usize + 1..self.ends[at] as usize]
    }

    fn q1(&self, groups: &mut Groups<Sums>) {
        let mut narrow = [Narrow::default(); 1 << 10];
        for row in 0..self.ends.len() / WIDTH {
            if self.field(row, SHIPPED) > b"1998-09-02".as_slice() {
                continue;
            }
            let [quantity, price, discount, tax] =
                [QUANTITY, PRICE, DISCOUNT, TAX].map(|field| decimal(self.field(row, field)));
            let sums = &mut narrow[group(self.field(row, FLAG)[0], self.field(row, STATUS)[0])];
            let discounted = price * (100 - discount);
            sums.quantity += quantity;
            sums.price += price;
            sums.discounted += discounted;
            sums.charge += discounted * (100 + tax);
            sums.discount += discount;
            sums.rows += 1;
        }
        for (to, from) in groups.iter_mut().zip(narrow) {
            to.quantity += i128::from(from.quantity);
            to.price += i128::from(from.price);
            to.discounted += i128::from(from.discounted);
            to.charge += i128::from(from.charge);
            to.discount += i128::from(from.discount);
            to.rows += i128::from(from.rows);
        }
    }

    /// The revenue of scale 4.
    fn q6(&self) -> i64 {
        let mut sum = 0;
        for row in 0..self.ends.len() / WIDTH {
            let day = self.field(row, SHIPPED);
            if day < b"1994-01-01".as_slice() || day >= b"1995-01-01".as_slice() {
                continue;
            }
            let discount = decimal(self.field(row, DISCOUNT));
            if (5..=7).contains(&discount) && decimal(self.field(row, QUANTITY)) < 2400 {
                sum += decimal(self.field(row, PRICE)) * discount;
            }
        }
        sum
    }
}

/// Where fields end in a text that starts at a row, and how long its whole rows are.
///
/// # Safety
/// The processor has AVX2 and PCLMULQDQ.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt")]
unsafe fn find(text: &[u8], ends: &mut Vec<u32>) -> usize {
    let equal = |block: &[u8; 64], byte: u8| {
        let pattern = _mm256_set1_epi8(byte as i8);
        // SAFETY: both loads stay within the 64 bytes and may be unaligned.
        let (low, high) = unsafe {
            let at = block.as_ptr().cast::<__m256i>();
            (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)))
        };
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, pattern)) as u32;
        u64::from(low) | u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, pattern)) as u32) << 32
    };
    // At most a field a byte: there is always room for the writes below.
    ends.resize(text.len() + 64, 0);
    let (mut count, mut within, mut base, mut whole) = (0, 0u64, 0, (0, 0));
    let (blocks, rest) = text.as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    for block in blocks.iter().chain([&last]) {
        let quotes = equal(block, b'"');
        let product = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(quotes as i64), _mm_set1_epi8(-1));
        let inside = _mm_cvtsi128_si64(product) as u64 ^ within;
        within = (inside as i64 >> 63) as u64;
        let lines = equal(block, b'\n') & !inside;
        let mut bits = lines | equal(block, b',') & !inside;
        if lines != 0 {
            let end = 63 - lines.leading_zeros();
            whole = (base + end as usize + 1, count + (bits & (!0 >> (63 - end))).count_ones() as usize);
        }
        let (slots, found) = (&mut ends[count..count + 64], bits.count_ones() as usize);
        for slot in &mut slots[..12] {
            *slot = base as u32 + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        for slot in slots.iter_mut().take(found).skip(12) {
            *slot = base as u32 + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        count += found;
        base += 64;
    }
    ends.truncate(whole.1);
    whole.0
}

/// Hands the rows that begin in a part of the file to `take`.
#[cfg(all(unix, target_arch = "x86_64"))]
fn read(file: &File, part: Range<u64>, size: u64, mut take: impl FnMut(Rows)) {
    let (mut buffer, mut ends) = (vec![0; PIECE], Vec::new());
    // The first line is the header; elsewhere a row begins behind the first line feed.
    let (mut at, mut begun) = (part.start.saturating_sub(1), false);
    while at < part.end {
        let len = PIECE.min((size - at) as usize);
        file.read_exact_at(&mut buffer[..len], at).expect("the file is read");
        let mut text = &buffer[..len];
        if !begun {
            let feed = text.iter().position(|&byte| byte == b'\n').expect("a line ends in its first piece");
            (text, begun) = (&text[feed + 1..], true);
            at += feed as u64 + 1;
        }
        // SAFETY: the caller has looked for the features.
        let mut whole = unsafe { find(text, &mut ends) };
        assert!(whole > 0, "a row is longer than a piece, or the last has no line feed");
        if at + whole as u64 > part.end {
            // Rows that begin in the next part are the next thread's.
            while ends.len() > WIDTH && at + u64::from(ends[ends.len() - WIDTH - 1]) + 1 >= part.end {
                ends.truncate(ends.len() - WIDTH);
            }
            whole = ends[ends.len() - 1] as usize + 1;
        }
        take(Rows { text, ends: &ends });
        at += whole as u64;
    }
}

/// A sum of this scale as dfc writes it.
fn shown(n: i128, scale: u32) -> String {
    let unit = 10i128.pow(scale);
    format!("{}.{:0width$}", n / unit, n % unit, width = scale as usize)
}

#[cfg(all(unix, target_arch = "x86_64"))]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [question, path, rest @ ..] = args.as_slice() else { panic!("q1 or q6, and the path of lineitem.csv") };
    let threads = rest.first().map_or(2, |n| n.parse().expect("a number of threads"));
    assert!(std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("pclmulqdq"));
    let file = File::open(path).expect("the file is there");
    let size = file.metadata().expect("its size").len();
    let parts = (0..threads).map(|k| size * k / threads..size * (k + 1) / threads);
    let answers: Vec<(Box<Groups<Sums>>, i128)> = std::thread::scope(|scope| {
        let running = parts.map(|part| {
            scope.spawn(|| {
                let (mut groups, mut revenue) = (Box::new([Sums::default(); 1 << 10]), 0);
                match question.as_str() {
                    "q1" => read(&file, part, size, |rows| rows.q1(&mut groups)),
                    _ => read(&file, part, size, |rows| revenue += i128::from(rows.q6())),
                }
                (groups, revenue)
            })
        });
        let running: Vec<_> = running.collect();
        running.into_iter().map(|thread| thread.join().expect("a thread's answer")).collect()
    });
    if question == "q6" {
        println!("revenue\n{}", shown(answers.iter().map(|answer| answer.1).sum(), 4));
        return;
    }
    println!(
        "l_returnflag,l_linestatus,sum_qty,sum_base_price,sum_disc_price,sum_charge,avg_qty,avg_price,avg_disc,count_order"
    );
    for number in 0..1 << 10 {
        let mut all = Sums::default();
        for (groups, _) in &answers {
            let sums = &groups[number];
            all.quantity += sums.quantity;
            all.price += sums.price;
            all.discounted += sums.discounted;
            all.charge += sums.charge;
            all.discount += sums.discount;
            all.rows += sums.rows;
        }
        if all.rows == 0 {
            continue;
        }
        let letter = |bits: usize| char::from(64 | bits as u8);
        // Ten decimals more, half away from zero.
        let average = |sum: i128| shown((sum * 20_000_000_000 + all.rows) / (2 * all.rows), 12);
        println!(
            "{},{},{},{},{},{},{},{},{},{}",
            letter(number >> 5),
            letter(number & 31),
            shown(all.quantity, 2),
            shown(all.price, 2),
            shown(all.discounted, 4),
            shown(all.charge, 6),
            average(all.quantity),
            average(all.price),
            average(all.discount),
            all.rows
        );
    }
}

#[cfg(not(all(unix, target_arch = "x86_64")))]
fn main() {
    eprintln!("it was written for x86-64 and Unix");
}
