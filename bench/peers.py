#!/usr/bin/env python3
"""Runs one workload on one peer, as a whole process: the same files, the same types, the same number of threads.

usage: peers.py PEER WORKLOAD DATA_DIR TARGET          PEER: duckdb polars datafusion clickhouse
Money is decimal(15,2) everywhere, as TPC-H defines it: an answer in floats would be another job. `start` as the workload
only starts the interpreter and imports the peer: that time is not the engine's.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "differential"))
from compare import QUERIES, TABLES  # noqa: E402

PEER, WORKLOAD, DATA, TARGET = sys.argv[1:5]
THREADS = int(os.environ.get("THREADS", "2"))
SOURCE = WORKLOAD.removeprefix("q1_") if WORKLOAD.startswith("q1_") else "csv"
FORMAT = "parquet" if WORKLOAD == "to_parquet" else "csv"
SQL = "" if WORKLOAD == "start" else QUERIES[WORKLOAD][0]


def duckdb():
    import duckdb as engine
    if WORKLOAD == "start":
        return
    con = engine.connect()
    con.execute(f"set threads to {THREADS}; set preserve_insertion_order = false")
    for name, columns in TABLES.items():
        spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in columns.items()) + "}"
        if SOURCE == "jsonl":
            if name != "lineitem":
                continue
            source = f"read_json('{DATA}/{name}.jsonl', format='newline_delimited', columns={spec})"
        elif SOURCE == "csv":
            source = f"read_csv('{DATA}/{name}.csv', header=true, delim=',', quote='\"', columns={spec})"
        else:
            source = f"'{DATA}/{name}.parquet'"
        con.execute(f"create view {name} as select * from {source}")
    options = "format csv, header" if FORMAT == "csv" else "format parquet, compression zstd"
    con.execute(f"copy ({SQL}) to '{TARGET}' ({options})")


def polars():
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import polars as engine
    if WORKLOAD == "start":
        return
    types = {"BIGINT": engine.Int64, "INTEGER": engine.Int32, "DECIMAL(15,2)": engine.Decimal(15, 2),
             "VARCHAR": engine.String, "DATE": engine.Date}
    context = engine.SQLContext()
    for name, columns in TABLES.items():
        if SOURCE == "csv":
            schema = {c: types[t] for c, t in columns.items()}
            context.register(name, engine.scan_csv(f"{DATA}/{name}.csv", schema=schema, try_parse_dates=True))
        else:
            context.register(name, engine.scan_parquet(f"{DATA}/{name}.parquet"))
    frame = context.execute(SQL.replace("extract(year from l_shipdate)", "year(l_shipdate)"), eager=False)
    if FORMAT == "csv":
        frame.sink_csv(TARGET, engine="streaming")
    else:
        frame.sink_parquet(TARGET, compression="zstd", engine="streaming")


def datafusion():
    import datafusion as engine
    import pyarrow as pa
    if WORKLOAD == "start":
        return
    types = {"BIGINT": pa.int64(), "INTEGER": pa.int32(), "DECIMAL(15,2)": pa.decimal128(15, 2),
             "VARCHAR": pa.string(), "DATE": pa.date32()}
    context = engine.SessionContext(engine.SessionConfig().with_target_partitions(THREADS))
    for name, columns in TABLES.items():
        if SOURCE == "csv":
            schema = pa.schema([(c, types[t]) for c, t in columns.items()])
            context.register_csv(name, f"{DATA}/{name}.csv", schema=schema, has_header=True)
        elif SOURCE == "jsonl" and name == "lineitem":
            schema = pa.schema([(c, types[t]) for c, t in columns.items()])
            context.register_json(name, f"{DATA}/{name}.jsonl", schema=schema, file_extension=".jsonl")
        elif SOURCE == "parquet":
            context.register_parquet(name, f"{DATA}/{name}.parquet")
    options = "'format.has_header' 'true'" if FORMAT == "csv" else "'format.compression' 'zstd(3)'"
    context.sql(f"copy ({SQL}) to '{TARGET}' stored as {FORMAT} options ({options})").collect()


def clickhouse():
    import chdb as engine
    if WORKLOAD == "start":
        return
    types = {"BIGINT": "Int64", "INTEGER": "Int32", "DECIMAL(15,2)": "Decimal(15,2)", "VARCHAR": "String",
             "DATE": "Date32"}
    sql = SQL.replace("count(*)", "count()")
    for name, columns in TABLES.items():
        spec = ", ".join(f"{c} {types[t]}" for c, t in columns.items())
        form = {"csv": "CSVWithNames", "jsonl": "JSONEachRow", "parquet": "Parquet"}[SOURCE]
        for word in ("from", "join"):
            source = f"{word} file('{DATA}/{name}.{SOURCE}', {form}, '{spec}') as {name}"
            sql = sql.replace(f"{word} {name}", source)
    form = "CSVWithNames" if FORMAT == "csv" else "Parquet"
    engine.query(f"insert into function file('{TARGET}', {form}) {sql} settings max_threads={THREADS}, "
                 "output_format_parquet_compression_method='zstd', join_use_nulls=1, engine_file_truncate_on_insert=1")


{"duckdb": duckdb, "polars": polars, "datafusion": datafusion, "clickhouse": clickhouse}[PEER]()
