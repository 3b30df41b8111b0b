/** What the gateway and the replication thread tell each other. */

/** When an acknowledgement may go out: once the stream has the batch, or at once. */
export type AckPolicy = "stream" | "none";

export interface ReplicationSettings {
  /** HOST:PORT of the nodes, this box's own first. */
  readonly nodes: readonly string[];
  readonly user: string | null;
  readonly password: string | null;
  /** Files; null without. `tls` is null where the connection is in the clear. */
  readonly credsFile: string | null;
  readonly tls: {
    readonly caFile: string | null;
    readonly certFile: string | null;
    readonly keyFile: string | null;
  } | null;
  /** Names the stream and its subject. */
  readonly name: string;
  /** This box. */
  readonly box: string;
  readonly ack: AckPolicy;
  readonly replicas: number;
  /** The nodes' monitoring addresses; none: nothing says whether the nodes sync each write. */
  readonly monitors: readonly string[];
}

/** The setup for the replication thread. */
export interface ReplicationSetup {
  readonly settings: ReplicationSettings;
  readonly journalPath: string;
  /** The folder of the log's archives. */
  readonly archives: string;
  /** The log's end at the start. */
  readonly end: { readonly exchange: number; readonly batch: number; readonly hash: Uint8Array };
  /** engine/log/progress.ts */
  readonly progress: SharedArrayBuffer;
  /** The wait cells of this thread and of the log. */
  readonly waker: SharedArrayBuffer;
  readonly logWaker: SharedArrayBuffer;
  /** replication-status.ts */
  readonly status: SharedArrayBuffer;
}

/** The stream as the nodes describe it. */
export interface StreamFacts {
  readonly name: string;
  readonly replicas: number;
  /** Nodes that have all of it, the one that leads included. */
  readonly current: number;
  /** Null during an election. */
  readonly leader: string | null;
  /** The node that this box uses. */
  readonly connected_to: string;
  readonly messages: number;
  readonly bytes: number;
  readonly max_bytes: number;
  /** Of its oldest message, ms. */
  readonly oldest_at: number;
}

/** The gateway's messages to the thread. */
export type ReplicationRequest = "stop" | "describe";

/** The thread's messages to the gateway. */
export type ReplicationReport =
  /** The response to "describe"; null while the nodes don't respond. */
  | { readonly kind: "stream"; readonly facts: StreamFacts | null }
  | { readonly kind: "loaded" }
  /** The stream is there, and continues with this box's log. */
  | { readonly kind: "opened" }
  /** Something that an operator has to change before a start. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "line"; readonly level: "info" | "warn" | "error"; readonly text: string };
