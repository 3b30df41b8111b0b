/**
 * Admits and applies the writes of users and their tokens: each address and each token once, ids within the bound, no
 * deletion while money is on its way. Owned by the gateway thread.
 */
import type { OwnRates } from "../../engine/log/user-rates.ts";
import { DEFAULT_TERMS } from "../../engine/log/user-terms.ts";
import type { UpdateRow } from "../../engine/log/writes.ts";
import { assert } from "../../engine/util/assert.ts";
import { ApiError, ErrorKind } from "../errors.ts";
import type { RowIds } from "../writes/row-ids.ts";
import type { AdmittedWrite, CommittedOf, RequestedOf, WriteRoom } from "../writes/types.ts";
import type { Accounts } from "./accounts.ts";
import type { UserIds } from "./user-ids.ts";

const KINDS = ["createUser", "createToken", "deleteUser", "setTerms"] as const;
type Kind = (typeof KINDS)[number];

export interface AccountWritesOptions {
  readonly accounts: Accounts;
  readonly ids: RowIds;
  readonly userIds: UserIds;
  /** By hash: the ids of revoked tokens, which memory doesn't hold. A seed may list one again. */
  readonly revokedTokens: ReadonlyMap<string, number>;
  /** A user was created: opens its account in the ledger. */
  readonly opened: (userId: number) => void;
}

export class AccountWrites implements WriteRoom<Kind, never> {
  readonly kinds = KINDS;
  private readonly options: AccountWritesOptions;

  constructor(options: AccountWritesOptions) {
    this.options = options;
  }

  keys(write: RequestedOf<Kind>): readonly string[] {
    if (write.kind === "createUser") return [`email ${write.email}`];
    return write.kind === "createToken" ? [`token ${write.tokenHash}`] : [];
  }

  /** @throws ApiError 40900 at the maximum number of users */
  admit(write: RequestedOf<Kind>): AdmittedWrite {
    switch (write.kind) {
      case "createUser":
        return this.admitUser(write);
      case "createToken":
        return this.admitToken(write);
      case "deleteUser":
        assert(
          !this.options.accounts.isFunding(write.userId),
          "no account is deleted while a deposit to it is in flight",
        );
        return { write, result: { id: write.userId, created: true } };
      case "setTerms":
        return { write, result: { id: write.userId, created: true } };
    }
  }

  private admitUser(write: RequestedOf<"createUser">): AdmittedWrite {
    const { accounts, userIds } = this.options;
    const found = accounts.userByEmail(write.email);
    if (found !== undefined) return existing(found.id);
    const id = userIds.next();
    if (id === null) throw new ApiError(ErrorKind.conflict, "the exchange is at its maximum number of users");
    return { write: { ...write, id }, result: { id, created: true } };
  }

  private admitToken(write: RequestedOf<"createToken">): AdmittedWrite {
    const { accounts, ids, revokedTokens } = this.options;
    const { tokenHash } = write;
    const found = accounts.patByHash(tokenHash)?.id ?? revokedTokens.get(tokenHash);
    if (found !== undefined) return existing(found);
    const id = ids.next("personal_access_tokens");
    return { write: { ...write, id }, result: { id, created: true } };
  }

  /** An id may belong to another user later: the fees of a deleted one are the usual ones again. */
  rates(write: CommittedOf<Kind>): OwnRates[] {
    if (write.kind === "setTerms") return [write];
    return write.kind === "deleteUser" ? [{ userId: write.userId, ...DEFAULT_TERMS }] : [];
  }

  apply(write: CommittedOf<Kind>): undefined {
    const { accounts, userIds, opened } = this.options;
    switch (write.kind) {
      case "createUser": {
        const { kind: _, at, ...row } = write;
        const own = { watchlist: null, notifications: null, priceAlerts: null };
        const rest = { ...own, phone: null, suspendedAt: null, createdAt: at };
        accounts.addUser({ ...row, ...DEFAULT_TERMS, ...rest });
        opened(write.id);
        return;
      }
      case "createToken": {
        const { kind: _, at, scopes, allowedAddresses, ...row } = write;
        const texts = { scopes: scopes.join(" "), allowedAddresses: allowedAddresses?.join(" ") ?? null };
        accounts.addPat({ ...row, ...texts, createdAt: at, lastUsedAt: null });
        return;
      }
      case "deleteUser":
        userIds.free(write.userId);
        return;
      case "setTerms":
        // The caller applies them when the write resolves.
        return;
    }
  }

  /** An update of a row is committed: an account whose address is verified stays. */
  updated(write: UpdateRow): void {
    if (write.table === "users" && write.set.emailVerifiedAt != null) this.options.accounts.keepUser(write.id);
  }
}

function existing(id: number): AdmittedWrite {
  return { write: null, result: { id, created: false } };
}
