/**
 * The servers for comparison, each in its own process on a free port of 127.0.0.1: the bare handler; the plain service,
 * which accepts the same orders in the way that one would write it within a day; and the memory service, which matches them
 * with a package's order book and keeps nothing.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sqlitePath } from "../../../engine/util/sqlite.ts";
import { Child } from "../../support/child.ts";

export class Baseline {
  readonly url: string;
  private readonly child: Child;

  private constructor(child: Child, port: string) {
    this.child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** @param answerBytes the length of its responses */
  static bareHandler(answerBytes: number): Promise<Baseline> {
    return Baseline.start(new Child("the bare handler", "bench/children/bare-handler.js", [String(answerBytes)], {}));
  }

  /** Its packages must be installed; it opens its database with our better-sqlite3. @param folder for its database, plain.db @param seed as the exchange takes it */
  static plainService(folder: string, seed: object): Promise<Baseline> {
    const args = [join(folder, "plain.db"), writeSeed(folder, seed), sqlitePath()];
    return Baseline.start(new Child("the plain service", "../bench/rivals/plain-service.js", args, {}));
  }

  /** Its packages must be installed. @param folder for a copy of the seed */
  static memoryService(folder: string, seed: object): Promise<Baseline> {
    const args = [writeSeed(folder, seed)];
    return Baseline.start(new Child("the memory service", "../bench/rivals/memory-service.js", args, {}));
  }

  private static async start(child: Child): Promise<Baseline> {
    return new Baseline(child, await child.line((line) => /^port (\d+)$/.exec(line)?.[1]));
  }

  async stop(): Promise<void> {
    this.child.process.kill("SIGTERM");
    await this.child.ended;
  }
}

function writeSeed(folder: string, seed: object): string {
  const file = join(folder, "rival-seed.json");
  writeFileSync(file, JSON.stringify(seed), { mode: 0o600 });
  return file;
}
