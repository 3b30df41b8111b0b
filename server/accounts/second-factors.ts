/**
 * Second factors: what an account has beside its password (TOTP, passkeys, recovery codes), and whether what somebody shows
 * is one of them. What was shown is spent at once, and counts when that is durable: no code is good twice, also over a
 * crash. Owned by the gateway thread.
 */
import { randomBytes } from "node:crypto";
import type { SecondFactorRow, SecondFactorRows } from "../../engine/projection/load/accounts.ts";
import type { AccountWrite } from "../../engine/projection/writes/account-write.ts";
import type { AccountWriter } from "./account-writer.ts";
import { RECOVERY_CODES } from "./limits.ts";
import type { Passkeys } from "./passkeys.ts";
import type { SecondFactorKeys } from "./second-factor-keys.ts";
import { hashToken } from "./token-hash.ts";
import { base32, matchStep } from "./totp.ts";
import type { ProofMethod } from "./types.ts";

/** What somebody shows: a code of six digits, a recovery code, or a browser's answer for a passkey. */
export interface FactorProof {
  readonly code?: string | undefined;
  readonly passkey?: object | undefined;
}

/** Something shown was right; it is spent in memory, and durable once `writes` are. */
export interface UsedFactor {
  readonly method: ProofMethod;
  /** Null of a recovery code. */
  readonly factor: SecondFactorRow | null;
  readonly writes: readonly AccountWrite[];
}

/** 80 bits, shown as four groups of four. */
const RECOVERY_BYTES = 10;
const TOTP_CODE = /^\d{6}$/;
/** What people put between the groups of a code. */
const SEPARATORS = /[\s-]/g;

interface Options {
  readonly writer: AccountWriter;
  readonly keys: SecondFactorKeys;
  readonly passkeys: Passkeys;
}

export class SecondFactors {
  private readonly options: Options;
  /** By user and id. */
  private readonly factors = new Map<number, Map<number, SecondFactorRow>>();
  /** Ids of all passkeys: one is one account's. */
  private readonly credentials = new Set<string>();
  /** By user: id by hash. */
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

  /** TOTPs whose key isn't there: their codes can't be looked at. */
  countUnreadable(): number {
    const all = [...this.factors.values()].flatMap((mine) => [...mine.values()]);
    return all.filter((row) => row.kind === "totp" && this.secretOf(row) === null).length;
  }

  /** Some account has this passkey. */
  isTaken(credentialId: string): boolean {
    return this.credentials.has(credentialId);
  }

  nextId(): number {
    return ++this.lastId;
  }

  /** How the user can prove itself here and now. */
  methodsOf(userId: number): ProofMethod[] {
    const own = this.of(userId);
    const methods: ProofMethod[] = [];
    if (own.some((row) => row.kind === "totp" && this.secretOf(row) !== null)) methods.push("totp");
    if (own.some((row) => this.options.passkeys.isUsable(row))) methods.push("passkey");
    if (this.codesLeft(userId) > 0) methods.push("recovery_code");
    return methods;
  }

  // ---------------------------------------------------------------- looking at what is shown

  /** Spends a code of the user's; null where it is none. */
  useCode(userId: number, text: string, now: number): UsedFactor | null {
    const code = text.replaceAll(SEPARATORS, "");
    return TOTP_CODE.test(code) ? this.useTotp(userId, code, now) : this.useRecoveryCode(userId, code, now);
  }

  private useTotp(userId: number, code: string, now: number): UsedFactor | null {
    for (const row of this.of(userId)) {
      const secret = row.kind === "totp" ? this.secretOf(row) : null;
      const step = secret === null ? null : matchStep(secret, code, now, row.lastStep!);
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
    if (id === undefined) return null;
    mine!.delete(hash);
    const write = { kind: "update", table: "recovery_codes", id, set: { endedAt: now } } as const;
    return { method: "recovery_code", factor: null, writes: [write] };
  }

  /** What a browser answered for the challenge, with a passkey of the user's; null where that doesn't hold. */
  async usePasskey(userId: number, challenge: string, response: object, now: number): Promise<UsedFactor | null> {
    const { passkeys } = this.options;
    const { id } = response as { id?: unknown };
    const row = this.of(userId).find((each) => each.credentialId === id && passkeys.isUsable(each));
    if (row === undefined) return null;
    const before = row.counter;
    const counter = await passkeys.verify(row, response, challenge);
    // It may have been removed, or used, meanwhile.
    if (counter === null || this.find(userId, row.id) !== row || row.counter !== before) return null;
    const set = { counter, lastUsedAt: now };
    Object.assign(row, set);
    return { method: "passkey", factor: row, writes: [{ kind: "update", table: "second_factors", id: row.id, set }] };
  }

  private secretOf({ userId, secret }: SecondFactorRow): Buffer | null {
    return secret === null ? null : this.options.keys.unseal(secret, sealedFor(userId));
  }

  seal(userId: number, secret: Uint8Array, now: number): Promise<string> {
    return this.options.keys.seal(secret, sealedFor(userId), now);
  }

  // ---------------------------------------------------------------- changes

  /** Takes a factor in: at once, and durable with the write. */
  add(row: SecondFactorRow): AccountWrite {
    this.index(row);
    return { kind: "insert", table: "second_factors", row: { ...row } };
  }

  /** Ends a factor at once; with the last of them the recovery codes go. */
  remove(row: SecondFactorRow, now: number): AccountWrite[] {
    const mine = this.factors.get(row.userId);
    mine?.delete(row.id);
    if (mine?.size === 0) this.factors.delete(row.userId);
    if (row.credentialId !== null) this.credentials.delete(row.credentialId);
    const set = { removedAt: now, secret: null };
    const write: AccountWrite = { kind: "update", table: "second_factors", id: row.id, set };
    return this.has(row.userId) ? [write] : [write, ...this.endCodes(row.userId, now)];
  }

  /** New recovery codes in the place of those that are left: the codes as they are shown, and what makes them durable. */
  replaceCodes(
    userId: number,
    now: number,
  ): { codes: string[]; writes: AccountWrite[]; learn: (ids: number[]) => void } {
    const ending = this.endCodes(userId, now);
    const raw = Array.from({ length: RECOVERY_CODES }, () => base32(randomBytes(RECOVERY_BYTES)));
    const hashes = raw.map(hashToken);
    const inserts = hashes.map((codeHash): AccountWrite => {
      return { kind: "insert", table: "recovery_codes", row: { userId, codeHash, createdAt: now } };
    });
    // Good once they are durable, when their ids are known.
    const learn = (ids: number[]): void => {
      for (const [i, hash] of hashes.entries()) this.codesOf(userId).set(hash, ids[i]!);
    };
    return { codes: raw.map((code) => code.match(/.{4}/g)!.join("-")), writes: [...ending, ...inserts], learn };
  }

  private endCodes(userId: number, now: number): AccountWrite[] {
    const ids = [...(this.codes.get(userId)?.values() ?? [])];
    this.codes.delete(userId);
    return ids.map((id) => ({ kind: "update", table: "recovery_codes", id, set: { endedAt: now } }));
  }

  /** Seals all secrets with a new key. @returns the key's id, and how many secrets it seals */
  async rotateKey(now: number): Promise<{ key: string; sealed: number }> {
    const { keys, writer } = this.options;
    const key = await keys.rotate(now);
    const writes: AccountWrite[] = [];
    for (const mine of [...this.factors.values()]) {
      for (const row of mine.values()) {
        const secret = row.secret === null || keys.isCurrent(row.secret) ? null : this.secretOf(row);
        if (secret === null) continue;
        row.secret = keys.sealNow(secret, sealedFor(row.userId));
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

/** A sealed secret that is put into another user's row doesn't open. */
const sealedFor = (userId: number): string => `second factor of user ${userId}`;
