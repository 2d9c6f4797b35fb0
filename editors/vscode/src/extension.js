// The extension: a client of `dfc lsp`, and commands that check, run and plan the open pipeline in the terminal.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { launch } = require("./server");
const tasks = require("./tasks");

/** @type {LanguageClient | undefined} */
let client;

const setting = (name) => vscode.workspace.getConfiguration("dfc").get(name);
const settings = () => ({ path: setting("path") });

/** Saves the file and runs a task on it. */
async function execute(command, file) {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.fsPath === file);
  if (open?.isDirty) {
    await open.save();
  }
  return vscode.tasks.executeTask(tasks.task({ type: "dfc", command, file }, settings()));
}

function makeClient() {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  return new LanguageClient("dfc", "dfc", () => launch(settings(), folder), {
    documentSelector: [{ scheme: "file", language: "df" }],
    initializationOptions: { params: setting("params") ?? {} },
    synchronize: {
      configurationSection: "dfc",
      fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{df,df.lock}"),
    },
    middleware: {
      // The lenses above a job belong in the terminal, where output can be read and a run stopped.
      executeCommand(command, args, next) {
        const kind = { "dfc.check": "check", "dfc.run": "run", "dfc.plan": "plan" }[command];
        return kind ? execute(kind, vscode.Uri.parse(args[0]).fsPath) : next(command, args);
      },
    },
  });
}

async function start() {
  client = makeClient();
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(`dfc: ${error.message}`);
  }
}

async function activate(context) {
  const onFile = (command) => () => {
    const file = vscode.window.activeTextEditor?.document.uri.fsPath;
    return file && execute(command, file);
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("dfc.checkFile", onFile("check")),
    vscode.commands.registerCommand("dfc.runFile", onFile("run")),
    vscode.commands.registerCommand("dfc.planFile", onFile("plan")),
    vscode.commands.registerCommand("dfc.restartServer", async () => {
      await deactivate();
      await start();
    }),
    vscode.tasks.registerTaskProvider("dfc", tasks.provider(settings)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("dfc.path")) {
        return vscode.commands.executeCommand("dfc.restartServer");
      }
    }),
  );
  await start();
}

async function deactivate() {
  const old = client;
  client = undefined;
  // A server that never started can't be stopped.
  if (old?.isRunning()) {
    await old.stop();
  }
}

module.exports = { activate, deactivate };
