#!/usr/bin/env python3
"""Times dfc against its peers: the same questions over the same TPC-H files, on the same number of threads.

usage: run.py DFC [--scale 1] [--runs 5] [--threads 2] [--peers duckdb,polars] [--workloads q1,q6] [--data DIR]
  DFC  the release binary: target/release/dfc
needs a Python environment with tests/requirements.txt and bench/requirements.txt.

Each answer is compared with DuckDB's before anything is timed. Then dfc and the peers run in turn, whole processes, after
one run that is not counted; the time that a peer's interpreter takes to start and import is measured by itself and
taken off. Printed: medians, the megabytes that dfc reads in a second, the ratio to the fastest peer, peak memory, and how fast `cat` reads
the same files.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
WORKLOADS = {  # name: the tables that are read
    "q1": ["lineitem"], "q6": ["lineitem"], "sync": ["lineitem"], "to_parquet": ["lineitem"],
    "lookup": ["orders", "customer"], "highcard": ["lineitem"], "q3": ["lineitem", "orders", "customer"],
    "q1_parquet": ["lineitem"], "q1_jsonl": ["lineitem"],
}
# Decimals that JSON lines hold as numbers are floats to these, which would be another job.
LEFT_OUT = {"q1_jsonl": ["polars"]}


def timed(command, stdout=None, **environment):
    """Wall seconds and peak kilobytes of a process; it must end well."""
    # Nobody waits for what the one before has left unwritten: dfc asks the disk whether its result is there, the peers don't.
    os.sync()
    start = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=stdout or log, stderr=log, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        if status != 0:
            log.seek(0)
            sys.exit(f"{' '.join(command)} failed:\n{log.read().decode(errors='replace')}")
    return seconds, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dfc")
    parser.add_argument("--scale", default="1")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--peers", default="duckdb,polars,datafusion,clickhouse")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--data")
    args = parser.parse_args()
    peers = [peer for peer in args.peers.split(",") if peer]
    data = args.data or os.path.join(tempfile.gettempdir(), f"dfc-bench-{args.scale}")
    generator = os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
    if not os.path.exists(data):
        for form in ("csv", "parquet"):
            subprocess.run([generator, form, "-s", args.scale, f"--output-dir={data}.making",
                            "--tables=lineitem,orders,customer"], check=True)
        os.rename(f"{data}.making", data)

    def peer_command(peer, workload, target):
        return [sys.executable, os.path.join(HERE, "peers.py"), peer, workload, data, target]

    starts = {}
    for peer in peers:
        starts[peer] = statistics.median(timed(peer_command(peer, "start", "-"))[0] for _ in range(3))
    print("start of the peers, taken off below: "
          + ", ".join(f"{peer} {seconds:.2f} s" for peer, seconds in starts.items()))
    print(f"| workload | read | cat | dfc | MB/s | {' | '.join(peers)} | dfc ÷ fastest peer | peak MB: dfc | {' | '.join(peers)} |")
    print("|---" * (7 + 2 * len(peers)) + "|")
    with tempfile.TemporaryDirectory() as out:
        for workload in args.workloads.split(","):
            form = workload.removeprefix("q1_") if workload.startswith("q1_") else "csv"
            if form == "jsonl":
                subprocess.run([sys.executable, os.path.join(ROOT, "tests", "differential", "to_jsonl.py"), data], check=True)
            files = [os.path.join(data, f"{table}.{form}") for table in WORKLOADS[workload]]
            missing = [file for file in files if not os.path.exists(file)]
            if missing:
                print(f"| {workload} | left out: there is no {', '.join(missing)} |", flush=True)
                continue
            size = sum(os.path.getsize(file) for file in files)
            suffix = "parquet" if workload == "to_parquet" else "csv"
            name = "lineitem" if workload == "to_parquet" else workload
            commands = {"dfc": [args.dfc, "run", os.path.join(ROOT, "examples", "tpch", f"{workload}.df"),
                                "--parallelism", args.threads, "--set", f"data={data}", "--set", f"out={out}"]}
            asked = [peer for peer in peers if peer not in LEFT_OUT.get(workload, [])]
            for peer in asked:
                commands[peer] = peer_command(peer, workload, os.path.join(out, f"{workload}.{peer}.{suffix}"))
            for command in commands.values():
                timed(command, THREADS=args.threads)
            compare = os.path.join(ROOT, "tests", "differential", "compare.py")
            subprocess.run([sys.executable, compare, workload, data, os.path.join(out, f"{name}.{suffix}")], check=True)
            runs = {who: [] for who in commands}
            for _ in range(args.runs):
                for who, command in commands.items():
                    runs[who].append(timed(command, THREADS=args.threads))
            cat = statistics.median(timed(["cat", *files], subprocess.DEVNULL)[0] for _ in range(3))
            median = {who: statistics.median(s for s, _ in of) - starts.get(who, 0) for who, of in runs.items()}
            peak = {who: max(kb for _, kb in of) / 1000 for who, of in runs.items()}
            spread = f"{min(s for s, _ in runs['dfc']):.2f}–{max(s for s, _ in runs['dfc']):.2f}"
            ratio = f"{median['dfc'] / min(median[p] for p in asked):.2f}" if asked else "–"
            print(f"| {workload} | {size / 1e6:.0f} MB | {cat:.2f} s | {median['dfc']:.2f} s ({spread}) | {size / 1e6 / median['dfc']:.0f} | "
                  + " | ".join(f"{median[p]:.2f} s" if p in median else "–" for p in peers)
                  + f" | {ratio} | {peak['dfc']:.0f} | "
                  + " | ".join(f"{peak[p]:.0f}" if p in peak else "–" for p in peers) + " |", flush=True)


main()
