//! Lineage: the way of a field back to the sources.

use std::path::Path;

use dfc_compiler::ide::lineage;

use crate::{MAIN, at};

fn of(pipeline: &str) -> Vec<String> {
    let (compiler, cursors) = at(pipeline);
    lineage(&compiler, Path::new(MAIN), Path::new(MAIN), cursors[0]).into_iter().map(|found| found.text).collect()
}

#[test]
fn from_a_sink_back_to_the_source() {
    let pipeline = "stream paid = orders |> filter(status == \"paid\") |> derive(revenue: price * (1 - discount ?? 0))\n\
        stream named = paid |> lookup(users, on: user_id == right.id, take: [who: name])\n\
        stream best = named |> rename(total: revenue) |> select(total, who)\n\
        sink be$0st |> print()\n";
    assert_eq!(
        of(pipeline),
        [
            "total: decimal(21, 4)  `revenue`, renamed by `rename` (main.df:21)\n  \
             revenue: decimal(21, 4)  computed by `derive`: price * (1 - discount ?? 0) (main.df:19)\n    \
             price: decimal(15, 2)  a field of the source `orders` (main.df:8)\n    \
             discount: decimal(4, 2)?  a field of the source `orders` (main.df:9)\n",
            "who: string?  `name`, taken from the other side of `lookup` (main.df:20)\n  \
             name: string  a field of the source `users` (main.df:12)\n",
        ]
    );
}

#[test]
fn of_one_field() {
    let tail = |pipeline: &str| -> Vec<String> {
        of(pipeline)
            .iter()
            .map(|text| {
                text.lines().map(|line| line.trim().split(' ').next().unwrap_or("")).collect::<Vec<_>>().join(" ")
            })
            .collect()
    };
    assert_eq!(tail("stream a = orders |> derive(x: price) |> filter(x$0 > 1)\n"), ["x: price:"]);
    assert_eq!(tail("stream a = orders |> derive(tw$0ice: id * 2)\n"), ["twice: id:"]);
    assert_eq!(tail("stream a = orders |> aggregate(by: [user_id], s$0um: sum(price))\n"), ["sum: price:"]);
    assert_eq!(
        tail("stream a = orders |> aggregate(by: [day: date(at)], n: count()) |> filter(da$0y > since)\n"),
        ["day: at:"]
    );
    assert_eq!(tail("stream a = orders |> join(users, on: user_id == right.i$0d)\n"), ["id:"]);
    assert_eq!(
        tail("stream a = union(orders |> select(id), users |> select(id)) |> filter(i$0d > 1)\n"),
        ["id: id: id:"]
    );
    assert_eq!(tail("stream a = orders |> cast(id as string) |> filter(i$0d == \"1\")\n"), ["id: id:"]);
}

#[test]
fn nothing_of_what_is_no_field() {
    assert!(of("stream a = orders |> filter(id > sin$0ce)\n").is_empty());
    assert!(of("// or$0ders\n").is_empty());
    // Streams in a circle.
    assert!(of("stream a = b |> filter(i$0d > 1)\nstream b = a\n").is_empty());
}
