/** The linters of both formats read the served API documents. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Parser } from "@asyncapi/parser";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Client } from "../support/client.ts";
import type { Node } from "../support/documents.ts";
import { TestServer, temporaryFolder } from "../support/server.ts";
import { PUBLIC_URL } from "../support/world.ts";

const REDOCLY = fileURLToPath(new URL("../../node_modules/@redocly/cli/bin/cli.js", import.meta.url));
/** Sign-in and consent redirect the browser: their only success is 302. */
const LINT_RULES = "extends: [recommended]\nrules:\n  operation-2xx-response: off\n";

let server: TestServer;
let client: Client;
beforeAll(async () => {
  server = await TestServer.start({ env: { PUBLIC_URL } });
  client = new Client(server, null);
});
afterAll(async () => {
  client.close();
  await server.stop();
});

test("the linter finds nothing in the OpenAPI document", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "redocly.yaml"), LINT_RULES);
  const { data } = await client.requestRoot("GET", "/openapi.json");
  writeFileSync(join(folder, "openapi.json"), JSON.stringify(data));
  const env = { PATH: process.env["PATH"], REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const args = [REDOCLY, "lint", "openapi.json", "--format=json"];
  const report = await new Promise<Node>((resolve, reject) => {
    execFile(process.execPath, args, { cwd: folder, env, maxBuffer: 2 ** 26 }, (error, out, errors) => {
      try {
        resolve(JSON.parse(out));
      } catch {
        reject(error ?? new Error(errors));
      }
    });
  });
  const shown = report.problems.map(({ ruleId, message, location }: Node) => [ruleId, message, location?.[0]?.pointer]);
  expect(shown).toEqual([]);
  expect(report.totals).toMatchObject({ errors: 0, warnings: 0 });
});

test("the parser finds nothing in the AsyncAPI document", async () => {
  const { data } = await client.requestRoot("GET", "/asyncapi.json");
  const { document, diagnostics } = await new Parser().parse(JSON.stringify(data));
  // The parser recommends 3.1, which client generators don't support yet.
  const findings = diagnostics.filter(({ code }) => code !== "asyncapi-latest-version");
  expect(findings.map(({ code, message, path }) => [code, message, path.join("/")])).toEqual([]);
  expect(document!.version()).toBe("3.0.0");
});
