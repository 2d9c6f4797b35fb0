// What the tests share: the built program and the files of the repository.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const root = path.resolve(__dirname, "../../..");

/** The built `dfc`. */
function binary() {
  const found = process.env.DFC_BINARY;
  if (!found) {
    throw new Error("DFC_BINARY must name the built `dfc`: DFC_BINARY=../../target/debug/dfc npm test");
  }
  return path.resolve(found);
}

/** Every `.df` file below a folder of the repository. */
function pipelines(folder = "") {
  const skipped = new Set(["target", "node_modules"]);
  const out = [];
  const walk = (at) => {
    for (const entry of fs.readdirSync(at, { withFileTypes: true })) {
      const here = path.join(at, entry.name);
      if (entry.isDirectory() && !skipped.has(entry.name) && !entry.name.startsWith(".")) {
        walk(here);
      } else if (entry.name.endsWith(".df")) {
        out.push(here);
      }
    }
  };
  walk(path.join(root, folder));
  return out.sort();
}

module.exports = { root, binary, pipelines };
