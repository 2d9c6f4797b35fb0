// Starts the language server, `dfc lsp`. Knows nothing of VS Code.
"use strict";

const { spawn } = require("node:child_process");

/**
 * How the server is started.
 * @param {{ path?: string }} settings `path`: the `dfc` program, a name on the path or a file
 * @returns {{ command: string, args: string[] }}
 */
function command(settings) {
  return { command: settings.path?.trim() || "dfc", args: ["lsp", "--stdio"] };
}

/**
 * Starts the server; it talks over its standard input and output.
 * @param {{ path?: string }} settings as for `command`
 * @param {string | undefined} folder the folder it runs in
 * @returns {Promise<import("node:child_process").ChildProcess>} rejected, with what to do, where it can't be started
 */
function launch(settings, folder) {
  const { command: program, args } = command(settings);
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
    child.once("spawn", () => resolve(child));
    child.once("error", (error) =>
      reject(new Error(`can't start \`${program}\` (${error.code ?? error.message}): name the program in the setting \`dfc.path\``)),
    );
  });
}

module.exports = { command, launch };
