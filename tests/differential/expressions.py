"""Compares the columns of a CSV file that dfc wrote with the same expressions in DuckDB, row by row.

usage: expressions.py INPUT COLUMNS QUERY RESULT
  COLUMNS  the input's columns as SQL: "i BIGINT, s VARCHAR"
  QUERY    a file with the select list
"""
import sys

import duckdb

source, columns, query, result = sys.argv[1:5]
spec = "{" + ", ".join(f"'{c.split()[0]}': '{c.split()[1]}'" for c in columns.split(", ")) + "}"
csv = "header=true, delim=',', quote='\"', allow_quoted_nulls=false, nullstr=''"
con = duckdb.connect()
con.execute("set threads to 1")
con.execute(f"create table input as select * from read_csv('{source}', {csv}, columns={spec})")
con.execute(f"create table expected as select {open(query, encoding='utf-8').read()} from input")
types = con.execute("select column_name, data_type from duckdb_columns() where table_name = 'expected' "
                    "order by column_index").fetchall()
spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in types) + "}"
con.execute(f"create table actual as select * from read_csv('{result}', {csv}, columns={spec})")
counts = con.execute("select (select count(*) from expected), (select count(*) from actual)").fetchone()
if counts[0] != counts[1] or counts[0] == 0:
    sys.exit(f"{counts[1]} rows, should be {counts[0]}")
bad = []
for name, type_ in types:
    differ = f'e."{name}" is distinct from a."{name}"'
    if type_ == "DOUBLE":
        # Sums in another order may differ in the last digits.
        differ += f' and not coalesce(abs(e."{name}" - a."{name}") <= 1e-9 * greatest(1, abs(e."{name}")), false)'
    rows = con.execute(f"""select i.*, e."{name}" as expected, a."{name}" as actual
        from input i positional join expected e positional join actual a where {differ} limit 3""").fetchall()
    if rows:
        bad.append(f"{name} ({type_}): {rows}")
if bad:
    sys.exit("\n".join(bad))
