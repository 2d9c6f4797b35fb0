#!/usr/bin/env python3
"""How fast the language server is while somebody types: a session of 2,000 keystrokes on a project of 10,000 lines.

usage: bench/lsp.py [--dfc PATH] [--keystrokes N] [--lines N] [--check]

Each keystroke is a change of one or more characters; its time goes from the change to the findings on the file's new
version. Every fourth keystroke a completion is asked for right after it. Needs nothing but Python 3. `--check` ends with 1
if a number is above its aim.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

AIMS = {"findings": 20.0, "completion": 15.0, "memory": 200.0}  # p99 in ms, p99 in ms, MB

FIELDS = [
    ("id", "int64"), ("customer", "int64"), ("status", "string"), ("country", "string?"), ("amount", "decimal(12, 2)"),
    ("discount", "decimal(4, 2)?"), ("created", "datetime"), ("shipped", "date?"), ("note", "string?"), ("weight", "float64"),
]


def library(number: int, lines: int) -> str:
    """A library with its own records, constants, functions, sources and streams, each stream reading the one before."""
    out = [f"//! Part {number} of the project.", ""]
    stream = 0
    last = None
    while len(out) < lines:
        group = stream // 12
        if stream % 12 == 0:
            out += [f"/// What is read in group {group}.", f"record Row{number}_{group} {{"]
            out += [f"    {name}: {ty}," for name, ty in FIELDS]
            out += ["}", ""]
            out += [f"const rate{number}_{group}: decimal(4, 2) = 1.{group % 90 + 10}", ""]
            out += [f"fn net{number}_{group}(x: decimal(12, 2), d: decimal(4, 2)?) = x * (1 - (d ?? 0))", ""]
            out += [
                f"source read{number}_{group} = csv(",
                f'    "data/{number}_{group}.csv",',
                f"    schema: Row{number}_{group},",
                "    header: true,",
                ")",
                "",
            ]
            head = f"read{number}_{group}"
            if last:
                out += [f"stream start{number}_{group} = union(", f"    {last},", f"    {head},", ")", ""]
                head = f"start{number}_{group}"
            last = head
        name = f"s{number}_{stream}"
        out += [
            f"/// Step {stream}.",
            f"stream {name} = {last}",
            f'    |> filter(status != "open" and amount > rate{number}_{group} and weight < {stream + 1}.5)',
            f"    |> derive(total: net{number}_{group}(amount, discount) * 2)",
            f"    |> derive(late: if shipped is null then 0 else 1, label: f\"{{status}}-{stream}\")",
            "    |> filter(total > 0 and late in [0, 1])",
            "    |> select(id, customer, status: label, country, amount, discount, created, shipped, note, weight)",
            "",
        ]
        last = name
        stream += 1
    out += [f"stream end{number} = {last}", "    |> aggregate(by: [country, status], total: sum(amount), rows: count())", ""]
    return "\n".join(out)


def project(folder: pathlib.Path, lines: int) -> dict[str, str]:
    parts = 8
    files = {f"part{n}.df": library(n, lines // parts - 6) for n in range(parts)}
    main = [f'use "part{n}.df"' for n in range(parts)]
    main += ["", "job all {", "    parallelism: 4", "}", "", "sink {"]
    main += [f'    end{n} |> csv("out/{n}.csv")' for n in range(parts)]
    main += ["}", ""]
    files["main.df"] = "\n".join(main)
    for name, text in files.items():
        (folder / name).write_text(text)
    return files


class Server:
    def __init__(self, binary: str, folder: pathlib.Path):
        self.process = subprocess.Popen([binary, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self.number = 0
        self.request("initialize", {
            "processId": None,
            "workspaceFolders": [{"uri": folder.as_uri(), "name": "bench"}],
            "capabilities": {"general": {"positionEncodings": ["utf-16"]}},
        })
        self.notify("initialized", {})

    def send(self, message: dict):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def notify(self, method: str, params):
        self.send({"method": method, "params": params})

    def ask(self, method: str, params) -> int:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.number

    def receive(self) -> tuple[dict, float]:
        length = 0
        while line := self.process.stdout.readline().strip():
            length = int(line.split(b":")[1])
        if length == 0:
            sys.exit("the server has ended")
        body = self.process.stdout.read(length)
        now = time.perf_counter()
        return json.loads(body), now

    def request(self, method: str, params):
        number = self.ask(method, params)
        while True:
            message, _ = self.receive()
            if message.get("id") == number and "method" not in message:
                return message.get("result")

    def memory(self) -> float:
        """The most memory that was resident, in MB."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1000
        return 0.0


class Editor:
    """Types into the files, a change at a time, and keeps their texts."""

    def __init__(self, server: Server, folder: pathlib.Path, files: dict[str, str]):
        self.server, self.folder = server, folder
        self.texts = dict(files)
        self.versions = {}

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str):
        self.versions[name] = 1
        self.server.notify("textDocument/didOpen", {
            "textDocument": {"uri": self.uri(name), "languageId": "df", "version": 1, "text": self.texts[name]},
        })

    def place(self, name: str, at: int) -> dict:
        before = self.texts[name][:at]
        return {"line": before.count("\n"), "character": at - (before.rfind("\n") + 1)}

    def replace(self, name: str, start: int, end: int, text: str) -> float:
        """Makes a change; gives the time it was sent at."""
        range_ = {"start": self.place(name, start), "end": self.place(name, end)}
        self.texts[name] = self.texts[name][:start] + text + self.texts[name][end:]
        self.versions[name] += 1
        sent = time.perf_counter()
        self.server.notify("textDocument/didChange", {
            "textDocument": {"uri": self.uri(name), "version": self.versions[name]},
            "contentChanges": [{"range": range_, "text": text}],
        })
        return sent

    def session(self, rng: random.Random):
        """Changes without end, as (file, start, end, text): what a person types, takes back and corrects."""
        names = [name for name in self.versions if name.startswith("part")]
        while True:
            name = rng.choice(names)
            text = self.texts[name]
            lines = [at for at in range(len(text)) if text.startswith("\n    |> select(", at)]
            kind = rng.choice(["link", "link", "condition", "constant", "field", "stream", "blank", "function"])
            if kind == "link":
                at = rng.choice(lines)
                typed = rng.choice([
                    '\n    |> filter(amount > 10 and country is not null)',
                    '\n    |> derive(double: amount * 2, short: upper(status))',
                    '\n    |> require(id > 0, "no id")',
                ])
                for i, c in enumerate(typed):
                    yield name, at + i, at + i, c
                yield name, at, at + len(typed), ""
            elif kind == "condition":
                at = text.index("status != \"open\"", rng.choice(lines) - 400)
                for i in range(6):
                    yield name, at + 5 - i, at + 6 - i, ""
                for i, c in enumerate("status"):
                    yield name, at + i, at + i, c
            elif kind == "constant":
                at = text.index(" = 1.", text.index("const rate")) + 5
                yield name, at, at + 1, str(rng.randrange(1, 9))
            elif kind == "field":
                at = text.index("    weight: float64,", text.index("record "))
                for i, c in enumerate("    extra: int64?,\n"):
                    yield name, at + i, at + i, c
                yield name, at, at + len("    extra: int64?,\n"), ""
            elif kind == "stream":
                at = text.index("\n\n", rng.choice(lines)) + 2
                typed = f"stream extra = {text[:at].rsplit('stream ', 1)[1].split(' ')[0]} |> take(10)\n\n"
                for i, c in enumerate(typed):
                    yield name, at + i, at + i, c
                yield name, at, at + len(typed), ""
            elif kind == "function":
                at = text.index("(1 - (d ?? 0))", text.index("fn net"))
                yield name, at + 1, at + 2, str(rng.randrange(1, 9))
                yield name, at + 1, at + 2, "1"
            else:
                at = rng.choice(lines)
                yield name, at, at, "\n"
                yield name, at, at + 1, ""


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dfc", default=os.environ.get("DFC", "target/release/dfc"))
    parser.add_argument("--keystrokes", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        files = project(folder, args.lines)
        server = Server(str(pathlib.Path(args.dfc).resolve()), folder)
        editor = Editor(server, folder, files)
        start = time.perf_counter()
        for name in ["main.df", "part0.df", "part3.df"]:
            editor.open(name)
        while True:
            message, now = server.receive()
            if message.get("method") == "textDocument/publishDiagnostics" and "main.df" in message["params"]["uri"]:
                break
        first = now - start
        if message["params"]["diagnostics"]:
            sys.exit(f"the project is not sound: {message['params']['diagnostics'][0]['message']}")
        findings, completions, empty = [], [], 0
        session = editor.session(rng)
        for count in range(args.keystrokes):
            name, begin, end, text = next(session)
            sent = editor.replace(name, begin, end, text)
            wanted = None
            if count % 4 == 0:
                asked = time.perf_counter()
                wanted = server.ask("textDocument/completion", {
                    "textDocument": {"uri": editor.uri(name)}, "position": editor.place(name, begin + len(text)),
                })
            uri, version, found = editor.uri(name), editor.versions[name], False
            while not found or wanted is not None:
                message, now = server.receive()
                params = message.get("params", {})
                if message.get("method") == "textDocument/publishDiagnostics":
                    if params["uri"] == uri and params.get("version") == version:
                        findings.append(now - sent)
                        found = True
                elif message.get("id") == wanted and "method" not in message:
                    completions.append(now - asked)
                    empty += not message.get("result")
                    wanted = None
        memory = server.memory()
        server.process.kill()
    lines = sum(text.count("\n") for text in files.values())
    print(f"{len(files)} files, {lines} lines; the first findings after {first * 1000:.0f} ms")
    print(f"{'':12}{'n':>6}{'p50':>9}{'p95':>9}{'p99':>9}{'max':>9}   ms")
    for label, times in [("findings", findings), ("completion", completions)]:
        cells = [percentile(times, share) for share in (0.50, 0.95, 0.99, 1.0)]
        print(f"{label:12}{len(times):6}" + "".join(f"{cell:9.1f}" for cell in cells))
    print(f"memory      {memory:6.0f} MB")
    worst = {"findings": percentile(findings, 0.99), "completion": percentile(completions, 0.99), "memory": memory}
    over = [name for name, aim in AIMS.items() if worst[name] > aim]
    if over and args.check:
        sys.exit("above the aim: " + ", ".join(f"{name} {worst[name]:.1f} > {AIMS[name]:.0f}" for name in over))


if __name__ == "__main__":
    main()
