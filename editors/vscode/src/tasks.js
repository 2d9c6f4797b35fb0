// Tasks: `dfc check`, `run` and `plan` in the terminal, their findings as problems.
"use strict";

const vscode = require("vscode");
const { command } = require("./server");

/** What can be done with a file, with the matchers that read its output. */
const KINDS = {
  check: { group: vscode.TaskGroup.Build, matchers: ["$dfc-check"] },
  run: { group: vscode.TaskGroup.Test, matchers: ["$dfc-check", "$dfc-run"] },
  plan: { group: undefined, matchers: ["$dfc-check"] },
};

/**
 * The task of a definition.
 * @param {{ type: "dfc", command: string, file: string, args?: string[] }} definition
 * @param {{ path?: string }} settings
 */
function task(definition, settings) {
  const kind = KINDS[definition.command];
  if (!kind || !definition.file) {
    return undefined;
  }
  const line = [definition.command, definition.file, ...(definition.args ?? [])];
  const name = `${definition.command} ${vscode.workspace.asRelativePath(definition.file)}`;
  const execution = new vscode.ProcessExecution(command(settings).command, line);
  const made = new vscode.Task(definition, vscode.TaskScope.Workspace, name, "dfc", execution, kind.matchers);
  made.group = kind.group;
  return made;
}

/** The tasks of the file that is open, and of those that are named in `tasks.json`. */
function provider(settings) {
  return {
    provideTasks() {
      const document = vscode.window.activeTextEditor?.document;
      if (document?.languageId !== "df") {
        return [];
      }
      return Object.keys(KINDS).map((name) => task({ type: "dfc", command: name, file: document.uri.fsPath }, settings()));
    },
    resolveTask(given) {
      return task(given.definition, settings());
    },
  };
}

module.exports = { task, provider, KINDS };
