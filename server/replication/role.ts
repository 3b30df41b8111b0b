/** What a box is at a start: active where nobody else is and nobody led after it, else the standby of whoever is or will be. */
import type { StandbyFile } from "./standby-file.ts";
import type { Role } from "./types.ts";

export interface RoleFacts {
  /** True where another box says that it is active. */
  readonly hasActive: boolean;
  /** What this box was; null where it never took part. */
  readonly file: StandbyFile | null;
  /** The last batch of this box's log; 0 for none. */
  readonly batch: number;
  /** Null where the nodes have no stream. */
  readonly stream: {
    readonly created: string;
    /** Of its last message ever, which may be too old to be there; 0 for none. */
    readonly sequence: number;
    /** The epoch and the batch that it ends with, and whether that epoch is over; null where it has no message. */
    readonly end: { readonly epoch: number; readonly batch: number; readonly isOver: boolean } | null;
  } | null;
}

export function roleOf({ hasActive, file, batch, stream }: RoleFacts): Role {
  if (hasActive || file?.role === "standby") return "standby";
  return (file === null ? mayBegin(batch, stream) : ledLast(file, stream)) ? "active" : "standby";
}

/** An exchange that begins to copy its log, or one that was restored with all of it. A box without a log waits for one. */
function mayBegin(batch: number, stream: RoleFacts["stream"]): boolean {
  if (batch === 0) return false;
  if (stream === null || stream.sequence === 0) return true;
  return stream.end !== null && !stream.end.isOver && stream.end.batch <= batch;
}

/** Nobody led after this box. In a stream that is gone, or whose messages are, another may have. */
function ledLast(file: StandbyFile, stream: RoleFacts["stream"]): boolean {
  if (stream === null || stream.created !== file.stream_created_at) return false;
  // Whoever resigned left it to another one.
  if (stream.end !== null) return stream.end.epoch <= file.epoch && !stream.end.isOver;
  return stream.sequence === file.sequence;
}
