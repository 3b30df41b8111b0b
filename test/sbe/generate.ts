/** The files that `npm run sbe` writes from sbe.xml: the server's codec, a C header, a Python module and the vectors. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cText } from "./c-text.ts";
import { checkChoices } from "./choices.ts";
import { codecTexts } from "./codec-text.ts";
import { pythonText } from "./python-text.ts";
import { readSchema, type Schema } from "./schema.ts";
import { vectorsOf } from "./vectors.ts";

const SCHEMA_FILE = "server/websocket/sbe/sbe.xml";
const CODEC = "server/websocket/sbe/codec/";

/** @param root the project's folder */
export function readProjectSchema(root: string): Schema {
  return readSchema(readFileSync(`${root}/${SCHEMA_FILE}`, "utf8"));
}

/** Texts by paths in the project's folder. @throws Error for a schema that breaks a rule, saying which */
export function generatedFiles(root: string): ReadonlyMap<string, string> {
  const schema = readProjectSchema(root);
  checkChoices(schema);
  const vectors = vectorsOf(schema).map((vector) => `  ${JSON.stringify(vector)}`);
  return new Map([
    ...Object.entries(codecTexts(schema)).map(([name, text]) => [CODEC + name, formatted(root, text)] as const),
    ["docs/sbe/exchange_sbe.h", cText(schema)],
    ["docs/sbe/exchange_sbe.py", pythonText(schema)],
    ["docs/sbe/vectors.json", `[\n${vectors.join(",\n")}\n]\n`],
  ]);
}

/** TypeScript as the linter wants it. */
function formatted(root: string, text: string): string {
  const biome = `${root}/node_modules/@biomejs/biome/bin/biome`;
  return execFileSync(process.execPath, [biome, "format", "--stdin-file-path=codec.ts"], {
    cwd: root,
    input: text,
    encoding: "utf8",
  });
}
