/** The addresses and paths that an operator needs after a start by hand. Printed to stderr; stdout has the log's JSON lines. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Config, urlOf } from "../config.ts";
import { API_BASE } from "../http/route.ts";

export function printGreeting(config: Config, publicUrl: string, port: number): void {
  const base = urlOf(config.tls !== null, config.host, port) + API_BASE;
  const token = join(config.dataDir, "demo-token-1");
  const lines = [
    `page       ${publicUrl}/   (operators: ${publicUrl}/desk)`,
    `API        ${base}   (try ${base}/markets)`,
    `WebSocket  ${base.replace(/^http/, "ws")}/ws`,
    `data       ${config.dataDir}   durability ${config.durability}`,
    `mail       ${config.smtpUrl === null ? join(config.dataDir, "outbox") : "sent by SMTP"}`,
  ];
  if (existsSync(token)) lines.push(`tokens     cat ${token}   (demo-token-2: a second user to trade with)`);
  else lines.push('tokens     list users with their tokens in a SEED_FILE: docs/operations.md, "Configuration"');
  process.stderr.write(`\n${lines.join("\n")}\n\n`);
}
