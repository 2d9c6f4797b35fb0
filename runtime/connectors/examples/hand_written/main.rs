//! The yardstick of whole jobs: questions over TPC-H's CSV files answered by a program that was written by hand, for these files and these
//! questions alone. Nothing is checked that the files' maker is trusted for: not the form of numbers and dates, not their range, not the
//! number of fields a row.
//!
//! `cargo run --release -p dfc-connect --example hand_written -- q1|q6|highcard|q3|lookup FOLDER [THREADS]`, or `sync FOLDER [THREADS [TARGET]]`
//!
//! Each thread reads its share of a file in pieces into one buffer, finds the separators outside quotes 64 bytes at a time (AVX2, products
//! without carries for the parity of quotes), notes where fields end in a flat array, and of the rows that pass the filter parses the
//! fields that the question needs. Sums are 64 bits wide, those of Q1 within a piece. What it prints are the lines that dfc writes, those of
//! `highcard` and `lookup` in another order.

#[cfg(all(unix, target_arch = "x86_64"))]
mod groups;
#[cfg(all(unix, target_arch = "x86_64"))]
mod joins;
#[cfg(all(unix, target_arch = "x86_64"))]
mod lines;
#[cfg(all(unix, target_arch = "x86_64"))]
mod scan;
#[cfg(all(unix, target_arch = "x86_64"))]
mod sums;
#[cfg(all(unix, target_arch = "x86_64"))]
mod sync;

/// The fields of `lineitem.csv`.
#[cfg(all(unix, target_arch = "x86_64"))]
mod lineitem {
    /// Fields a row.
    pub(crate) const WIDTH: usize = 16;
    pub(crate) const ORDER: usize = 0;
    pub(crate) const QUANTITY: usize = 4;
    pub(crate) const PRICE: usize = 5;
    pub(crate) const DISCOUNT: usize = 6;
    pub(crate) const TAX: usize = 7;
    pub(crate) const FLAG: usize = 8;
    pub(crate) const STATUS: usize = 9;
    pub(crate) const SHIPPED: usize = 10;
}

#[cfg(all(unix, target_arch = "x86_64"))]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [question, folder, rest @ ..] = args.as_slice() else { panic!("a question, and the folder of the tables") };
    let threads = rest.first().map_or(2, |n| n.parse().expect("a number of threads"));
    let folder = folder.as_ref();
    match question.as_str() {
        "q1" => sums::q1(folder, threads),
        "q6" => sums::q6(folder, threads),
        "highcard" => groups::highcard(folder, threads),
        "q3" => joins::q3(folder, threads),
        "lookup" => joins::lookup(folder, threads),
        "sync" => sync::sync(folder, rest.get(1).map_or("sync.csv", String::as_str).as_ref(), threads),
        other => panic!("{other}: q1, q6, highcard, q3, lookup or sync"),
    }
}

#[cfg(not(all(unix, target_arch = "x86_64")))]
fn main() {
    eprintln!("it was written for x86-64 and Unix");
}
