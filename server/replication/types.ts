/** What the gateway and the replication thread tell each other. */
import type { AckPolicy } from "../../engine/replication/release.ts";
import type { Durability } from "../../engine/util/wal-database.ts";

type Takeover = "auto" | "manual";

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
  /** The same on both boxes: signs what they ask each other, and seals their keys. */
  readonly secret: string;
  /** Names the stream and its subject. */
  readonly name: string;
  /** This box. */
  readonly box: string;
  /** How clients reach this box directly; null where they don't. */
  readonly url: string | null;
  readonly ack: AckPolicy;
  /** How long an acknowledgement waits for the standby alone, ms; null: for ever. */
  readonly lostMs: number | null;
  /** `manual`: no box becomes active without an operator's command. */
  readonly takeover: Takeover;
  readonly replicas: number;
  /** The nodes' monitoring addresses; none: nothing says whether the nodes sync each write. */
  readonly monitors: readonly string[];
  /** Of the program. */
  readonly version: string;
  /** Settings by name that must be the same on both boxes, beside those here. */
  readonly shared: Readonly<Record<string, string>>;
}

/** The setup for the thread that makes and serves a copy, and its messages. */
export type CopySetup = Pick<ReplicationSetup, "settings" | "dataDir"> & {
  /** That the box leads in: files of an epoch that is over may have what no other box confirmed. */
  readonly epoch: number;
};
export type CopyMessage = { readonly loaded: true } | { readonly failed: string };

/** The setup for the replication thread. */
export interface ReplicationSetup {
  readonly settings: ReplicationSettings;
  readonly durability: Durability;
  readonly dataDir: string;
  /** The folder of the keys. */
  readonly keys: string;
  readonly journalPath: string;
  /** The folder of the log's archives. */
  readonly archives: string;
  /** How far a standby's log and tables are: engine/log/progress.ts. An active has another. */
  readonly progress: SharedArrayBuffer;
  /** The wait cells of this thread, and of the projector of a standby. */
  readonly waker: SharedArrayBuffer;
  readonly projectorWaker: SharedArrayBuffer;
  /** replication-status.ts */
  readonly status: SharedArrayBuffer;
}

/**
 * How an operator asks a standby to become active: as the successor of a box that is gone; as the first of a new exchange; or
 * with the log that it has, although the nodes lost theirs.
 */
export type Promotion = "" | "first" | "stream-is-lost";

/** What a box says of itself: it doesn't count yet; it follows; it is about to be active; it trades; it stops in order. */
export const BEAT_ROLES = ["starting", "standby", "taking_over", "active", "leaving"] as const;
type BeatRole = (typeof BEAT_ROLES)[number];

/** What this box is. */
export type Role = "standby" | "active";

/** The active box, as others hear it. */
export interface ActiveBox {
  readonly box: string;
  readonly url: string | null;
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

/** Where the standby would take over by itself. */
export const TAKEOVER_READY = "ready";

/** Another box as its beats describe it. */
export interface OtherBox {
  readonly box: string;
  readonly role: BeatRole;
  readonly url: string | null;
  /** The NATS node that it uses. */
  readonly node: string;
  readonly epoch: number;
  readonly batch: number;
  /** Of the program; null where it doesn't say. */
  readonly version: string | null;
  /** True where its keys are this box's. */
  readonly keys_equal: boolean;
  /** The names of the settings that must be this box's, and aren't. */
  readonly settings_differ: readonly string[];
  /** How far its clock is ahead of this box's, ms, less what a beat takes to arrive. */
  readonly clock_ms: number;
}

/** The gateway's messages to the thread. */
export type ReplicationRequest =
  /** "ready": an active that trades; from then on it is heard while its gateway responds. */
  | { readonly kind: "describe" | "ready" }
  /** An active that hands over ends its epoch, where a standby is ready to go on. */
  | { readonly kind: "stop"; readonly handOver: boolean }
  /** To an active: promise a standby to hand over to it. */
  | { readonly kind: "demote" }
  /** To a standby: the tables are open, so what the log gets may be shown to them. */
  | { readonly kind: "follow" }
  /** To a standby: become active, unless another box is. */
  | { readonly kind: "promote"; readonly how: Promotion }
  /** To a box that is to be active: its log is open. */
  | ({ readonly kind: "lead" } & LeadSetup);

export interface LeadSetup {
  /** The log's end at the start. */
  readonly end: { readonly exchange: number; readonly batch: number; readonly hash: Uint8Array };
  /** engine/log/progress.ts */
  readonly progress: SharedArrayBuffer;
  readonly logWaker: SharedArrayBuffer;
}

/** The thread's messages to the gateway. */
export type ReplicationReport =
  /** The response to "describe". The facts are null while the nodes don't respond; `takeover` is TAKEOVER_READY, or says why not. */
  | {
      readonly kind: "stream";
      readonly facts: StreamFacts | null;
      readonly boxes: readonly OtherBox[];
      readonly takeover: string;
    }
  | { readonly kind: "loaded" }
  /** What the box is. A standby that is promoted reports it again. */
  | { readonly kind: "role"; readonly role: Role }
  /** The log of a standby has what the stream had, up to this batch, and has its first batches; nothing is appended before "follow". */
  | { readonly kind: "synced"; readonly through: number }
  /** The active box that a standby hears; null for none. */
  | { readonly kind: "active"; readonly active: ActiveBox | null }
  /** An active hands over to this box: it has to stop. Also the response to "demote". */
  | { readonly kind: "resigning"; readonly to: string }
  /** The epoch is over, and that box goes on. */
  | { readonly kind: "resigned"; readonly to: ActiveBox }
  /** The response to "promote" and "demote" where it isn't done. */
  | { readonly kind: "stays"; readonly reason: string }
  /** The stream is there, and continues with this box's log. */
  | { readonly kind: "opened" }
  /** Another box is active. */
  | { readonly kind: "fenced"; readonly error: string; readonly by: ActiveBox | null }
  /** Something that an operator has to change before a start. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "line"; readonly level: "info" | "warn" | "error"; readonly text: string };
