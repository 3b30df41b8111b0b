/** The seed of a first start without SEED_FILE: sample markets, and two users to try them with. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TOKEN_PREFIX } from "../accounts/credentials.ts";
import { SCOPES } from "../accounts/types.ts";
import { readSeed, type Seed } from "./seed.ts";

/** Relative to the build, which is in dist/builds/HASH. */
const SAMPLE_MARKETS = fileURLToPath(new URL("../../../data/sample-markets.json", import.meta.url));

/** Writes the users' tokens into files of the data folder that only the owner can read. */
export function createSampleSeed(dataDir: string): Seed {
  const seed = readSeed(SAMPLE_MARKETS);
  const users = [1, 2].map((n) => {
    const token = TOKEN_PREFIX + randomBytes(32).toString("base64url");
    writeFileSync(join(dataDir, `demo-token-${n}`), `${token}\n`, { mode: 0o600 });
    const pats = [{ name: "demo", scopes: [...SCOPES], token }];
    return { email: `demo-${n}@example.com`, role: "user", kyc_tier: 2, deposit: 10_000_000_000, pats };
  });
  return { ...seed, users } as Seed;
}
