/** How the database records that an OAuth client was removed; the developer's request and an account's closing share it. */
import type { RequestedWrite } from "../writes/types.ts";

/** Clears the client's row but keeps its id until a sweep deletes it, so that removed clients take no space. */
export function clientRemoval(id: number, now: number): RequestedWrite & { kind: "update" } {
  const set = { name: "", redirectUris: "", secretHash: null, deletedAt: now };
  return { kind: "update", table: "oauth_clients", id, set };
}
