/**
 * Second factors: the TOTPs, passkeys and recovery codes of each account, and the verification of codes and passkey
 * responses. A correct one is used up at once and counts once that is durable, so that no code works twice, even after a
 * crash. Owned by the gateway thread.
 */

import { randomBytes } from "node:crypto";
import type { SecondFactorRow, TotpRow } from "../../engine/log/rows.ts";
import type { SecondFactorRows } from "../../engine/projection/load/accounts.ts";
import { assert } from "../../engine/util/assert.ts";
import { isSixDigits, withoutSeparators } from "../accounts/code-text.ts";
import { RECOVERY_CODES } from "../accounts/limits.ts";
import { hashToken } from "../accounts/token-hash.ts";
import type { ProofMethod } from "../accounts/types.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import type { Passkeys } from "./passkeys.ts";
import type { SecondFactorKeys } from "./second-factor-keys.ts";
import { base32, matchStep } from "./totp.ts";

/** A proof of a second factor: a six-digit code, a recovery code, or a browser's response for a passkey. */
export interface FactorProof {
  readonly code?: string | undefined;
  readonly passkey?: object | undefined;
}

/** A correct proof: used up in memory, and durably once `writes` are committed. */
export interface UsedFactor {
  readonly method: ProofMethod;
  /** Null for a recovery code. */
  readonly factor: SecondFactorRow | null;
  readonly writes: readonly RequestedWrite[];
}

/** 80 bits, formatted as four groups of four. */
const RECOVERY_BYTES = 10;

interface Options {
  readonly writer: LogWriter;
  readonly keys: SecondFactorKeys;
  readonly passkeys: Passkeys;
}

export class SecondFactors {
  private readonly options: Options;
  /** By user, then by id. */
  private readonly factors = new Map<number, Map<number, SecondFactorRow>>();
  /** Credential ids of all passkeys: a passkey belongs to one account. */
  private readonly credentials = new Set<string>();
  /** By user: recovery code ids by hash. */
  private readonly codes = new Map<number, Map<string, number>>();
  private lastId: number;

  constructor(options: Options, rows: SecondFactorRows) {
    this.options = options;
    this.lastId = rows.lastId;
    for (const row of rows.factors) this.index(row);
    for (const { id, userId, codeHash } of rows.codes) this.codesOf(userId).set(codeHash, id);
  }

  has(userId: number): boolean {
    return this.factors.has(userId);
  }

  /** Oldest first. */
  of(userId: number): SecondFactorRow[] {
    return [...(this.factors.get(userId)?.values() ?? [])];
  }

  find(userId: number, id: number): SecondFactorRow | undefined {
    return this.factors.get(userId)?.get(id);
  }

  codesLeft(userId: number): number {
    return this.codes.get(userId)?.size ?? 0;
  }

  /** TOTPs whose key is missing, so that their codes cannot be verified. */
  countUnreadable(): number {
    const all = [...this.factors.values()].flatMap((mine) => [...mine.values()]);
    return all.filter((row) => row.kind === "totp" && this.secretOf(row) === null).length;
  }

  /** True if an account has this passkey. */
  isTaken(credentialId: string): boolean {
    return this.credentials.has(credentialId);
  }

  nextId(): number {
    return ++this.lastId;
  }

  /** The methods that the user can use now. */
  methodsOf(userId: number): ProofMethod[] {
    const own = this.of(userId);
    const methods: ProofMethod[] = [];
    if (own.some((row) => row.kind === "totp" && this.secretOf(row) !== null)) methods.push("totp");
    if (own.some((row) => this.options.passkeys.isUsable(row))) methods.push("passkey");
    if (this.codesLeft(userId) > 0) methods.push("recovery_code");
    return methods;
  }

  // ---------------------------------------------------------------- verification

  /** Uses up one of the user's codes; null for a wrong one. */
  useCode(userId: number, text: string, now: number): UsedFactor | null {
    const code = withoutSeparators(text);
    return isSixDigits(code) ? this.useTotp(userId, code, now) : this.useRecoveryCode(userId, code, now);
  }

  private useTotp(userId: number, code: string, now: number): UsedFactor | null {
    for (const row of this.of(userId)) {
      if (row.kind !== "totp") continue;
      const secret = this.secretOf(row);
      const step = secret === null ? null : matchStep(secret, code, now, row.lastStep);
      if (step === null) continue;
      const set = { lastStep: step, lastUsedAt: now };
      Object.assign(row, set);
      return { method: "totp", factor: row, writes: [{ kind: "update", table: "second_factors", id: row.id, set }] };
    }
    return null;
  }

  private useRecoveryCode(userId: number, code: string, now: number): UsedFactor | null {
    const mine = this.codes.get(userId);
    const hash = hashToken(code.toUpperCase());
    const id = mine?.get(hash);
    if (mine === undefined || id === undefined) return null;
    mine.delete(hash);
    const write = { kind: "update", table: "recovery_codes", id, set: { endedAt: now } } as const;
    return { method: "recovery_code", factor: null, writes: [write] };
  }

  /** Verifies a browser's response to the challenge, from one of the user's passkeys; null for a wrong one. */
  async usePasskey(userId: number, challenge: string, response: object, now: number): Promise<UsedFactor | null> {
    const { passkeys } = this.options;
    const { id } = response as { id?: unknown };
    const row = this.of(userId).find((each) => each.credentialId === id);
    if (row === undefined || !passkeys.isUsable(row)) return null;
    const before = row.counter;
    const counter = await passkeys.verify(row, response, challenge);
    // Another request may have removed or used it during the verification.
    if (counter === null || this.find(userId, row.id) !== row || row.counter !== before) return null;
    const set = { counter, lastUsedAt: now };
    Object.assign(row, set);
    return { method: "passkey", factor: row, writes: [{ kind: "update", table: "second_factors", id: row.id, set }] };
  }

  private secretOf({ userId, secret }: TotpRow): Buffer | null {
    return this.options.keys.unseal(secret, sealedFor(userId));
  }

  seal(userId: number, secret: Uint8Array): string {
    return this.options.keys.seal(secret, sealedFor(userId));
  }

  // ---------------------------------------------------------------- changes

  /** Adds a factor: at once, and durably with the write. */
  add(row: SecondFactorRow): RequestedWrite {
    this.index(row);
    return { kind: "insert", table: "second_factors", row: { ...row } };
  }

  /** Removes a factor at once; the last one takes the recovery codes with it. */
  remove(row: SecondFactorRow, now: number): RequestedWrite[] {
    const mine = this.factors.get(row.userId);
    mine?.delete(row.id);
    if (mine?.size === 0) this.factors.delete(row.userId);
    if (row.credentialId !== null) this.credentials.delete(row.credentialId);
    const set = { removedAt: now, secret: null };
    const write: RequestedWrite = { kind: "update", table: "second_factors", id: row.id, set };
    return this.has(row.userId) ? [write] : [write, ...this.endCodes(row.userId, now)];
  }

  /** Replaces the recovery codes. Returns the new codes for the user, the writes, and `learn` to activate them. */
  replaceCodes(
    userId: number,
    now: number,
  ): { codes: string[]; writes: RequestedWrite[]; learn: (ids: number[]) => void } {
    const ending = this.endCodes(userId, now);
    const raw = Array.from({ length: RECOVERY_CODES }, () => base32(randomBytes(RECOVERY_BYTES)));
    const hashes = raw.map(hashToken);
    const inserts = hashes.map((codeHash): RequestedWrite => {
      return { kind: "insert", table: "recovery_codes", row: { userId, codeHash, createdAt: now } };
    });
    // The codes work once they are durable, because only then their ids are known.
    const learn = (ids: number[]): void => {
      for (const [i, hash] of hashes.entries()) {
        const id = ids[i];
        assert(id !== undefined, "each recovery code has its id");
        this.codesOf(userId).set(hash, id);
      }
    };
    return { codes: raw.map((code) => code.replaceAll(/.{4}(?=.)/g, "$&-")), writes: [...ending, ...inserts], learn };
  }

  private endCodes(userId: number, now: number): RequestedWrite[] {
    const ids = [...(this.codes.get(userId)?.values() ?? [])];
    this.codes.delete(userId);
    return ids.map((id) => ({ kind: "update", table: "recovery_codes", id, set: { endedAt: now } }));
  }

  /**
   * Encrypts all secrets with a new key. @returns the key's id, and the number of secrets
   * @param copied resolves once other boxes have the key, or don't get it in time
   */
  async rotateKey(now: number, copied: () => Promise<unknown>): Promise<{ key: string; sealed: number }> {
    const { keys, writer } = this.options;
    const key = await keys.rotate(now);
    // A standby that has the log and not the key could open no secret.
    await copied();
    const writes: RequestedWrite[] = [];
    for (const mine of [...this.factors.values()]) {
      for (const row of mine.values()) {
        if (row.kind !== "totp" || keys.isCurrent(row.secret)) continue;
        const secret = this.secretOf(row);
        if (secret === null) continue;
        row.secret = keys.seal(secret, sealedFor(row.userId));
        writes.push({ kind: "update", table: "second_factors", id: row.id, set: { secret: row.secret } });
      }
    }
    if (writes.length > 0) await writer.write(writes);
    return { key, sealed: writes.length };
  }

  private index(row: SecondFactorRow): void {
    if (row.credentialId !== null) this.credentials.add(row.credentialId);
    const mine = this.factors.get(row.userId);
    if (mine === undefined) this.factors.set(row.userId, new Map([[row.id, row]]));
    else mine.set(row.id, row);
  }

  private codesOf(userId: number): Map<string, number> {
    const mine = this.codes.get(userId) ?? new Map<string, number>();
    this.codes.set(userId, mine);
    return mine;
  }
}

/** Binds a secret to its user: copied into another user's row, it cannot be decrypted. */
const sealedFor = (userId: number): string => `second factor of user ${userId}`;
