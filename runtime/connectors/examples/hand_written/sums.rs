//! Q1 and Q6: few groups, or none.

use std::path::Path;

use super::lineitem::{DISCOUNT, FLAG, PRICE, QUANTITY, SHIPPED, STATUS, TAX, WIDTH};
use super::scan::{Rows, decimal, gather};

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

/// Where a group stands that has these letters.
fn group(flag: u8, status: u8) -> usize {
    usize::from(flag & 31) << 5 | usize::from(status & 31)
}

fn add(rows: &Rows<WIDTH>, groups: &mut Groups<Sums>) {
    let mut narrow = [Narrow::default(); 1 << 10];
    for row in 0..rows.len() {
        if rows.field(row, SHIPPED) > b"1998-09-02".as_slice() {
            continue;
        }
        let [quantity, price, discount, tax] =
            [QUANTITY, PRICE, DISCOUNT, TAX].map(|field| decimal(rows.field(row, field)));
        let sums = &mut narrow[group(rows.field(row, FLAG)[0], rows.field(row, STATUS)[0])];
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
fn revenue(rows: &Rows<WIDTH>) -> i64 {
    let mut sum = 0;
    for row in 0..rows.len() {
        let day = rows.field(row, SHIPPED);
        if day < b"1994-01-01".as_slice() || day >= b"1995-01-01".as_slice() {
            continue;
        }
        let discount = decimal(rows.field(row, DISCOUNT));
        if (5..=7).contains(&discount) && decimal(rows.field(row, QUANTITY)) < 2400 {
            sum += decimal(rows.field(row, PRICE)) * discount;
        }
    }
    sum
}

/// A sum of this scale as dfc writes it.
fn shown(n: i128, scale: u32) -> String {
    let unit = 10i128.pow(scale);
    format!("{}.{:0width$}", n / unit, n % unit, width = scale as usize)
}

/// The answer to Q6.
pub(crate) fn q6(folder: &Path, threads: u64) {
    let path = folder.join("lineitem.csv");
    let sums = gather(&path, threads, || 0, |sum, rows| *sum += i128::from(revenue(&rows)));
    println!("revenue\n{}", shown(sums.into_iter().sum(), 4));
}

/// The answer to Q1.
pub(crate) fn q1(folder: &Path, threads: u64) {
    let path = folder.join("lineitem.csv");
    let new = || Box::new([Sums::default(); 1 << 10]);
    let answers = gather(&path, threads, new, |groups, rows| add(&rows, groups));
    println!(
        "l_returnflag,l_linestatus,sum_qty,sum_base_price,sum_disc_price,sum_charge,avg_qty,avg_price,avg_disc,count_order"
    );
    for number in 0..1 << 10 {
        let mut all = Sums::default();
        for groups in &answers {
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
