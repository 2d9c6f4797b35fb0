// The extension itself, in a stand-in for VS Code: what it registers, what its commands run, how its client is made; and
// the problem matchers against what dfc really writes.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const test = require("node:test");
const { binary, root } = require("./support");

const manifest = JSON.parse(fs.readFileSync(path.join(__dirname, "../package.json"), "utf8"));

/** Just enough of VS Code, which remembers what was asked of it. */
function standIn() {
  const seen = { commands: new Map(), providers: new Map(), executed: [], clients: [], errors: [], saved: 0 };
  const document = {
    languageId: "df",
    isDirty: true,
    uri: { fsPath: "/work/a b.df" },
    save: async () => (seen.saved += 1),
  };
  const vscode = {
    TaskGroup: { Build: "build", Test: "test" },
    TaskScope: { Workspace: 2 },
    Uri: { parse: (text) => ({ fsPath: decodeURIComponent(new URL(text).pathname) }) },
    ProcessExecution: class {
      constructor(process, args) {
        Object.assign(this, { process, args });
      }
    },
    Task: class {
      constructor(definition, scope, name, source, execution, matchers) {
        Object.assign(this, { definition, scope, name, source, execution, matchers });
      }
    },
    commands: {
      registerCommand: (name, run) => (seen.commands.set(name, run), { dispose() {} }),
      executeCommand: (name) => seen.commands.get(name)(),
    },
    tasks: {
      registerTaskProvider: (type, provider) => (seen.providers.set(type, provider), { dispose() {} }),
      executeTask: async (task) => void seen.executed.push(task),
    },
    window: { activeTextEditor: { document }, showErrorMessage: (text) => void seen.errors.push(text) },
    workspace: {
      textDocuments: [document],
      workspaceFolders: [{ uri: { fsPath: root } }],
      asRelativePath: (file) => path.basename(file),
      getConfiguration: () => ({ get: (name) => ({ path: binary(), params: { since: "2026-01-31" } })[name] }),
      createFileSystemWatcher: () => ({}),
      onDidChangeConfiguration: () => ({ dispose() {} }),
    },
  };
  class LanguageClient {
    constructor(id, name, server, options) {
      Object.assign(this, { server, options });
      seen.clients.push(this);
    }
    async start() {
      this.child = await this.server();
    }
    isRunning() {
      return this.child !== undefined;
    }
    async stop() {
      this.child.kill();
    }
  }
  return { seen, vscode, LanguageClient };
}

/** The extension with the stand-in in VS Code's place. */
function load({ vscode, LanguageClient }) {
  const original = Module._load;
  Module._load = (name, ...rest) => {
    if (name === "vscode") {
      return vscode;
    }
    return name === "vscode-languageclient/node" ? { LanguageClient } : original(name, ...rest);
  };
  try {
    for (const file of ["extension", "tasks", "server"]) {
      delete require.cache[require.resolve(`../src/${file}`)];
    }
    return require("../src/extension");
  } finally {
    Module._load = original;
  }
}

test("commands, tasks and the client", async () => {
  const stand = standIn();
  const { seen } = stand;
  const extension = load(stand);
  const context = { subscriptions: [] };
  await extension.activate(context);
  try {
    assert.deepStrictEqual(seen.errors, []);
    const declared = manifest.contributes.commands.map((one) => one.command).sort();
    assert.deepStrictEqual([...seen.commands.keys()].sort(), declared);
    // The client registers the server's own commands by itself: the names must differ.
    assert.ok(!declared.some((name) => ["dfc.check", "dfc.run", "dfc.plan", "dfc.lineage"].includes(name)));

    await seen.commands.get("dfc.runFile")();
    const [task] = seen.executed;
    assert.deepStrictEqual([task.execution.process, task.execution.args], [binary(), ["run", "/work/a b.df"]]);
    assert.deepStrictEqual([task.matchers, seen.saved], [["$dfc-check", "$dfc-run"], 1]);

    // A lens above a job runs in the terminal; other commands go to the server.
    const { initializationOptions, middleware } = seen.clients[0].options;
    assert.deepStrictEqual(initializationOptions, { params: { since: "2026-01-31" } });
    const { executeCommand } = middleware;
    await executeCommand("dfc.check", ["file:///work/a%20b.df"], () => assert.fail("not the server's"));
    assert.deepStrictEqual(seen.executed[1].execution.args, ["check", "/work/a b.df"]);
    assert.strictEqual(executeCommand("dfc.lineage", [], (name) => name), "dfc.lineage");

    const provider = seen.providers.get("dfc");
    assert.deepStrictEqual(provider.provideTasks().map((one) => one.definition.command), ["check", "run", "plan"]);
    const own = { type: "dfc", command: "run", file: "x.df", args: ["--set", "day=2026-01-31"] };
    assert.deepStrictEqual(provider.resolveTask({ definition: own }).execution.args, ["run", "x.df", "--set", "day=2026-01-31"]);
    assert.strictEqual(provider.resolveTask({ definition: { type: "dfc", command: "fly", file: "x.df" } }), undefined);

    await seen.commands.get("dfc.restartServer")();
    assert.strictEqual(seen.clients.length, 2);
  } finally {
    await extension.deactivate();
  }
});

/** What a problem matcher makes of an output. */
function problems(name, output) {
  const { pattern } = manifest.contributes.problemMatchers.find((one) => one.name === name);
  const lines = output.split("\n");
  const found = [];
  lines.forEach((line, i) => {
    const [head, place] = [line.match(pattern[0].regexp), lines[i + 1]?.match(pattern[1].regexp)];
    if (head && place) {
      const [first, second] = pattern;
      found.push([head[first.code], head[first.severity], place[second.file], Number(place[second.line])]);
    }
  });
  return found;
}

test("problem matchers read what dfc writes", () => {
  const folder = path.join(root, "tests/golden/diagnostics");
  let seen = 0;
  for (const name of fs.readdirSync(folder).filter((name) => /^E05.*\.out$/.test(name))) {
    const output = fs.readFileSync(path.join(folder, name), "utf8");
    const heads = output.split("\n").filter((line) => /^\[[EW]\d+\]/.test(line)).length;
    const found = problems("dfc-check", output);
    assert.strictEqual(found.length, heads, name);
    assert.ok(found.every(([code, severity, file]) => /^[EW]/.test(code) && /error|warning/.test(severity) && file.endsWith(".df")));
    seen += heads;
  }
  assert.ok(seen > 30, `only ${seen} findings`);
  const run = "error[R0101]: orders: something failed\n  --> pipeline.df:7:5\n   |  filter(x)\n";
  assert.deepStrictEqual(problems("dfc-run", run), [["R0101", "error", "pipeline.df", 7]]);
});
