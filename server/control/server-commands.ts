/**
 * The commands that the API lacks: signing keys, operators' accounts, and resets of second factors. Only the control socket
 * runs them; each leaves an audit line.
 */
import { randomBytes } from "node:crypto";
import type { Accounts } from "../accounts/accounts.ts";
import { audit, type Change, type RequestContext } from "../accounts/audit.ts";
import { operatorOf } from "../accounts/operator.ts";
import { EmailOnly } from "../accounts/schemas.ts";
import type { User } from "../accounts/types.ts";
import { changeUser } from "../accounts/users.ts";
import { ApiError, ErrorKind, notFound } from "../errors.ts";
import { compileSchema } from "../http/validate.ts";
import type { Passwords } from "../sign-in/passwords.ts";
import type { SecondFactorSettings } from "../sign-in/second-factor-settings.ts";
import type { SecondFactors } from "../sign-in/second-factors.ts";
import type { SigningKeys } from "../sign-in/signing-keys.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { RequestedAudit } from "../writes/types.ts";

export interface ServerCommandOptions {
  readonly accounts: Accounts;
  readonly passwords: Passwords;
  readonly keys: SigningKeys;
  readonly factors: SecondFactors;
  readonly factorSettings: SecondFactorSettings;
  readonly writer: LogWriter;
  /** Resolves once the standby has the keys, or in vain, with what an operator reads; null on a single box. */
  readonly keysCopied: () => Promise<string | null>;
  /** This box and the copy of its log. */
  readonly standbyStatus: () => Promise<object>;
  /** Resolves once this box hands over to a standby. @throws ApiError 40900 with why it doesn't */
  readonly demote: () => Promise<object>;
}

/** Resolves with the data of the response. @throws ApiError */
type Command = (args: readonly string[], context: RequestContext) => Promise<object>;

const checkEmail = compileSchema(EmailOnly);

/** 128 bits. */
const PASSWORD_BYTES = 16;

/** @param standby what it says of a new key; null on a single box */
const withStandby = (result: object, standby: string | null): object =>
  standby === null ? result : { ...result, standby };

/** The commands by name. */
export function createServerCommands(options: ServerCommandOptions): ReadonlyMap<string, Command> {
  const { accounts, passwords, keys, factors, factorSettings, writer } = options;
  const auditLine = (context: RequestContext, change: Change): RequestedAudit =>
    audit(context, operatorOf({ principal: null }).actor, change);
  const setRole = async (email: string, role: "user" | "operator", context: RequestContext): Promise<object> => {
    const user = accounts.userByEmail(email);
    if (user === undefined) throw notFound(`user: ${email}`);
    if (user.role === role) {
      throw new ApiError(ErrorKind.conflict, `the account is ${role === "operator" ? "already" : "not"} an operator's`);
    }
    const action = role === "operator" ? "user.make_operator" : "user.remove_operator";
    const change = { action, userId: user.id, subject: user.id };
    await writer.write([changeUser(user, { role })], [auditLine(context, change)]);
    return userView(user);
  };
  return new Map<string, Command>([
    [
      "keys rotate",
      async (_args, context) => {
        const kid = await keys.rotate(context.now);
        await writer.write([], [auditLine(context, { action: "keys.rotate", userId: null, details: { kid } })]);
        return withStandby({ kid }, await options.keysCopied());
      },
    ],
    [
      "keys rotate-second-factors",
      async (_args, context) => {
        let standby: string | null = null;
        const rotated = await factors.rotateKey(context.now, async () => {
          standby = await options.keysCopied();
        });
        const change = { action: "keys.rotate_second_factors", userId: null, details: rotated };
        await writer.write([], [auditLine(context, change)]);
        return withStandby(rotated, standby);
      },
    ],
    [
      "second-factor reset",
      async (args, context) => {
        const email = emailOf(args);
        const user = accounts.userByEmail(email);
        if (user === undefined) throw notFound(`user: ${email}`);
        await factorSettings.reset(user, {}, operatorOf({ principal: null }), context);
        return userView(user);
      },
    ],
    [
      "operator create",
      async (args, context) => {
        const email = emailOf(args);
        const password = randomBytes(PASSWORD_BYTES).toString("base64url");
        const passwordHash = await passwords.hashChosen(password);
        const { now: at } = context;
        const rest = { kycTier: 0, passwordHash, emailVerifiedAt: at, phoneVerifiedAt: null, at };
        const audits = ["user.create", "user.make_operator"].map((action) =>
          auditLine(context, { action, userId: "subject" }),
        );
        const [result] = await writer.write([{ kind: "createUser", email, role: "operator", ...rest }], audits);
        if (result?.created !== true) throw new ApiError(ErrorKind.conflict, "email: already registered");
        return { ...userView({ id: result.id, email, role: "operator" }), password };
      },
    ],
    ["operator grant", async (args, context) => setRole(emailOf(args), "operator", context)],
    ["standby status", () => options.standbyStatus()],
    [
      "standby promote",
      async () => {
        throw new ApiError(ErrorKind.conflict, "this box is active");
      },
    ],
    ["standby demote", () => options.demote()],
    ["operator remove", async (args, context) => setRole(emailOf(args), "user", context)],
  ]);
}

function emailOf([email]: readonly string[]): string {
  return checkEmail({ email }).email.toLowerCase();
}

function userView({ id, email, role }: Pick<User, "id" | "email" | "role">): object {
  return { id, email, role };
}
