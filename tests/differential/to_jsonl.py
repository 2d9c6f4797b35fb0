#!/usr/bin/env python3
"""Writes the rows of lineitem.csv as JSON lines beside it, by DuckDB, if they aren't there yet.

usage: to_jsonl.py DATA_DIR
"""
import os
import sys

import duckdb
from compare import LINEITEM

DATA = sys.argv[1]
TARGET = os.path.join(DATA, "lineitem.jsonl")

if not os.path.exists(TARGET):
    spec = "{" + ", ".join(f"'{c}': '{t}'" for c, t in LINEITEM.items()) + "}"
    making = f"{TARGET}.{os.getpid()}.making"
    duckdb.connect().execute(f"copy (select * from read_csv('{DATA}/lineitem.csv', header=true, delim=',', quote='\"', columns={spec})) "
                             f"to '{making}' (format json)")
    os.rename(making, TARGET)
