/** Bounds of the copy of the log that other boxes get. Imports nothing. */

/** A publish without a response by then is sent again, ms. */
export const PUBLISH_TIMEOUT_MS = 400;
/** Between two attempts where the nodes say that they can't, ms. */
export const RETRY_MS = 50;
/** Above so many bytes, some 64 orders, the next message waits until so long after the one before was sent, ms. */
export const LARGE_MESSAGE_BYTES = 12 * 1_024;
export const MIN_GAP_MS = 8;
/** A request of JetStream's API without a response by then is sent again, ms. */
export const API_TIMEOUT_MS = 2_000;
/** Where it is idempotent, it is repeated meanwhile that often, ms. */
export const API_REPEAT_MS = 250;
/** A connection without a response to a ping is dead after two of these, ms. */
export const PING_MS = 500;
export const CONNECT_TIMEOUT_MS = 2_000;
export const RECONNECT_MS = 100;
/** How often a box says what it is, ms, and for how long after its last beat it still counts. */
export const BEAT_MS = 100;
export const SUSPICION_MS = 1_500;
/** How often the gateway shows that it runs, ms, and after how long a box whose gateway doesn't is no active one, ms. */
export const TICK_MS = 250;
export const HUNG_MS = 3_000;
/** The same while it starts: opening the files of a large exchange is one long step. */
export const START_HUNG_MS = 120_000;
/** An active that doesn't hear a standby for so long says in the stream that it is there, and how often, ms: beats may be lost alone. */
export const UNHEARD_MS = 300;
export const ALIVE_MS = 500;
/** When the place of the stream's leader is looked at, ms: at least so often, and so soon after an election. */
export const LEADER_CHECK_MS = 10_000;
export const LEADER_SETTLES_MS = 1_000;
/** How often a leader is asked to step down within this time, ms. */
export const MAX_STEP_DOWNS = 4;
export const STEP_DOWNS_MS = 40_000;
/** How often a standby looks whether the active box is another one, ms. */
export const ACTIVE_CHECK_MS = 100;
/** How often an active looks whether its standby is lost, ms. */
export const ALONE_CHECK_MS = 250;
/** For how long a signed request is valid, ms, and how long its sender waits. */
export const ASK_VALID_MS = 30_000;
export const ASK_TIMEOUT_MS = 2_000;
/** A copy's piece, bytes, and how many of them are on their way at a time. */
export const PIECE_BYTES = 512 * 1_024;
export const PIECES_AT_A_TIME = 8;
/** How long a request for one waits, less than ASK_VALID_MS, ms: a slow line takes long for all that are on their way. */
export const PIECE_TIMEOUT_MS = 20_000;
/** How long a request about a copy is repeated where its thread is busy, or there is none, and how soon, ms. */
export const COPY_BUSY_MS = 120_000;
export const COPY_PATIENCE_MS = 10_000;
export const COPY_POLL_MS = 250;
/** How soon a standby begins again to ask for a copy, ms: first, and after several failures. */
export const COPY_RETRY_MS = 5_000;
export const MAX_COPY_RETRY_MS = 300_000;
/** A copy that nobody asks for any more is deleted after so long, ms. */
export const COPY_IDLE_MS = 600_000;
/** What a copy leaves free on either box's disk, bytes. */
export const COPY_SPARE_BYTES = 2 ** 28;
/** How often a box looks at its keys, and a standby asks again that could not get the active box's, ms. */
export const KEYS_CHECK_MS = 1_000;
export const KEYS_RETRY_MS = 5_000;
/** For how long a command that makes a key waits for the standby to have it, and how often it looks, ms. */
export const KEYS_COPY_MS = 10_000;
export const KEYS_POLL_MS = 50;
/** How long a start waits for a box that takes calls, ms. */
export const CALL_TIMEOUT_MS = 500;
/** A standby that an active says is behind reads the stream after so long, ms: the message may be on its way. */
export const BEHIND_MS = 50;
/** Bytes of messages that may wait for a standby's disk. Beyond that they are dropped, and read from the stream. */
export const MAX_WAITING_BYTES = 64 * 2 ** 20;
/** Messages whose end an active remembers until the standby has it. */
export const MAX_SENT_ENDS = 64;
/** Bytes of a batch whose hash is computed only when a standby reports it. */
export const MAX_KEPT_BODY_BYTES = 64 * 1_024;
/** An active that has nothing to ship says so in the stream that often, ms: its messages are deleted after some days. */
export const IDLE_MS = 6 * 3_600_000;
/** How often the stream's settings are checked, ms. */
export const CHECK_MS = 60_000;
/** How soon a stream that was too weak is looked at again, ms. */
export const MENDED_MS = 1_000;
/** How often a wait for the nodes is reported, ms. */
export const REPORT_MS = 10_000;
/** Attempts without a known outcome after which the stream itself is looked at. */
export const ATTEMPTS_PER_CHECK = 20;
/** What ends trading, such as a stream that is gone, has to be so for this long, ms: nodes may have just begun. */
export const SURE_MS = 2_000;
/** How long a node's monitoring port may take to respond, ms. */
export const MONITOR_TIMEOUT_MS = 2_000;
/** The log waits for the other places no longer than this before requests are refused, ms. */
export const MAX_HELD_MS = 2_000;
/** How long an operator waits for what the nodes say of the stream, ms: longer than API_TIMEOUT_MS. */
export const DESCRIBE_MS = 3_000;
/** How long an operator waits until a standby has read the rest of the stream, ms. */
export const PROMOTE_MS = 10_000;
/** How often a standby looks at the stream while no box is active, ms. */
export const LOOK_MS = 1_000;
/** How long an active that is asked to resign waits for the nodes, and for the standby, ms: together less than ASK_TIMEOUT_MS. */
export const READY_MS = 700;
/** How long one that resigns waits for the rest of the log on the standby, ms, and how often it looks. */
export const HAND_OVER_MS = 1_500;
export const HAND_OVER_POLL_MS = 2;
/** How soon a standby looks again for a resignation that it has heard and the stream doesn't have yet, ms, and how long. */
export const RESIGN_POLL_MS = 5;
export const RESIGN_SURE_MS = 2_000;
/** How long the thread has to ship the rest at a stop, ms. */
export const STOP_MS = 4_000;

/** What the stream keeps: a box that was away for less finds all that it missed. */
export const STREAM_DAYS = 7;
export const STREAM_BYTES = 16 * 2 ** 30;
/** Less than this, by an operator's hand, and the start refuses it. */
export const MIN_STREAM_DAYS = 1;
export const MIN_STREAM_BYTES = 2 ** 30;
/** The nodes' own default of `max_payload`, bytes. */
export const MIN_PAYLOAD_BYTES = 2 ** 20;
