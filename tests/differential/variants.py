"""Variants of the TPC-H jobs, drawn by seed, against DuckDB: other columns, conditions, groups, types, quotes, delimiters.

usage: variants.py DFC DATA_DIR [--seed 1] [--count 20] [--time] [--keep]
Each variant is a pipeline and a statement that ask the same; the answers must be equal, in the input's order where the
pipeline keeps it. With --time both are timed, in turn, the faster of three runs (DuckDB's without its start).
Ends with 1, the pipeline and a sample of the rows at the first difference.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

import duckdb

from compare import TABLES

DF_TYPES = {"BIGINT": "int64", "INTEGER": "int32", "DECIMAL(15,2)": "decimal(15, 2)", "VARCHAR": "string", "DATE": "date"}
# Other types that hold a column's values: (dfc's, DuckDB's).
WIDER = {
    "BIGINT": [("decimal(19, 0)", "DECIMAL(19,0)"), ("uint64", "UBIGINT"), ("int64?", "BIGINT"), ("string", "VARCHAR")],
    "INTEGER": [("int64", "BIGINT"), ("int8", "TINYINT"), ("uint16", "USMALLINT")],
    "DECIMAL(15,2)": [("decimal(12, 2)", "DECIMAL(12,2)"), ("decimal(24, 3)", "DECIMAL(24,3)"),
                      ("decimal(18, 4)", "DECIMAL(18,4)"), ("decimal(15, 2)?", "DECIMAL(15,2)")],
    "VARCHAR": [("string?", "VARCHAR")],
    "DATE": [("date?", "DATE"), ("string", "VARCHAR")],
}
GROUPS = ["l_returnflag", "l_linestatus", "l_shipmode", "l_shipinstruct", "l_linenumber", "l_orderkey", "l_partkey",
          "l_suppkey", "l_shipdate", "l_discount"]


class Variant:
    """A pipeline and the statement."""

    def __init__(self, draw, con, data, folder):
        self.draw, self.con = draw, con
        self.kind = draw.choice(["sum", "groups", "many groups", "rows", "lookup"])
        self.delimiter = draw.choice([",", ",", "|", ";", "\t"])
        self.quote = draw.choice(['"', '"', "'"])
        force = draw.random() < 0.3
        self.types = {}
        for table in ["orders", "customer"] if self.kind == "lookup" else ["lineitem"]:
            self.add(table, data, folder, force)

    def add(self, table, data, folder, force):
        """Writes a table anew in this variant's dialect and types, with nulls where they may be."""
        columns = dict(TABLES[table])
        spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in columns.items()) + "}"
        # Keys of the lookup stay what they are.
        free = [c for c in columns if not c.endswith("custkey") or self.kind != "lookup"]
        other = {c: self.draw.choice(WIDER[columns[c]]) for c in self.draw.sample(free, 3)}
        sql = {c: other.get(c, (None, t))[1] for c, t in columns.items()}
        self.types[table] = {c: other.get(c, (DF_TYPES[t],))[0] for c, t in columns.items()}
        nulled = [f"case when hash({i} + row_number() over ()) % 7 <> 0 then {c} end as {c}"
                  if self.types[table][c].endswith("?") else c for i, c in enumerate(columns)]
        self.con.execute(f"create or replace table {table} as select {', '.join(nulled)} from read_csv("
                         f"'{data}/{table}.csv', header=true, delim=',', quote='\"', columns={spec})")
        path = os.path.join(folder, f"{table}.csv")
        quote = self.quote.replace("'", "''")
        self.con.execute(f"copy {table} to '{path}' (header, delimiter '{self.delimiter}', quote '{quote}', "
                         f"escape '{quote}'{', force_quote *' if force and not self.nullable(table) else ''})")
        columns = ", ".join(f"cast({c} as {t}) as {c}" for c, t in sql.items())
        self.con.execute(f"create or replace view {table}_ as select {columns} from {table}")

    def nullable(self, table):
        return any(ty.endswith("?") for ty in self.types[table].values())

    def records(self):
        for table, columns in self.types.items():
            fields = "".join(f"    {c}: {t}\n" for c, t in columns.items())
            yield f"record {table.capitalize()} {{\n{fields}}}\n"

    def source(self, table):
        delimiter = self.delimiter.replace("\t", "\\t")
        quote = self.quote.replace('"', '\\"')
        return (f'csv(f"{{data}}/{table}.csv", schema: {table.capitalize()}, delimiter: "{delimiter}", quote: "{quote}")')

    def condition(self, table):
        """A condition in both languages over a column of the table."""
        draw = self.draw
        column = draw.choice(list(TABLES[table]))
        ty = self.types[table][column].rstrip("?")
        low, high = self.con.execute(f"select quantile_disc({column}, {draw.random() * 0.5}), "
                                     f"quantile_disc({column}, {0.5 + draw.random() * 0.5}) from {table}").fetchone()
        if low is None:
            return "true", "true"
        def df(value):
            text = str(value).replace('"', '\\"')
            if ty == "string":
                return f'"{text}"'
            return f"@{text}" if ty == "date" else text
        def sql(value):
            text = str(value).replace("'", "''")
            if ty == "string":
                return f"'{text}'"
            return f"date '{text}'" if ty == "date" else text
        form = draw.randrange(5)
        if form == 0:
            return f"{column} between {df(low)} and {df(high)}", f"{column} between {sql(low)} and {sql(high)}"
        if form == 1:
            return f"{column} != {df(low)}", f"{column} <> {sql(low)}"
        if form == 2 and str(low) != str(high):
            return f"{column} in [{df(low)}, {df(high)}] or {column} > {df(low)}", \
                f"({column} in ({sql(low)}, {sql(high)}) or {column} > {sql(low)})"
        op = draw.choice(["<=", ">=", "<", ">"])
        return f"{column} {op} {df(high)}", f"{column} {op} {sql(high)}"

    def filters(self, table):
        conditions = [self.condition(table) for _ in range(self.draw.randrange(1, 4))]
        if self.draw.random() < 0.5:
            df = "".join(f"\n    |> filter({c})" for c, _ in conditions)
        else:
            df = "\n    |> filter(" + " and ".join(f"({c})" for c, _ in conditions) + ")"
        return df, " and ".join(c for _, c in conditions)

    def aggregates(self):
        """Names with both expressions; sums are of numbers."""
        numeric = [c for c, t in self.types["lineitem"].items() if t.startswith(("decimal", "int", "uint"))]
        for number in range(self.draw.randrange(1, 5)):
            column = self.draw.choice(numeric)
            form = self.draw.randrange(5)
            name = f"a{number}"
            if form == 0:
                yield name, "count()", "count(*)"
            elif form == 1:
                yield name, f"count({column})", f"count({column})"
            elif form == 2:
                yield name, f"max({column})", f"max({column})"
            elif form == 3:
                yield name, f"min({column})", f"min({column})"
            else:
                yield name, f"sum({column})", f"sum({column})"

    def build(self):
        """Gives the pipeline, the statement, and whether the order counts."""
        table = "orders" if self.kind == "lookup" else "lineitem"
        filters, where = self.filters(table)
        ordered = False
        if self.kind in ("sum", "groups", "many groups"):
            aggregates = list(self.aggregates())
            keys = {"sum": [], "groups": self.draw.sample(GROUPS[:5], 2),
                    "many groups": [self.draw.choice(GROUPS[5:])]}[self.kind]
            by = f"by: [{', '.join(keys)}], " if keys else ""
            steps = f"\n    |> aggregate({by}{', '.join(f'{n}: {d}' for n, d, _ in aggregates)})"
            columns = keys + [f"{s} as {n}" for n, _, s in aggregates]
            statement = f"select {', '.join(columns)} from lineitem_ where {where}"
            statement += f" group by {', '.join(keys)}" if keys else ""
        elif self.kind == "rows":
            columns = self.draw.sample(list(TABLES[table]), self.draw.randrange(2, 9))
            steps = f"\n    |> select({', '.join(columns)})"
            statement = f"select {', '.join(columns)} from lineitem_ where {where}"
            ordered = True
        else:
            kept = self.draw.sample([c for c in TABLES["orders"]], 4)
            taken = self.draw.sample([c for c in TABLES["customer"] if c != "c_custkey"], 3)
            steps = (f"\n    |> lookup({self.source('customer')}, on: o_custkey == c_custkey, take: [{', '.join(taken)}], "
                     f"missing: keep)\n    |> select({', '.join(kept + taken)})")
            statement = (f"select {', '.join(kept + taken)} from orders_ left join customer_ on o_custkey = c_custkey "
                         f"where {where}")
        pipeline = "job variant {}\n\n" + "\n".join(self.records()) + f"""
param data: string = "."

source rows = {self.source(table)}

stream result = rows{filters}{steps}

sink result |> csv(f"{{data}}/result.csv")
"""
        return pipeline, statement, ordered


def compare(con, statement, result, ordered):
    """What differs; `None`: nothing."""
    con.execute(f"create or replace table expected as {statement}")
    columns = con.execute("select column_name, data_type from duckdb_columns() where table_name = 'expected' "
                          "order by column_index").fetchall()
    spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in columns) + "}"
    con.execute(f"create or replace table actual as select * from read_csv('{result}', header=true, delim=',', "
                f"quote='\"', nullstr='', allow_quoted_nulls=false, columns={spec})")
    for left, right, words in [("expected", "actual", "missing"), ("actual", "expected", "too many")]:
        rows = con.execute(f"from {left} except all from {right} limit 5").fetchall()
        if rows:
            return f"{words}: {rows}"
    if ordered:
        condition = " or ".join(f'e."{c}" is distinct from a."{c}"' for c, _ in columns)
        rows = con.execute(f"select e.*, a.* from expected e positional join actual a where {condition} limit 5").fetchall()
        if rows:
            return f"the order differs: {rows}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dfc")
    parser.add_argument("data")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the files of a variant that differs")
    args = parser.parse_args()
    compared = 0
    for number in range(args.count):
        draw = random.Random(args.seed * 1000 + number)
        folder = tempfile.mkdtemp(prefix="dfc-variant-")
        con = duckdb.connect()
        con.execute("set threads = 2")
        variant = Variant(draw, con, args.data, folder)
        pipeline, statement, ordered = variant.build()
        path = os.path.join(folder, "variant.df")
        with open(path, "w", encoding="utf-8") as file:
            file.write(pipeline)
        tier = [] if draw.random() < 0.8 else ["--engine", "interpreter"]
        command = [args.dfc, "run", path, "--fresh", "--parallelism", "2", "--set", f"data={folder}"]
        seconds = []
        for _ in range(3 if args.time else 1):
            if args.time:
                os.sync()  # The tables were just written: not this program's to wait for.
            start = time.monotonic()
            done = subprocess.run(command + ([] if args.time else tier), capture_output=True, text=True)
            seconds.append(time.monotonic() - start)
        label = f"seed {args.seed}, variant {number} ({variant.kind})"
        differs = done.stderr if done.returncode else compare(con, statement, f"{folder}/result.csv", ordered)
        if differs:
            sys.exit(f"{label} in {folder}\n{pipeline}\n{statement}\n{differs}")
        rows = con.execute("select count(*) from expected").fetchone()[0]
        compared += rows
        line = f"{label}: {rows} rows equal"
        if args.time:
            peers = [peer_seconds(variant, folder, statement) for _ in range(3)]
            line += f"; dfc {min(seconds):.2f} s, DuckDB {min(peers):.2f} s, ratio {min(seconds) / min(peers):.2f}"
        print(line, flush=True)
        con.close()
        if not args.keep:
            subprocess.run(["rm", "-r", folder], check=True)
    if compared == 0:
        sys.exit("nothing was compared")


def peer_seconds(variant, folder, statement):
    """DuckDB over the same files, from CSV to CSV."""
    con = duckdb.connect()
    con.execute("set threads = 2")
    quote = variant.quote.replace("'", "''")
    for table, types in variant.types.items():
        view = variant.con.execute(f"select column_name, data_type from duckdb_columns() where table_name = '{table}_' "
                                   "order by column_index").fetchall()
        spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in view) + "}"
        con.execute(f"create view {table}_ as select * from read_csv('{folder}/{table}.csv', header=true, "
                    f"delim='{variant.delimiter}', quote='{quote}', escape='{quote}', columns={spec})")
    os.sync()
    start = time.monotonic()
    con.execute(f"copy ({statement}) to '{folder}/peer.csv' (header)")
    return time.monotonic() - start


if __name__ == "__main__":
    main()
