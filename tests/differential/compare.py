"""Compares a result of dfc with DuckDB's answer to the same question.

usage: compare.py WORKLOAD DATA_DIR RESULT
Ends with 1 and a sample of the rows that differ. Every column is compared exactly, averages to 1e-9. Where the job
keeps the input's order, the order is compared too.
"""
import sys

import duckdb

LINEITEM = {
    "l_orderkey": "BIGINT", "l_partkey": "BIGINT", "l_suppkey": "BIGINT", "l_linenumber": "INTEGER",
    "l_quantity": "DECIMAL(15,2)", "l_extendedprice": "DECIMAL(15,2)", "l_discount": "DECIMAL(15,2)",
    "l_tax": "DECIMAL(15,2)", "l_returnflag": "VARCHAR", "l_linestatus": "VARCHAR", "l_shipdate": "DATE",
    "l_commitdate": "DATE", "l_receiptdate": "DATE", "l_shipinstruct": "VARCHAR", "l_shipmode": "VARCHAR",
    "l_comment": "VARCHAR",
}
ORDERS = {
    "o_orderkey": "BIGINT", "o_custkey": "BIGINT", "o_orderstatus": "VARCHAR", "o_totalprice": "DECIMAL(15,2)",
    "o_orderdate": "DATE", "o_orderpriority": "VARCHAR", "o_clerk": "VARCHAR", "o_shippriority": "INTEGER",
    "o_comment": "VARCHAR",
}
CUSTOMER = {
    "c_custkey": "BIGINT", "c_name": "VARCHAR", "c_address": "VARCHAR", "c_nationkey": "BIGINT", "c_phone": "VARCHAR",
    "c_acctbal": "DECIMAL(15,2)", "c_mktsegment": "VARCHAR", "c_comment": "VARCHAR",
}
TABLES = {"lineitem": LINEITEM, "orders": ORDERS, "customer": CUSTOMER}

# The statement, and whether the result keeps an order that is compared.
QUERIES = {
    "q1": ("""select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
        sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
        avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
        from lineitem where l_shipdate <= date '1998-09-02'
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""", True),
    "q3": ("""select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
        from customer join orders on c_custkey = o_custkey join lineitem on l_orderkey = o_orderkey
        where c_mktsegment = 'BUILDING' and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""", True),
    "q6": ("""select sum(l_extendedprice * l_discount) as revenue from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
        and l_discount between 0.05 and 0.07 and l_quantity < 24""", True),
    "sync": ("""select l_orderkey, l_linenumber, l_partkey, l_quantity, l_extendedprice * (1 - l_discount) as revenue,
        upper(l_shipmode) as shipmode, extract(year from l_shipdate) as ship_year, l_shipdate, l_comment
        from lineitem where l_shipdate >= date '1995-01-01' and l_returnflag <> 'R'""", True),
    "highcard": ("""select l_orderkey, sum(l_quantity) as qty, sum(l_extendedprice) as price, count(*) as n
        from lineitem group by l_orderkey""", False),
    "lookup": ("""select o_orderkey, o_orderdate, o_totalprice, o_orderpriority, c_name, c_mktsegment, c_nationkey
        from orders left join customer on o_custkey = c_custkey where o_orderstatus <> 'P'""", False),
    "to_parquet": ("select * from lineitem", True),
}
# The same question to the same rows in other formats.
QUERIES["q1_parquet"] = QUERIES["q1_jsonl"] = QUERIES["q1"]


def main():
    workload, data, result = sys.argv[1:4]
    statement, ordered = QUERIES[workload]
    con = duckdb.connect()
    for name, columns in TABLES.items():
        spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in columns.items()) + "}"
        con.execute(f"create view {name} as select * from read_csv('{data}/{name}.csv', header=true, delim=',', "
                    f"quote='\"', columns={spec})")
    con.execute(f"create table expected as {statement}")
    columns = con.execute("select column_name, data_type from duckdb_columns() where table_name = 'expected' "
                          "order by column_index").fetchall()
    if result.endswith(".parquet"):
        con.execute(f"create table actual as select * from '{result}'")
    else:
        header = open(result, encoding="utf-8").readline().rstrip("\n").split(",")
        wanted = [name for name, _ in columns]
        if header != wanted:
            sys.exit(f"{workload}: columns are {header}, should be {wanted}")
        # Averages are read as text first: a double would hide digits.
        spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in columns) + "}"
        con.execute(f"create table actual as select * from read_csv('{result}', header=true, delim=',', quote='\"', "
                    f"columns={spec})")
    n_expected = con.execute("select count(*) from expected").fetchone()[0]
    n_actual = con.execute("select count(*) from actual").fetchone()[0]
    if n_expected != n_actual:
        sys.exit(f"{workload}: {n_actual} rows, should be {n_expected}")
    if n_expected == 0:
        sys.exit(f"{workload}: nothing was compared")
    averages = [c for c, t in columns if t == "DOUBLE"]
    exact = [f'"{c}"' for c, _ in columns if c not in averages]
    if exact:
        names = ", ".join(exact)
        for left, right, words in [("expected", "actual", "missing"), ("actual", "expected", "too many")]:
            rows = con.execute(f"select {names} from {left} except all select {names} from {right} limit 5").fetchall()
            if rows:
                sys.exit(f"{workload}: {words}: {rows}")
    if ordered:
        condition = " or ".join(
            [f"e.{c} is distinct from a.{c}" for c in exact]
            + [f'not (abs(e."{c}" - a."{c}") <= 1e-9)' for c in averages])
        rows = con.execute(f"select e.*, a.* from expected e positional join actual a where {condition} limit 5").fetchall()
        if rows:
            sys.exit(f"{workload}: order or averages differ: {rows}")


if __name__ == "__main__":
    main()
