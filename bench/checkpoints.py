#!/usr/bin/env python3
"""What checkpoints cost: highcard and sync of examples/tpch without them, every 10 s and every 1 s, in alternating runs.

usage: bench/checkpoints.py DATA [--dfc PATH] [--pairs N]
DATA holds lineitem.csv and its like (tpchgen-cli csv --scale-factor 1 --output-dir DATA)

The results of all runs are compared first. Prints the medians of the wall time, the spread, the ratio to the runs without
checkpoints, and how many checkpoints were taken with which state.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"off": "checkpoint: off", "10s": "checkpoint { interval: 10s }", "1s": "checkpoint { interval: 1s }"}


def prepare(workload, folder):
    """One folder a kind of checkpoint, each with the pipeline."""
    text = (ROOT / "examples/tpch" / f"{workload}.df").read_text()
    head, brace, rest = text.partition("{")
    for kind, setting in KINDS.items():
        home = folder / kind
        home.mkdir()
        shutil.copy(ROOT / "examples/tpch/tables.df", home)
        (home / "job.df").write_text(f"{head}{brace} {setting} {rest}")


def run(dfc, folder, kind, data):
    home = folder / kind
    for left in ["out", ".dfc"]:
        shutil.rmtree(home / left, ignore_errors=True)
    command = [dfc, "run", "job.df", "--set", f"data={data}", "--set", f"out={home / 'out'}"]
    start = time.perf_counter()
    subprocess.run(command, cwd=home, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    results = {p.name: sorted(p.read_bytes().splitlines()) for p in (home / "out").iterdir()}
    taken, state = 0, 0
    for history in home.glob(".dfc/*/history.json"):
        entries = json.loads(history.read_text())["entries"]
        taken = sum(1 for entry in entries if entry["outcome"] == "taken")
        state = sum(entry["state_bytes"] for entry in entries)
    return seconds, results, taken, state


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--dfc", default=str(ROOT / "target/release/dfc"))
    parser.add_argument("--pairs", type=int, default=10)
    args = parser.parse_args()
    data = args.data.resolve()
    print("| workload | checkpoints | median s | spread | ratio to off | taken | state written |")
    print("|---|---|---|---|---|---|---|")
    for workload in ["highcard", "sync"]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            prepare(workload, folder)
            times = {kind: [] for kind in KINDS}
            said = {}
            whole = None
            for pair in range(args.pairs + 1):
                for kind in KINDS:
                    seconds, results, taken, state = run(args.dfc, folder, kind, data)
                    whole = whole or results
                    if results != whole:
                        sys.exit(f"{workload} with checkpoints {kind} gives another result")
                    # The first round only warms the files.
                    if pair > 0:
                        times[kind].append(seconds)
                    said[kind] = (taken, state)
            base = statistics.median(times["off"])
            for kind, seconds in times.items():
                median = statistics.median(seconds)
                taken, state = said[kind]
                spread = f"{min(seconds):.2f}–{max(seconds):.2f}"
                print(
                    f"| {workload} | {kind} | {median:.2f} | {spread} | {median / base:.3f} | {taken} | {state / 1e6:.1f} MB |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
