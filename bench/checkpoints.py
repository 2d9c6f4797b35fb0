#!/usr/bin/env python3
"""What checkpoints cost: without them, every 10 s and every 1 s, in alternating runs.

usage: bench/checkpoints.py DATA [--copies N] [--dfc PATH] [--pairs N]
       bench/checkpoints.py --groups N [--times N] [--dfc PATH] [--pairs N]
       bench/checkpoints.py --check [--dfc PATH]

DATA holds lineitem.csv and its like (tpchgen-cli csv --scale-factor 1 --output-dir DATA): highcard and sync of examples/tpch.
The file is read `--copies` (1) times, so that a job takes longer than the interval.

With `--groups N` the data is made: rows of N keys, each once, then `--times` (3) as many of all keys (`all`) or of the twentieth of them
that came first (`few`, so that a twentieth of the state's pages changes). 15,000,000 keys are more than 1 GiB of state, and 0.8 GB of file each.
All of the state is new at first and has to be stored once: what the rows after it cost alone is the difference between two `--times`.
Besides, a run is killed when a checkpoint covers half of the rows, and what passes from the next start to the first row of each operator
is printed.

`--check` ends with 1 where checkpoints of half a million groups take more than twice what they may of the processors' time: 3 %
every 10 s, and 5 % every second where a twentieth of the groups changes. The least of three runs counts, of up to nine if need be.

The results of all runs are compared first. Prints the medians of the wall time, the spread, the ratio to the runs without
checkpoints, the same ratio of the time that all processors were at work (which a machine that does other things too distorts less), how many checkpoints were taken with which state, and how long a task stood still for one: the median and the 99th
percentile over the checkpoints of the task that stood still the longest, and the longest.
"""

import argparse
import hashlib
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"off": "checkpoint: off", "10s": "checkpoint { interval: 10s }", "1s": "checkpoint { interval: 1s }"}
GROUPS = """job groups SETTING
record R { k: int64, v: int64 }
source rows = csv("DATA", schema: R)
stream groups = rows |> aggregate(by: [k], n: count(), total: sum(v), least: min(v), most: max(v))
stream all = groups |> aggregate(n: count(), rows: sum(n), total: sum(total), least: min(least), most: max(most))
sink all |> csv("out/groups.csv")
"""


def examples(workload, data, copies, folder):
    """The pipeline of an example, for each kind of checkpoints, and its arguments."""
    text = (ROOT / "examples/tpch" / f"{workload}.df").read_text()
    text = text.replace("/lineitem.csv", "/lineitem-*.csv")
    for number in range(copies):
        (folder / f"lineitem-{number:03}.csv").symlink_to(data / "lineitem.csv")
    head, brace, rest = text.partition("{")
    texts = {kind: f"{head}{brace} {setting} {rest}" for kind, setting in KINDS.items()}
    return texts, ["--set", f"data={folder}", "--set", "out=out"]


def made(file):
    """The same for made data."""
    text = GROUPS.replace("DATA", str(file))
    return {kind: text.replace("SETTING", "{ " + setting + " }") for kind, setting in KINDS.items()}, []


def make(file, groups, times, few):
    """Rows of so many keys: each once, in an order that jumps, then so many times as many of all of them or of the first twentieth."""

    def rows(of):
        for start in range(0, groups, 100_000):
            numbers = range(start, min(start + 100_000, groups))
            yield "".join(f"{i % of * 2654435761 % groups},{i % 1000}\n" for i in numbers).encode()

    with file.open("wb") as out:
        out.write(b"k,v\n")
        out.writelines(rows(groups))
        # The same rows each time: only a twentieth of a round has to be made where few keys come again.
        again = list(rows(groups // 20 if few else groups))
        for _ in range(times):
            out.writelines(again)


def start(dfc, home, args, **how):
    return subprocess.Popen([dfc, "run", "job.df", *args], cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **how)


def clean(home):
    for left in ["out", ".dfc"]:
        shutil.rmtree(home / left, ignore_errors=True)


def content(file):
    """What is compared: the lines in any order, or of a file that is too long for it, which then has the input's order, its hash."""
    if file.stat().st_size < 2**29:
        return sorted(file.read_bytes().splitlines())
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def run(dfc, home, args):
    clean(home)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    process = start(dfc, home, args)
    said = process.communicate()[1]
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if process.returncode != 0:
        sys.exit(said)
    results = {p.name: content(p) for p in (home / "out").iterdir()}
    entries = []
    for history in home.glob(".dfc/*/history.json"):
        entries += [entry for entry in json.loads(history.read_text())["entries"] if entry["outcome"] == "taken"]
    return seconds, work, results, entries


def measure(dfc, name, texts, args, pairs, folder):
    times = {kind: [] for kind in KINDS}
    works = {kind: [] for kind in KINDS}
    entries = {kind: [] for kind in KINDS}
    whole = None
    for kind, text in texts.items():
        home = folder / kind
        home.mkdir()
        shutil.copy(ROOT / "examples/tpch/tables.df", home)
        (home / "job.df").write_text(text)
    for pair in range(pairs + 1):
        for kind in KINDS:
            seconds, work, results, taken = run(dfc, folder / kind, args)
            whole = whole or results
            if results != whole:
                sys.exit(f"{name} with checkpoints {kind} gives another result")
            # The first round only warms the files.
            if pair > 0 or pairs == 0:
                times[kind].append(seconds)
                works[kind].append(work)
                entries[kind].append(taken)
    base = statistics.median(times["off"])
    for kind, seconds in times.items():
        median = statistics.median(seconds)
        last = entries[kind][-1]
        state = sum(entry["state_bytes"] for entry in last)
        stops = sorted(entry["stop_micros"] / 1000 for taken in entries[kind] for entry in taken) or [0]
        p99 = stops[max(0, -(-len(stops) * 99 // 100) - 1)]
        columns = [
            name,
            kind,
            f"{median:.2f}",
            f"{min(seconds):.2f}–{max(seconds):.2f}",
            f"{median / base:.3f}",
            f"{statistics.median(works[kind]) / statistics.median(works['off']):.3f}",
            str(len(last)),
            f"{state / 1e6:.1f} MB",
            f"{stops[len(stops) // 2]:.2f} / {p99:.2f} / {stops[-1]:.2f} ms",
        ]
        print("| " + " | ".join(columns) + " |", flush=True)


def covered(dfc, home):
    """Rows that the newest checkpoint covers, and the bytes of state that it holds, before and after compression."""
    shown = subprocess.run([dfc, "checkpoint", "show", "job.df", "--format", "json"], cwd=home, capture_output=True, text=True)
    if shown.returncode != 0:
        return 0, 0, 0
    manifest = json.loads(shown.stdout)
    manifest = manifest.get("manifest", manifest)
    parts = [part for stage in manifest["stages"] for operator in stage["operators"] for part in operator["parts"]]
    rows = sum(source["rows"] for source in manifest["sources"])
    return rows, sum(part["raw_bytes"] for part in parts), sum(part["bytes"] for part in parts)


def restart(dfc, home, args, rows):
    """Kills a run when a checkpoint covers so many rows; how long the next one takes to the first row of each operator."""
    clean(home)
    process = start(dfc, home, args)
    while process.poll() is None and covered(dfc, home)[0] < rows:
        time.sleep(0.5)
    process.kill()
    process.communicate()
    read, raw, stored = covered(dfc, home)
    if read < rows:
        print("it had ended before such a checkpoint was taken", flush=True)
        return
    print(f"killed with a checkpoint of {read:,} rows, {raw / 2**30:.2f} GiB of state, {stored / 2**30:.2f} GiB stored", flush=True)
    begun = time.perf_counter()
    # Lines of the log say when an operator had its first row.
    process = start(dfc, home, [*args, "--log-format", "json"])
    first = {}
    for line in process.stderr:
        seconds = time.perf_counter() - begun
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "first_row" and event["operator"] not in first:
            first[event["operator"]] = seconds
            print(f"    first row of {event['operator']} after {seconds:.2f} s", flush=True)
    process.wait()
    print(f"    it ended after {time.perf_counter() - begun:.2f} s", flush=True)


# What is checked: the kind of checkpoints, whether few groups change, how much more work they may be, and how long a run without them
# is to take, in seconds: longer than the interval.
CHECKS = [("10s", False, 1.06, 12), ("1s", True, 1.10, 4)]
# Groups of the check.
CHECKED = 500_000
# Runs of each kind, at least and at most: the least work of each counts, so where another job took the caches away more runs show it.
TURNS = (3, 9)


def check(dfc):
    """Whether checkpoints cost no more than twice what they may."""
    for kind, few, most, long in CHECKS:
        # What another job did to the disk meanwhile may last as long as a measurement: too much is what is too much twice.
        if measured(dfc, kind, few, most, long) > most and measured(dfc, kind, few, most, long) > most:
            sys.exit("checkpoints cost too much")


def measured(dfc, kind, few, most, long):
    """The work with checkpoints to that without."""
    least, checkpoints, whole, times = {}, 0, None, 20
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        texts, args = made(home / "rows.csv")

        def once(setting):
            (home / "job.df").write_text(texts[setting])
            return run(dfc, home, args)

        make(home / "rows.csv", CHECKED, times, few)
        # As many rows as it takes here: few cost more than many, as their groups are new.
        while (seconds := once("off")[0]) < long:
            times = int(times * min(10, 1.2 * long / seconds))
            make(home / "rows.csv", CHECKED, times, few)
        for turn in range(TURNS[1]):
            for setting in ["off", kind]:
                _, work, results, taken = once(setting)
                whole = whole or results
                if results != whole:
                    sys.exit(f"checkpoints ({setting}) give another result")
                least[setting] = min(work, least.get(setting, work))
                checkpoints = max(checkpoints, len(taken))
            ratio = least[kind] / least["off"]
            if turn + 1 >= TURNS[0] and ratio <= most:
                break
    print(
        f"every {kind}: {CHECKED * (times + 1):,} rows, {checkpoints} checkpoints; {least['off']:.2f} s of work without, "
        f"{least[kind]:.2f} s with: {ratio:.3f} (at most {most}, {turn + 1} runs of each)",
        flush=True,
    )
    # The last one, at the end, is always taken.
    if checkpoints < 2:
        sys.exit("too few checkpoints were taken to say anything")
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, nargs="?")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--groups", type=int)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--dfc", default=str(ROOT / "target/release/dfc"))
    parser.add_argument("--pairs", type=int, default=10)
    args = parser.parse_args()
    if [args.data is not None, args.groups is not None, args.check].count(True) != 1:
        parser.error("one of DATA, --groups N and --check")
    dfc = str(pathlib.Path(args.dfc).resolve())
    if args.check:
        check(dfc)
        return
    print("| workload | checkpoints | median s | spread | ratio to off | of work | taken | state written | stops: p50 / p99 / longest |")
    print("|---|---|---|---|---|---|---|---|---|")
    if args.data:
        for workload in ["highcard", "sync"]:
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                texts, more = examples(workload, args.data.resolve(), args.copies, folder)
                measure(dfc, workload, texts, more, args.pairs, folder)
        return
    for workload in ["all", "few"]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            file = folder / "rows.csv"
            make(file, args.groups, args.times, workload == "few")
            texts, more = made(file)
            measure(dfc, workload, texts, more, args.pairs, folder)
            restart(dfc, folder / "1s", more, 2 * args.groups)


if __name__ == "__main__":
    main()
