/** Writes of rows that need no check: plain inserts and updates, and the log's own upkeep. */
import type { UpdateRow, Write } from "../../engine/log/writes.ts";
import type { RowIds } from "./row-ids.ts";
import type { AdmittedWrite, RequestedOf, WriteRoom } from "./types.ts";

const KINDS = ["insert", "update", "sweep", "forgetLog"] as const;
type Kind = (typeof KINDS)[number];

export class PlainWrites implements WriteRoom<Kind, never> {
  readonly kinds = KINDS;
  private readonly ids: RowIds;
  private readonly updated: (write: UpdateRow) => void;

  /** @param updated gets each update once it is committed */
  constructor(ids: RowIds, updated: (write: UpdateRow) => void) {
    this.ids = ids;
    this.updated = updated;
  }

  admit(write: RequestedOf<Kind>): AdmittedWrite {
    switch (write.kind) {
      case "insert": {
        const id = this.ids.next(write.table, write.row.id);
        const row = { ...write.row, id };
        return { write: { ...write, row } as Write, result: { id, created: true } };
      }
      case "update":
        return { write, result: { id: write.id, created: true } };
      case "sweep":
      case "forgetLog":
        return { write, result: { id: 0, created: true } };
    }
  }

  /** Callers apply inserts and updates to memory themselves, before they write them or when the write resolves. */
  apply(write: Extract<Write, { kind: Kind }>): undefined {
    if (write.kind === "update") this.updated(write);
  }
}
