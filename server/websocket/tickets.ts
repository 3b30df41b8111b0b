/**
 * Tickets for the WebSocket: a client puts one into the URL instead of its token. A ticket is good for one connection
 * within a minute and lives in memory only: a restart ends connections and tickets alike.
 */
import { randomBytes } from "node:crypto";
import { hashToken } from "../accounts/token-hash.ts";
import type { Principal } from "../accounts/types.ts";
import { overloaded } from "../errors.ts";
import { MAX_SOCKET_TICKETS, SOCKET_TICKET_MS } from "./limits.ts";

export const TICKET_PREFIX = "pm_wst_";

export class SocketTickets {
  /** By the ticket's hash, oldest first. */
  private readonly open = new Map<string, { readonly principal: Principal; readonly expiresAt: number }>();

  /** @param now ms @throws ApiError 50300 where too many tickets are unused */
  issue(principal: Principal, now: number): { ticket: string; expiresAt: number } {
    this.forgetExpired(now);
    if (this.open.size >= MAX_SOCKET_TICKETS) throw overloaded("too many tickets are open: try again");
    const ticket = TICKET_PREFIX + randomBytes(32).toString("base64url");
    const expiresAt = now + SOCKET_TICKET_MS;
    this.open.set(hashToken(ticket), { principal, expiresAt });
    return { ticket, expiresAt };
  }

  /** Uses the ticket up and returns its holder; null where it is unknown, used or expired. */
  redeem(ticket: string, now: number): Principal | null {
    const key = hashToken(ticket);
    const found = this.open.get(key);
    this.open.delete(key);
    return found === undefined || found.expiresAt <= now ? null : found.principal;
  }

  private forgetExpired(now: number): void {
    for (const [key, { expiresAt }] of this.open) {
      if (expiresAt > now) return;
      this.open.delete(key);
    }
  }
}
