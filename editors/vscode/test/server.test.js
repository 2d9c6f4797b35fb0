// The client module against the real server: it starts, finds a mistake, completes, formats, and ends.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
const { pathToFileURL } = require("node:url");
const protocol = require("vscode-languageserver-protocol/node");
const { command, launch } = require("../src/server");
const { binary } = require("./support");

const TEXT = `job copy {}
record Order { id: int64, price: decimal(15, 2)? }
source orders = csv("orders.csv", schema: Order)
stream paid = orders |> filter(pric > 0)
sink paid   |>   csv("out.csv")
`;

/** A running server with one file open in it. */
async function session(run) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "dfc-vscode-"));
  const file = path.join(folder, "copy.df");
  fs.writeFileSync(file, TEXT);
  const child = await launch({ path: binary() }, folder);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  // A server that ends too early must not be waited for.
  const early = ended.then((code) => Promise.reject(new Error(`the server ended with ${code}: ${said}`)));
  early.catch(() => {});
  const connection = protocol.createProtocolConnection(
    new protocol.StreamMessageReader(child.stdout),
    new protocol.StreamMessageWriter(child.stdin),
  );
  const uri = pathToFileURL(file).href;
  const waiting = [];
  connection.onNotification(protocol.PublishDiagnosticsNotification.type, (params) => {
    if (params.uri === uri) {
      waiting.splice(0).forEach((resolve) => resolve(params.diagnostics));
    }
  });
  connection.listen();
  try {
    const server = await Promise.race([early, connection.sendRequest(protocol.InitializeRequest.type, {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      workspaceFolders: [{ uri: pathToFileURL(folder).href, name: "test" }],
      capabilities: { textDocument: { completion: { completionItem: { snippetSupport: true } }, publishDiagnostics: {} } },
    })]);
    await connection.sendNotification(protocol.InitializedNotification.type, {});
    const diagnostics = () => new Promise((resolve) => waiting.push(resolve));
    await Promise.race([early, run({ connection, uri, server, diagnostics })]);
    await connection.sendRequest(protocol.ShutdownRequest.type);
    await connection.sendNotification(protocol.ExitNotification.type);
    assert.strictEqual(await ended, 0, "the server ends properly");
  } finally {
    connection.dispose();
    child.kill();
    fs.rmSync(folder, { recursive: true });
  }
}

test("open, diagnostics, completion, format", { timeout: 120000 }, () =>
  session(async ({ connection, uri, server, diagnostics }) => {
    assert.ok(server.capabilities.completionProvider && server.capabilities.documentFormattingProvider);
    const first = diagnostics();
    await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
      textDocument: { uri, languageId: "df", version: 1, text: TEXT },
    });
    const found = await first;
    assert.deepStrictEqual(found.map((one) => [one.code, one.range.start]), [["E0410", { line: 3, character: 31 }]]);

    const after = diagnostics();
    await connection.sendNotification(protocol.DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version: 2 },
      contentChanges: [{ range: { start: { line: 3, character: 35 }, end: { line: 3, character: 35 } }, text: "e" }],
    });
    assert.deepStrictEqual((await after).filter((one) => one.severity === 1), []);

    const offered = await connection.sendRequest(protocol.CompletionRequest.type, {
      textDocument: { uri },
      position: { line: 3, character: 33 },
    });
    const labels = (offered.items ?? offered).map((item) => item.label);
    assert.ok(labels.includes("price"), `fields of the stream are offered: ${labels.slice(0, 20)}`);

    const edits = await connection.sendRequest(protocol.DocumentFormattingRequest.type, {
      textDocument: { uri },
      options: { tabSize: 4, insertSpaces: true },
    });
    const lines = TEXT.replace("pric >", "price >").split("\n");
    for (const edit of [...edits].reverse()) {
      const { start, end } = edit.range;
      assert.strictEqual(start.line, end.line);
      lines[start.line] = lines[start.line].slice(0, start.character) + edit.newText + lines[start.line].slice(end.character);
    }
    assert.strictEqual(lines[4], 'sink paid |> csv("out.csv")');
  }));

test("a program that isn't there is named with what to do", async () => {
  assert.deepStrictEqual(command({}), { command: "dfc", args: ["lsp", "--stdio"] });
  assert.deepStrictEqual(command({ path: " /opt/dfc " }).command, "/opt/dfc");
  await assert.rejects(launch({ path: "/nowhere/dfc" }), /can't start `\/nowhere\/dfc` \(ENOENT\): name the program in the setting/);
});
