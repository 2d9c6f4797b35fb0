//! Whole pipelines that are sound, and one with ten mistakes.

use std::path::Path;

use crate::{check, compiler, expect};

const ORDERS: &str = r#"
//! Nightly orders to the warehouse.

job orders_by_day {
    parallelism: 4
    checkpoint { interval: 30s, timeout: 3m, retain: 5, storage: "./state" }
    errors     { limit: 1000, ratio: 0.001, to: "./rejected" }
}

param since: date = @1995-01-01            // dfc run orders.df --set since=2026-01-01

record Order {
    id:         int64
    user_id:    int64
    status:     string
    price:      decimal(15, 2)
    discount:   decimal(4, 2)?              // ? = may be null
    created_at: datetime = "Created At"     // the name it has outside
}

record User { id: int64, name: string, country: string? }

source orders = csv("data/orders-*.csv", schema: Order, header: true)

stream paid = orders
    |> filter(status == "paid" and date(created_at) >= since)
    |> derive(revenue: price * (1 - discount ?? 0), day: date(created_at))
    |> select(id, user_id, revenue, day)

stream named = paid
    |> lookup(csv("data/users.csv", schema: User), on: user_id == right.id, take: [name, country], missing: keep)

stream by_day = named
    |> aggregate(by: [day, country], orders: count(), revenue: sum(revenue))

sink by_day |> csv("out/by_day.csv", header: true)
"#;

#[test]
fn the_example_of_the_language_is_sound() {
    let checked = check(ORDERS);
    let shown = dfc_diagnostics::render::human(&checked.diagnostics, &checked.files, false);
    assert!(!checked.has_errors(), "{shown}");
    let codes: Vec<_> = checked.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, [""; 0], "{shown}");
    let summary = compiler(&[("p/main.df", ORDERS)]).summary(Path::new("p/main.df"));
    let by_day = summary.streams.iter().find(|s| s.name == "by_day").and_then(|s| s.schema.clone());
    let fields: Vec<String> =
        by_day.into_iter().flat_map(|s| s.fields).map(|f| format!("{}: {}", f.name, f.ty)).collect();
    assert_eq!(fields, ["day: date", "country: string?", "orders: int64", "revenue: decimal(38, 4)"]);
}

#[test]
fn ten_mistakes_of_ten_kinds_give_ten_messages() {
    let text = r#"
source lonely = csv("a.csv", schema: Order)
stream a = orders |> filter(statos == "paid") |> derive(x: price + 1)
stream b = a |> fliter(id > 1) |> select(id)
stream c = orders |> aggregate(by: [user_id], n: count(), total: sum(price)) |> take(-1)
stream d = orders |> lookup(csv("users.csv", schema: User, delimitr: ";"), on: user_id == right.id)
stream e = orders |> join(ordrs, on: id)
stream f = orders |> drop(prise) |> select(id, user_id)
stream g = f |> sort(desc(idd))
stream h = orders |> derive(bad: status + 1)
stream i = orders |> join(h, on: id, kind: outer)
sink {
    b |> csv("b.csv")
    c |> csv("c.csv")
    d |> csv("d.csv")
    e |> csv("e.csv")
    g |> csv("g.csv")
    i |> print()
}
"#;
    expect(text, &["E0304", "E0410", "E0401", "E0606", "E0601", "E0302", "E0404", "E0410", "E0500", "E0605"]);
}
