//! Partners found by a number: Q3, and orders with facts about their customers.

use std::path::Path;

use super::lineitem::{DISCOUNT, ORDER, PRICE, SHIPPED, WIDTH};
use super::lines::Lines;
use super::scan::{Rows, decimal, gather, number};

/// Fields a row of `customer.csv`, and those that are read.
const CUSTOMER_WIDTH: usize = 8;
const CUSTOMER: usize = 0;
const NAME: usize = 1;
const NATION: usize = 3;
const SEGMENT: usize = 6;

/// The same of `orders.csv`.
const ORDER_WIDTH: usize = 9;
const ORDER_CUSTOMER: usize = 1;
const ORDER_STATUS: usize = 2;
const TOTAL: usize = 3;
const ORDER_DAY: usize = 4;
const PRIORITY: usize = 5;
const SHIP_PRIORITY: usize = 7;

/// From a key to its number, by open addressing.
struct Index {
    /// A key, and its number plus 1; 0 in a free slot.
    slots: Vec<(i64, u32)>,
}

impl Index {
    /// Of keys of which none comes twice.
    fn new(keys: impl ExactSizeIterator<Item = i64>) -> Index {
        let mut index = Index { slots: vec![(0, 0); (keys.len() * 2).next_power_of_two().max(2)] };
        for (key, number) in keys.zip(1..) {
            let at = index.place(key);
            index.slots[at] = (key, number);
        }
        index
    }

    /// Where a key is, or would be.
    #[inline(always)]
    fn place(&self, key: i64) -> usize {
        let (mask, shift) = (self.slots.len() - 1, 64 - self.slots.len().trailing_zeros());
        let mut at = ((key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize;
        while self.slots[at].1 != 0 && self.slots[at].0 != key {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline(always)]
    fn find(&self, key: i64) -> Option<usize> {
        (self.slots[self.place(key)].1 as usize).checked_sub(1)
    }
}

/// An order that was open.
struct Open {
    order: i64,
    day: [u8; 10],
    priority: i64,
}

/// The ten unshipped orders with the highest value.
pub(crate) fn q3(folder: &Path, threads: u64) {
    let building = gather(&folder.join("customer.csv"), threads, Vec::new, |keys, rows: Rows<CUSTOMER_WIDTH>| {
        let chosen = (0..rows.len()).filter(|&row| rows.field(row, SEGMENT) == b"BUILDING");
        keys.extend(chosen.map(|row| number(rows.field(row, CUSTOMER))));
    });
    let building = Index::new(building.concat().into_iter());
    let open = gather(&folder.join("orders.csv"), threads, Vec::new, |open, rows: Rows<ORDER_WIDTH>| {
        for row in 0..rows.len() {
            let day = rows.field(row, ORDER_DAY);
            if day < b"1995-03-15".as_slice() && building.find(number(rows.field(row, ORDER_CUSTOMER))).is_some() {
                let (order, priority) = (number(rows.field(row, 0)), number(rows.field(row, SHIP_PRIORITY)));
                open.push(Open { order, day: day.try_into().expect("a day has ten bytes"), priority });
            }
        }
    });
    let open: Vec<Open> = open.into_iter().flatten().collect();
    let index = Index::new(open.iter().map(|open| open.order));
    // The revenue of each order, of scale 4, and a number of rows that isn't 0 where there was one.
    let new = || vec![(0, 0); open.len()];
    let revenue = gather(&folder.join("lineitem.csv"), threads, new, |revenue, rows: Rows<WIDTH>| {
        let mut last = (0, None);
        for row in 0..rows.len() {
            if rows.field(row, SHIPPED) <= b"1995-03-15".as_slice() {
                continue;
            }
            let order = number(rows.field(row, ORDER));
            if order != last.0 {
                last = (order, index.find(order));
            }
            if let Some(found) = last.1 {
                let (price, discount) = (decimal(rows.field(row, PRICE)), decimal(rows.field(row, DISCOUNT)));
                revenue[found].0 += price * (100 - discount);
                revenue[found].1 += 1;
            }
        }
    });
    let sum =
        |number: usize| revenue.iter().map(|of| of[number]).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    let sums = open.iter().enumerate().map(|(number, open)| (sum(number), open));
    let mut sums: Vec<((i64, i64), &Open)> = sums.filter(|((_, rows), _)| *rows > 0).collect();
    sums.sort_by_key(|((revenue, _), open)| (-revenue, open.day));
    println!("l_orderkey,revenue,o_orderdate,o_shippriority");
    for ((revenue, _), Open { order, day, priority }) in sums.iter().take(10) {
        let day = String::from_utf8_lossy(day);
        println!("{order},{}.{:04},{day},{priority}", revenue / 10_000, revenue % 10_000);
    }
}

/// Customers, and what is told about each: a part of a text.
#[derive(Default)]
struct Customers {
    keys: Vec<i64>,
    ends: Vec<usize>,
    told: Vec<u8>,
}

impl Customers {
    fn add(&mut self, rows: &Rows<CUSTOMER_WIDTH>) {
        for row in 0..rows.len() {
            self.keys.push(number(rows.field(row, CUSTOMER)));
            for field in [NAME, SEGMENT, NATION] {
                self.told.push(b',');
                self.told.extend_from_slice(rows.field(row, field));
            }
            self.ends.push(self.told.len());
        }
    }

    fn append(&mut self, other: &Customers) {
        let before = self.told.len();
        self.keys.extend_from_slice(&other.keys);
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.told.extend_from_slice(&other.told);
    }
}

/// Orders that aren't pending, with their customer's name, segment and nation.
pub(crate) fn lookup(folder: &Path, threads: u64) {
    let gathered = gather(&folder.join("customer.csv"), threads, Customers::default, |customers, rows| {
        customers.add(&rows);
    });
    let mut customers = Customers::default();
    gathered.iter().for_each(|of_thread| customers.append(of_thread));
    let index = Index::new(customers.keys.iter().copied());
    println!("o_orderkey,o_orderdate,o_totalprice,o_orderpriority,c_name,c_mktsegment,c_nationkey");
    let rest = gather(&folder.join("orders.csv"), threads, Lines::new, |lines, rows: Rows<ORDER_WIDTH>| {
        for row in 0..rows.len() {
            if rows.field(row, ORDER_STATUS) == b"P" {
                continue;
            }
            lines.text(rows.field(row, 0));
            lines.text(b",");
            lines.text(rows.field(row, ORDER_DAY));
            lines.text(b",");
            lines.decimal(decimal(rows.field(row, TOTAL)));
            lines.text(b",");
            lines.text(rows.field(row, PRIORITY));
            match index.find(number(rows.field(row, ORDER_CUSTOMER))) {
                Some(found) => {
                    let start = found.checked_sub(1).map_or(0, |before| customers.ends[before]);
                    lines.text(&customers.told[start..customers.ends[found]]);
                }
                None => lines.text(b",,,"),
            }
            lines.end();
        }
    });
    rest.into_iter().for_each(|mut lines| lines.write());
}
