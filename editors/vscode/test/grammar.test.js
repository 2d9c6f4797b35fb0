// The highlighting grammar against the lexer: every token of every pipeline in the repository has the class that its kind
// asks for, from its first letter to its last.
"use strict";

const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const onig = require("vscode-oniguruma");
const { INITIAL, Registry, parseRawGrammar } = require("vscode-textmate");
const { binary, pipelines } = require("./support");

/** What the scope of a kind of token must look like. Kinds that are mistakes may look like anything. */
const CLASSES = {
  Comment: /^comment\.line/,
  Doc: /^comment\.line\.documentation/,
  FileDoc: /^comment\.line\.documentation\.file/,
  BlockComment: /^invalid/,
  HashComment: /^invalid/,
  Name: /^(variable|entity|support\.type|storage|keyword\.(other|control\.import))/,
  QuotedName: /^variable\.other\.quoted/,
  Number: /^constant\.numeric\.df/,
  DateTime: /^constant\.numeric\.date/,
  String: /^string\.quoted\.double/,
  RawString: /^string\.quoted\.other\.raw/,
  TripleString: /^string\.quoted\.triple/,
  FormatString: /^string\.interpolated/,
  SingleQuoted: /^invalid/,
  ForeignOperator: /^invalid/,
};
const WORDS = /^(And|Or|Not|In|Is|Between|Like|Matches|As|If|Else|Match|True|False|Null|Div)$/;
// A reserved word may be a label (`match: one`) or stand after a point.
const WORD = /^(keyword\.(control|operator\.word)|constant\.language|variable\.(parameter|other\.member))/;
const SIGN = /^(keyword\.operator|punctuation)/;

async function grammar() {
  const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
  await onig.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const file = path.join(__dirname, "../syntaxes/df.tmLanguage.json");
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new onig.OnigScanner(patterns),
      createOnigString: (text) => new onig.OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(fs.readFileSync(file, "utf8"), file),
  });
  return registry.loadGrammar("source.df");
}

/** The class of every character: the scope of the whole token it is in. */
function classes(grammar, text) {
  const out = new Array(text.length).fill("");
  let stack = INITIAL;
  let start = 0;
  for (const line of text.split("\n")) {
    const result = grammar.tokenizeLine(line, stack);
    for (const token of result.tokens) {
      // Inside a string escapes and expressions have classes of their own; the outermost one counts.
      const scope = token.scopes.find((scope) => scope.startsWith("string") || scope.startsWith("invalid"));
      const own = scope ?? token.scopes.at(-1);
      out.fill(own, start + token.startIndex, Math.min(start + token.endIndex, text.length));
    }
    stack = result.ruleStack;
    start += line.length + 1;
  }
  return out;
}

/** The lexer's tokens with their places in characters. */
function tokens(file, text) {
  const bytes = Buffer.from(text);
  const index = new Uint32Array(bytes.length + 1);
  for (let character = 0, at = 0; character < text.length; ) {
    const symbol = String.fromCodePoint(text.codePointAt(character));
    const length = Buffer.byteLength(symbol);
    index.fill(character, at, at + length);
    character += symbol.length;
    at += length;
    index[at] = character;
  }
  const shown = execFileSync(binary(), ["plan", "--emit", "tokens", file], { encoding: "utf8", maxBuffer: 1 << 26 });
  return shown.split("\n").filter(Boolean).map((line) => {
    const [, from, to, kind] = /^(\d+)\.\.(\d+) (\w+) /.exec(line);
    return { start: index[from], end: index[to], kind };
  });
}

test("every token of every pipeline has its class", async () => {
  const rules = await grammar();
  const wrong = [];
  let seen = 0;
  for (const file of pipelines()) {
    // A byte order mark is no part of the text, for the compiler as for an editor.
    const text = fs.readFileSync(file, "utf8").replace(/^\ufeff/, "");
    const found = tokens(file, text);
    const given = classes(rules, text);
    for (const token of found) {
      const shown = text.slice(token.start, token.end);
      // The lexer gives a text without an end up at its line's end, so that the rest stays readable.
      if ((token.kind === "TripleString" && !/^"""[^]*"""$/.test(shown)) || (token.kind === "BlockComment" && !shown.endsWith("*/"))) {
        break;
      }
      const expected = CLASSES[token.kind] ?? (WORDS.test(token.kind) ? WORD : token.kind === "Unknown" ? /./ : SIGN);
      for (let at = token.start; token.kind !== "Whitespace" && at < token.end; at++) {
        if (text[at] !== "\n" && text[at] !== "\r" && !expected.test(given[at])) {
          const line = text.slice(0, at).split("\n").length;
          wrong.push(`${file}:${line}: ${token.kind} ${JSON.stringify(shown)} is ${given[at]}`);
          break;
        }
      }
      seen += 1;
    }
  }
  assert.ok(seen > 20000, `only ${seen} tokens`);
  assert.deepStrictEqual(wrong, []);
});
