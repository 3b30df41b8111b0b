/**
 * Takes accounts to KYC tiers 1 and 2: verifies phones with a code in a text message, and keeps the identity applications
 * that operators decide. Codes live in memory only: after a restart, the user requests a new one.
 */
import { randomInt, timingSafeEqual } from "node:crypto";
import type { IdentityApplicationRow } from "../../engine/log/rows.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { identityApprovedMail, identityRefusedMail, phoneCodeText } from "../messages/mail-templates.ts";
import type { Notifier } from "../messages/notifier.ts";
import { HourlyLimit } from "../util/hourly-limit.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedWrite } from "../writes/types.ts";
import type { Accounts } from "./accounts.ts";
import { actorOf, audit, type RequestContext } from "./audit.ts";
import { isSixDigits, withoutSeparators } from "./code-text.ts";
import {
  MAX_CODES_PER_ADDRESS_AND_HOUR,
  MAX_CODES_PER_NUMBER_AND_HOUR,
  MAX_MESSAGES_PER_HOUR,
  MAX_WRONG_CODES,
  PHONE_CODE_MS,
} from "./limits.ts";
import { checkNotOwn, type Operator } from "./operator.ts";
import type { Principal, User } from "./types.ts";
import { changeUser } from "./users.ts";

const CODE_DIGITS = 6;

/** The last code sent to a user. */
interface PhoneCode {
  readonly phone: string;
  /** Empty once it is used up. */
  code: string;
  wrong: number;
  readonly expiresAt: number;
}

export interface Identity {
  readonly document_type: string;
  readonly document_number: string;
  readonly country: string;
}

export interface IdentityDecision {
  readonly isApproved: boolean;
  readonly note: string | null;
}

export class KycVerification {
  private readonly accounts: Accounts;
  private readonly writer: LogWriter;
  private readonly notifier: Notifier;
  private readonly codes = new Map<number, PhoneCode>();
  /** Bounds on text messages, which cost money. */
  private readonly limits = {
    user: new HourlyLimit(MAX_MESSAGES_PER_HOUR),
    number: new HourlyLimit(MAX_CODES_PER_NUMBER_AND_HOUR),
    address: new HourlyLimit(MAX_CODES_PER_ADDRESS_AND_HOUR),
  };

  constructor(accounts: Accounts, writer: LogWriter, notifier: Notifier) {
    this.accounts = accounts;
    this.writer = writer;
    this.notifier = notifier;
  }

  /** Sends a code. @param phone in E.164 @throws ApiError 42900 at an hourly limit, 40900 for a verified number */
  async sendPhoneCode(principal: Principal, phone: string, context: RequestContext): Promise<void> {
    const { user } = principal.credential;
    const { now } = context;
    if (user.phone === phone && user.phoneVerifiedAt !== null) {
      throw new ApiError(ErrorKind.conflict, "phone: already verified");
    }
    this.expectFree(user, phone);
    this.countCode(String(user.id), phone, context);
    const code = String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, "0");
    this.codes.set(user.id, { phone, code, wrong: 0, expiresAt: now + PHONE_CODE_MS });
    // A verified account keeps its number until it has verified the new one.
    if (user.phoneVerifiedAt === null && user.phone !== phone) {
      const change = { action: "user.set_phone", userId: user.id, subject: user.id };
      await this.writer.write([changeUser(user, { phone })], [audit(context, actorOf(principal), change)]);
    }
    this.notifier.sendText(phoneCodeText(phone, code, PHONE_CODE_MS));
  }

  /** A number verifies one account. @throws ApiError 40900 */
  private expectFree(user: User, phone: string): void {
    const owner = this.accounts.userByPhone(phone);
    if (owner === undefined || owner === user) return;
    throw new ApiError(ErrorKind.conflict, "phone: verifies another account");
  }

  /** @throws ApiError 42900 */
  private countCode(user: string, number: string, { client: address, now }: RequestContext): void {
    const keys = { user, number, address };
    const parts = Object.entries(this.limits).map(([name, limit]) => ({ limit, key: keys[name as keyof typeof keys] }));
    const wait = Math.max(...parts.map(({ limit, key }) => limit.waitMs(key, now)));
    if (wait > 0) throw new ApiError(ErrorKind.limitExceeded, "too many codes in an hour", Math.ceil(wait / 1_000));
    for (const { limit, key } of parts) limit.consume(key, now);
  }

  /** @throws ApiError 40000 for a wrong code; 40900 without an active one: expired, or used up by five wrong attempts */
  async verifyPhone(principal: Principal, typed: string, context: RequestContext): Promise<User> {
    const code = withoutSeparators(typed);
    if (!isSixDigits(code)) throw badRequest("code: must be the six digits of the message");
    const { user } = principal.credential;
    const found = this.codes.get(user.id);
    if (found === undefined || found.code === "" || found.expiresAt <= context.now) {
      throw new ApiError(ErrorKind.conflict, "no code is active: request a new one");
    }
    if (!isSame(code, found.code)) {
      found.wrong++;
      if (found.wrong >= MAX_WRONG_CODES) found.code = "";
      const left = MAX_WRONG_CODES - found.wrong;
      throw badRequest(
        left === 0 ? "code: wrong, request a new one" : `code: wrong, ${left} more ${left === 1 ? "try" : "tries"}`,
      );
    }
    found.code = "";
    // Another account may have verified the number since the code was sent.
    this.expectFree(user, found.phone);
    const write = changeUser(user, { phone: found.phone, phoneVerifiedAt: context.now });
    this.accounts.notePhone(user);
    const change = { action: "user.verify_phone", userId: user.id, subject: user.id };
    await this.writer.write([write], [audit(context, actorOf(principal), change)]);
    return user;
  }

  /** Drops expired codes. */
  forgetExpired(now: number): void {
    for (const limit of Object.values(this.limits)) limit.forgetExpired(now);
    for (const [userId, { expiresAt }] of this.codes) if (expiresAt <= now) this.codes.delete(userId);
  }

  /** @throws ApiError 40300 below tier 1, 40900 with a pending application or at tier 2 */
  async applyForTier2(
    principal: Principal,
    identity: Identity,
    context: RequestContext,
  ): Promise<IdentityApplicationRow> {
    const { user } = principal.credential;
    if (user.kycTier < 1) throw new ApiError(ErrorKind.forbidden, "requires KYC tier 1: verify email and phone first");
    const pending = this.accounts.identityApplication(user.id)?.status === "pending";
    if (user.kycTier > 1 || pending) {
      throw new ApiError(
        ErrorKind.conflict,
        pending ? "an application is already pending" : "the account already has KYC tier 2",
      );
    }
    const { document_type, document_number, country } = identity;
    const made = { userId: user.id, documentType: document_type, country, status: "pending", createdAt: context.now };
    const known = { ...made, note: null, decidedAt: null };
    // In memory at once, so that two requests cannot create two applications.
    this.accounts.setIdentityApplication({ ...known, id: 0 });
    const row = { ...made, documentNumber: document_number };
    const write: RequestedWrite = { kind: "insert", table: "identity_applications", row };
    const change = { action: "identity.apply", userId: user.id, details: { document_type, country } };
    const id = await this.writer.insert(write, [audit(context, actorOf(principal), change)]);
    const application = { ...known, id, createdAt: row.createdAt };
    this.accounts.setIdentityApplication(application);
    return application;
  }

  /**
   * An operator's decision on one of the user's applications.
   * @throws ApiError 40300 for the operator's own, 40900 unless it is pending
   */
  async decide(
    user: User,
    id: number,
    decision: IdentityDecision,
    operator: Operator,
    context: RequestContext,
  ): Promise<void> {
    checkNotOwn(operator, user.id);
    const application = this.accounts.identityApplication(user.id);
    // All applications before the user's last one are decided.
    if (application?.id !== id || application.status !== "pending") {
      throw new ApiError(ErrorKind.conflict, "the application has already been decided");
    }
    const { isApproved, note } = decision;
    const set = { status: isApproved ? "approved" : "refused", note, decidedAt: context.now };
    this.accounts.setIdentityApplication({ ...application, ...set });
    const writes: RequestedWrite[] = [{ kind: "update", table: "identity_applications", id, set }];
    if (isApproved) writes.push(changeUser(user, { kycTier: 2 }));
    const action = `identity.${isApproved ? "approve" : "refuse"}`;
    const change = { action, userId: user.id, subject: id, details: { note } };
    await this.writer.write(writes, [audit(context, operator.actor, change)]);
    this.notifier.sendMail(isApproved ? identityApprovedMail(user.email) : identityRefusedMail(user.email));
  }
}

function isSame(code: string, expected: string): boolean {
  return code.length === expected.length && timingSafeEqual(Buffer.from(code), Buffer.from(expected));
}
