//! How long a task stands still at a barrier with a large table of groups, what it pays afterwards, and how long tasks take to get the table
//! back (D11, D13).
//!
//! `cargo run --release -p dfc-table --example freeze [GROUPS]`: GROUPS keys (12,000,000: more than 1 GiB), frozen again and again while
//! groups are touched and another thread archives what was frozen.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use dfc_ir::plan::{AggFunction, Aggregate};
use dfc_ir::stage::AggregateSpec;
use dfc_ir::{DataType, Expr, Field, Schema, Site, Type};
use dfc_table::{FrozenGroups, GroupTable, Rebuilding, hash_key};
use rkyv::util::AlignedVec;

/// Bytes of state archived at once, as checkpoints do.
const PIECE: usize = 32 << 20;
/// Freezes of each kind.
const FREEZES: usize = 24;
/// Every so many of them one is of the whole table, as in checkpoints.
const WHOLE: usize = 16;

fn spec() -> AggregateSpec {
    let int = DataType::of(Type::INT64);
    let functions = [AggFunction::Count, AggFunction::Sum, AggFunction::Min, AggFunction::Max];
    let aggregate = |function| Aggregate {
        function,
        args: vec![Expr::column(1, int.clone())],
        filter: None,
        ty: int.with_nullable(true),
        site: Site::default(),
    };
    let fields = ["k", "n", "sum", "min", "max"].map(|name| Field::new(name, int.clone())).to_vec();
    AggregateSpec {
        node: "groups".into(),
        inputs: vec![int.clone(), int.clone()],
        keys: vec![Expr::column(0, int.clone())],
        aggregates: functions.map(aggregate).to_vec(),
        output: Schema { fields },
    }
}

fn touch(table: &mut GroupTable, key: u64) {
    let key = key.to_le_bytes();
    let group = table.group(&key, hash_key(&key));
    table.state_row(group);
}

fn shown(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share).div_ceil(100).max(1) - 1].as_secs_f64() * 1000.0;
    format!("{:.2} ms (median), {:.2} ms (99 %), {:.2} ms (longest)", at(50), at(99), at(100))
}

fn main() {
    let groups: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(12_000_000);
    let mut table = GroupTable::new(&spec());
    (0..groups).for_each(|key| touch(&mut table, key));
    println!("{groups} groups, {:.2} GiB", table.memory_bytes() as f64 / f64::from(1 << 30));
    let (to, frozen) = mpsc::sync_channel::<FrozenGroups>(1);
    let archiving = std::thread::spawn(move || {
        let mut bytes = 0;
        for groups in frozen {
            for piece in groups.split(PIECE).expect("keys") {
                bytes += piece.archive().expect("it can be archived").len();
            }
        }
        bytes
    });
    for (what, of) in [("a twentieth", groups / 20), ("all", groups)] {
        let (mut stops, mut touches) = (Vec::new(), Vec::new());
        for round in 0..FREEZES {
            let begun = Instant::now();
            let part = table.freeze(round % WHOLE == 0);
            stops.push(begun.elapsed());
            to.send(part).expect("somebody archives");
            let begun = Instant::now();
            (0..of).for_each(|key| touch(&mut table, key));
            touches.push(begun.elapsed());
        }
        println!("{what} touched in between: the freeze takes {}", shown(stops));
        println!("  touching them takes {}", shown(touches));
    }
    drop(to);
    println!("{:.2} GB archived", archiving.join().expect("archived") as f64 / 1e9);
    let parts = archived(&mut table);
    let tasks = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let mut own = Vec::new();
    for task in 0..tasks {
        let mut share = GroupTable::new(&spec());
        share.merge_partition(&table, task, tasks).expect("merged");
        own.push((share.len(), archived(&mut share)));
    }
    drop(table);
    let begun = Instant::now();
    in_shares(tasks, |task| {
        let (groups, parts) = &own[task];
        let mut share = Rebuilding::new(&spec(), *groups);
        parts.iter().for_each(|part| share.take(part).expect("the parts fit"));
        share.finish().expect("the parts fit");
    });
    println!("{tasks} tasks take what they had themselves in {:.2} s", begun.elapsed().as_secs_f64());
    drop(own);
    let begun = Instant::now();
    in_shares(tasks, |task| {
        let mut share = GroupTable::new(&spec());
        share.take_share(&spec(), &parts, task, tasks).expect("the parts fit");
    });
    println!("{tasks} tasks take their shares out of the parts in {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    in_shares(tasks, |task| {
        let whole = GroupTable::from_parts(&spec(), &parts).expect("the parts fit");
        GroupTable::new(&spec()).merge_partition(&whole, task, tasks).expect("merged");
    });
    println!("  the long way, through the whole table: {:.2} s", begun.elapsed().as_secs_f64());
}

fn archived(table: &mut GroupTable) -> Vec<AlignedVec> {
    let pieces = table.freeze(true).split(PIECE).expect("keys");
    pieces.into_iter().map(|piece| piece.archive().expect("it can be archived")).collect()
}

fn in_shares(tasks: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        (0..tasks).for_each(|task| {
            drop(scope.spawn({
                let work = &work;
                move || work(task)
            }))
        });
    });
}
