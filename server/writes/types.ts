/** The road of writes into the log: what callers request, what a room admits, and how rooms take part. */

import type { AuditEntry } from "../../engine/log/request.ts";
import type { OwnRates } from "../../engine/log/user-rates.ts";
import type { PlainTable, RowOf, UpdateRow, Write, WriteOf } from "../../engine/log/writes.ts";

type RequestedInsert = {
  [T in PlainTable]: { kind: "insert"; table: T; row: RowOf<T> & { id?: number } };
}[PlainTable];
/** Writes whose row ids the admission assigns. */
type UnnumberedWrite =
  | Omit<WriteOf<"createUser">, "id">
  | Omit<WriteOf<"createToken">, "id">
  | Omit<WriteOf<"createEvent">, "id">
  | Omit<WriteOf<"createMarket">, "id" | "firstOutcomeId">
  | Omit<WriteOf<"settleMarket">, "holders">;

/** A write as its caller requests it, before its room admits it. */
export type RequestedWrite =
  | RequestedInsert
  | UpdateRow
  | UnnumberedWrite
  | Exclude<Write, { kind: "insert" | "update" | UnnumberedWrite["kind"] }>;

export type WriteKind = RequestedWrite["kind"];

/** One kind of requested write. */
export type RequestedOf<Kind extends WriteKind> = Extract<RequestedWrite, { kind: Kind }>;

/** One kind of committed write. */
export type CommittedOf<Kind extends WriteKind> = Extract<Write, { kind: Kind }>;

/** An audit log entry as its caller requests it. */
export interface RequestedAudit extends Omit<AuditEntry, "userId" | "subject"> {
  /** The user whose money or access changed; "subject" if that is the user that the write creates. */
  readonly userId: number | "subject" | null;
  /** The index of the request's write that the line describes. A write that changes nothing leaves no line. */
  readonly write: number;
  /** The id of the changed row; null stands for the write's own row. */
  readonly subject: number | null;
}

/** `id` is the new row's; `created` is false if the row existed already and nothing changed. */
export interface WriteResult {
  id: number;
  readonly created: boolean;
  /** Rows with outcomes only: the id of the first; the others follow consecutively. */
  readonly firstOutcomeId?: number;
}

/** A write that nothing can reject any more, with its result. */
export interface AdmittedWrite {
  /** Null: its row exists already, so that there is nothing to write. */
  readonly write: Write | null;
  /** The id is set once the write's ledger entry has a number, where it has one. */
  readonly result: WriteResult;
}

/**
 * How a room takes part in the road into the log, for its kinds of writes: `keys`, `lookUp` and `admit` before a write is
 * posted, `apply` once it is committed. All of them run on the gateway's thread; `lookUp` alone may wait.
 * @template Facts what `lookUp` finds; null where memory suffices
 */
export interface WriteRoom<Kind extends WriteKind = WriteKind, Facts = unknown> {
  readonly kinds: readonly Kind[];
  /** What may exist once: a second write with the same key waits until the first one is committed. */
  keys?(write: RequestedOf<Kind>): readonly string[];
  /** Reads what the tables alone know about the write; null where memory suffices. */
  lookUp?(write: RequestedOf<Kind>): Promise<Facts> | null;
  /**
   * Runs every check that can reject the write, and assigns its ids: the log only applies what was admitted. Checks see
   * memory, plus what is admitted and not yet committed.
   * @throws ApiError
   */
  admit(write: RequestedOf<Kind>, facts: Facts | null): AdmittedWrite;
  /** The write's time is known: what follows from it, apart from `at` and `createdAt`. @param at ms */
  stamp?(write: RequestedOf<Kind>, at: number): void;
  /** The fees of users that the write sets. */
  rates?(write: CommittedOf<Kind>): OwnRates[];
  /** Applies a committed write to memory. Resolves once it is applied; undefined when it already is. */
  apply?(write: CommittedOf<Kind>, facts: Facts | null): Promise<void> | undefined;
}
