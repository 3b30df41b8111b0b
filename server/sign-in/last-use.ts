/** Records in the database when tokens, sessions and grants were last used: write-behind, at most once a minute each. */

import { Session } from "../accounts/credentials.ts";
import type { Credential } from "../accounts/types.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import type { Authenticator } from "./authenticator.ts";

export class LastUse {
  private readonly authenticator: Authenticator;
  private readonly writer: LogWriter;

  constructor(authenticator: Authenticator, writer: LogWriter) {
    this.authenticator = authenticator;
    this.writer = writer;
  }

  /** Writes what changed since the last call. */
  async write(): Promise<void> {
    const writes: RequestedWrite[] = [];
    for (const credential of this.authenticator.drainUsed()) writes.push(...writesOf(credential));
    if (writes.length > 0) await this.writer.write(writes);
  }
}

function writesOf(credential: Credential): RequestedWrite[] {
  const { id, lastUsedAt } = credential;
  const set = { lastUsedAt };
  if (!(credential instanceof Session)) return [{ kind: "update", table: "personal_access_tokens", id, set }];
  const { grant } = credential;
  const writes: RequestedWrite[] = [{ kind: "update", table: "sessions", id, set }];
  if (grant !== null) writes.push({ kind: "update", table: "oauth_grants", id: grant.row.id, set });
  return writes;
}
