//! Many groups: one a customer order.

use std::path::Path;

use super::lineitem::{ORDER, PRICE, QUANTITY, WIDTH};
use super::lines::Lines;
use super::scan::{Rows, at_once, decimal, gather, number};

/// An order's sums so far.
#[derive(Clone, Copy, Default)]
struct Group {
    order: i64,
    quantity: i64,
    price: i64,
    rows: i64,
}

/// Groups one after the other, found by open addressing, at most half of the slots filled.
struct Groups {
    /// A group's number plus 1; 0 in a free slot.
    slots: Vec<u32>,
    held: Vec<Group>,
}

/// Spreads keys: slots go by the highest bits, parts by the highest of the lower half.
fn hash(order: i64) -> u64 {
    (order as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Groups {
    fn new() -> Groups {
        Groups { slots: vec![0; 1 << 12], held: Vec::new() }
    }

    /// Where the search for an order begins.
    fn start(&self, order: i64) -> usize {
        (hash(order) >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    /// Adds to a group.
    fn add(&mut self, more: &Group) {
        let mut at = self.start(more.order);
        while self.slots[at] != 0 {
            let group = &mut self.held[self.slots[at] as usize - 1];
            if group.order == more.order {
                group.quantity += more.quantity;
                group.price += more.price;
                group.rows += more.rows;
                return;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.held.push(*more);
        self.slots[at] = self.held.len() as u32;
        if self.held.len() * 2 > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for (group, number) in self.held.iter().zip(1..) {
            let mut at = self.start(group.order);
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = number;
        }
    }
}

/// Adds a piece's rows to the groups of their parts: those of one order that follow each other together.
fn add(parts: &mut [Groups], rows: &Rows<WIDTH>) {
    let mut last = Group::default();
    let count = parts.len() as u64;
    let mut put = |group: &Group| {
        let part = ((hash(group.order) & u64::from(u32::MAX)) * count) >> 32;
        parts[part as usize].add(group);
    };
    for row in 0..rows.len() {
        let order = number(rows.field(row, ORDER));
        if order != last.order {
            if last.rows > 0 {
                put(&last);
            }
            last = Group { order, ..Group::default() };
        }
        last.quantity += decimal(rows.field(row, QUANTITY));
        last.price += decimal(rows.field(row, PRICE));
        last.rows += 1;
    }
    if last.rows > 0 {
        put(&last);
    }
}

/// Each order's quantity, price and number of lines.
pub(crate) fn highcard(folder: &Path, threads: u64) {
    let new = || (0..threads).map(|_| Groups::new()).collect::<Vec<_>>();
    let gathered = gather(&folder.join("lineitem.csv"), threads, new, |parts, rows| add(parts, &rows));
    println!("l_orderkey,qty,price,n");
    // Of each part those of all threads.
    let mut parts: Vec<Vec<Groups>> = (0..threads).map(|_| Vec::new()).collect();
    for of_thread in gathered {
        parts.iter_mut().zip(of_thread).for_each(|(part, groups)| part.push(groups));
    }
    let parts: Vec<_> = parts.into_iter().map(|part| std::sync::Mutex::new(Some(part))).collect();
    at_once(threads, |k| {
        let part = parts[k as usize].lock().expect("no thread panicked").take().expect("each takes its own");
        let mut part = part.into_iter();
        let mut all = part.next().expect("a thread has gathered something");
        for groups in part {
            groups.held.iter().for_each(|group| all.add(group));
        }
        let mut lines = Lines::new();
        for group in &all.held {
            lines.number(group.order as u64);
            lines.text(b",");
            lines.decimal(group.quantity);
            lines.text(b",");
            lines.decimal(group.price);
            lines.text(b",");
            lines.number(group.rows as u64);
            lines.end();
        }
        lines.write();
    });
}
