/** What an operator does to accounts and keys of a running exchange. Each leaves a line in the audit log. */
import type { AccountWriter } from "./account-writer.ts";
import type { Accounts, Credential, User } from "./accounts.ts";
import { audit, type RequestContext } from "./audit.ts";
import { NO_ADDRESS } from "./client-address.ts";
import type { Command } from "./control.ts";
import { badRequest, notFound } from "./errors.ts";
import type { Kyc } from "./kyc.ts";
import type { SigningKeys } from "./signing-keys.ts";
import { changeUser } from "./users.ts";

export interface OperationOptions {
  readonly accounts: Accounts;
  readonly kyc: Kyc;
  readonly keys: SigningKeys;
  readonly writer: AccountWriter;
  /** Ends the sockets that a credential opened. */
  readonly endSockets: (credential: Credential) => void;
  /** Cancels all of the user's orders. */
  readonly cancelOrders: (userId: number) => void;
}

/** The commands of the control socket, by name. */
export function createOperations(options: OperationOptions): ReadonlyMap<string, Command> {
  const { accounts, kyc, keys, writer, endSockets, cancelOrders } = options;
  const actor = "admin";
  const contextNow = (): RequestContext => ({
    now: Date.now(),
    requestId: "control socket",
    ...NO_ADDRESS,
    userAgent: "",
  });
  const userNamed = (email: string | undefined): User => {
    if (email === undefined) throw badRequest("name the user's e-mail address");
    const user = accounts.userByEmail(email.toLowerCase());
    if (user === undefined) throw notFound(`user: ${email}`);
    return user;
  };
  const setSuspended = async (user: User, suspendedAt: number | null): Promise<void> => {
    const change = {
      action: suspendedAt === null ? "user.restore" : "user.suspend",
      userId: user.id,
      subject: user.id,
    };
    await writer.write([changeUser(user, { suspendedAt })], [audit(contextNow(), actor, change)]);
  };
  return new Map<string, Command>([
    [
      "keys rotate",
      async () => {
        const kid = await keys.rotate(Date.now());
        await writer.write([], [audit(contextNow(), actor, { action: "keys.rotate", userId: null, details: { kid } })]);
        return `the signing key is ${kid} from now on; tokens of the old one live on`;
      },
    ],
    [
      "suspend",
      async ([email]) => {
        const user = userNamed(email);
        // First, since it alone may be refused.
        cancelOrders(user.id);
        const done = setSuspended(user, Date.now());
        for (const credential of accounts.credentialsOf(user.id)) endSockets(credential);
        await done;
        return `${user.email} is suspended: its tokens are refused and its orders canceled`;
      },
    ],
    [
      "restore",
      async ([email]) => {
        const user = userNamed(email);
        await setSuspended(user, null);
        return `${user.email} is no longer suspended`;
      },
    ],
    [
      "identity",
      async ([decision, email]) => {
        if (decision !== "approve" && decision !== "refuse") throw badRequest("identity: approve or refuse");
        const user = userNamed(email);
        await kyc.decide(user, decision === "approve", actor, contextNow());
        return `${user.email} has KYC tier ${user.kycTier}`;
      },
    ],
  ]);
}
