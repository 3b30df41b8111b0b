/** `npm run sbe`: writes the files that derive from sbe.xml. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "../../bench/support/root.ts";
import { generatedFiles } from "./generate.ts";

const root = fileURLToPath(ROOT);
for (const [path, text] of generatedFiles(root)) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
  console.log(path);
}
