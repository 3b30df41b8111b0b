/** Personal access tokens, which their owner creates and revokes. The token is returned once; only its SHA-256 is stored. */

import { randomBytes } from "node:crypto";
import { assert } from "../../engine/util/assert.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import { type Pat, TOKEN_PREFIX, TOKEN_SHOWN_LENGTH } from "../accounts/credentials.ts";
import { MAX_PATS_PER_USER } from "../accounts/limits.ts";
import { hashToken } from "../accounts/token-hash.ts";
import type { Principal } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { isAddressRange } from "../http/client-address.ts";
import { InFlightCounter } from "../util/in-flight-counter.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";

const TOKEN_BYTES = 32;

export interface PatRequest {
  readonly name: string;
  readonly scopes: readonly string[];
  /** ms */
  readonly expiresAt: number | null;
  /** Addresses and CIDR ranges that may use the token; null: any. */
  readonly allowedIps: readonly string[] | null;
}

export class Pats {
  private readonly accounts: Accounts;
  private readonly writer: LogWriter;
  private readonly inFlight = new InFlightCounter();

  constructor(accounts: Accounts, writer: LogWriter) {
    this.accounts = accounts;
    this.writer = writer;
  }

  /** @throws ApiError 40000, 40900 when the user has the maximum number */
  async create(
    principal: Principal,
    request: PatRequest,
    context: RequestContext,
  ): Promise<{ pat: Pat; token: string }> {
    const { userId } = principal;
    const { name, expiresAt, allowedIps } = request;
    if (expiresAt !== null && expiresAt <= context.now) throw badRequest("expires_at: must be in the future");
    const wrong = allowedIps?.find((range) => !isAddressRange(range));
    if (wrong !== undefined) throw badRequest("allowed_ips: each must be an IP address or a CIDR range");
    if (this.accounts.pats.countOf(userId) + this.inFlight.of(userId) >= MAX_PATS_PER_USER) {
      throw new ApiError(ErrorKind.conflict, `at most ${MAX_PATS_PER_USER} tokens: revoke one first`);
    }
    const token = TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString("base64url");
    const prefix = token.slice(0, TOKEN_SHOWN_LENGTH);
    const scopes = [...new Set(request.scopes)];
    const made = { tokenHash: hashToken(token), prefix, allowedAddresses: allowedIps, expiresAt, at: context.now };
    const write: RequestedWrite = { kind: "createToken", userId, name, scopes, ...made };
    const change = { action: "pat.create", userId, details: { scopes, expires_at: expiresAt } };
    const id = await this.inFlight.during(userId, () => {
      return this.writer.insert(write, [audit(context, actorOf(principal), change)]);
    });
    const pat = this.accounts.pats.get(id);
    assert(pat !== undefined, "a token that was written is in memory");
    // A password reset may have ended all access during the write.
    if (principal.credential.isEnded) {
      await this.revokeNow(pat, principal, context);
      throw new ApiError(ErrorKind.unauthenticated, "the session has ended");
    }
    return { pat, token };
  }

  /** @throws ApiError 4040 unless the caller owns it */
  async revoke(principal: Principal, id: number, context: RequestContext): Promise<void> {
    const pat = this.accounts.pats.get(id);
    if (pat === undefined || pat.user.id !== principal.userId) throw notFound("token");
    await this.revokeNow(pat, principal, context);
  }

  private async revokeNow(pat: Pat, principal: Principal, context: RequestContext): Promise<void> {
    const { id } = pat;
    this.accounts.endPat(pat);
    const set = { revokedAt: context.now };
    const change = { action: "pat.revoke", userId: principal.userId, subject: id };
    await this.writer.write(
      [{ kind: "update", table: "personal_access_tokens", id, set }],
      [audit(context, actorOf(principal), change)],
    );
  }
}
