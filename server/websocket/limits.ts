/**
 * Bounds of WebSocket connections: messages, subscriptions, snapshots, replays. Imports nothing but other limits: the web
 * page reads them too.
 */

/** Concurrent connections; docs/performance.md says what each costs. */
export const MAX_WS_CONNECTIONS = 100_000;
/** Connections of one IP address, unless MAX_SOCKETS_PER_ADDRESS sets another number. */
export const SOCKETS_PER_ADDRESS = 500;
/** How long a ticket is valid, and how many unused ones the exchange keeps. */
export const SOCKET_TICKET_MS = 60_000;
export const MAX_SOCKET_TICKETS = 50_000;

export const MAX_WS_BACKPRESSURE_BYTES = 1024 * 1024;
export const MAX_WS_MESSAGE_BYTES = 64 * 1024;
/**
 * The longest message that the gateway reads at all, so that it can close with 1009 above MAX_WS_MESSAGE_BYTES: as much
 * memory as a peer that doesn't read may hold in the other direction.
 */
export const MAX_WS_FRAME_BYTES = 1024 * 1024;
export const MAX_WS_SUBSCRIPTIONS = 1_000;

/** Messages of one anonymous socket in a turn longer than MAX_TURN_MS; the gateway cuts off a socket that sends more. */
export const MAX_MESSAGES_PER_LONG_TURN = 1_000;
/** The same for signed-in sockets: a maker who cancels thousands of orders at once is not limited as a flood on a slow machine either. */
export const MAX_TURN_OF_USER_MS = 200;
export const MAX_MESSAGES_OF_USER_PER_LONG_TURN = 20_000;

export const HEARTBEAT_MS = 5_000;
/** How often the hub publishes tickers, sends a part of the heartbeats, and looks for slow consumers. */
export const SOCKET_TICK_MS = 100;
/** The gateway pings a silent peer after 12 s and closes it 8 s later: this bounds cancel on disconnect. */
export const WS_IDLE_TIMEOUT_S = 20;

/**
 * Snapshots and first states of new subscriptions: how many of them a connection gets at once, how many per second after
 * that, and the unread bytes above which the next ones wait.
 */
export const MAX_SNAPSHOTS = 2 * MAX_WS_SUBSCRIPTIONS;
export const SNAPSHOTS_PER_SECOND = 100;
export const MAX_SNAPSHOT_AHEAD_BYTES = 256 * 1024;

/** Order updates that a replay reads at a time. */
export const REPLAY_PAGE = 1_000;
/** A replay sends this much at a time, waits above this many unread bytes, and buffers this much live data meanwhile. */
export const REPLAY_SLICE_BYTES = 64 * 1024;
export const MAX_REPLAY_AHEAD_BYTES = 256 * 1024;
export const MAX_DEFERRED_UPDATE_BYTES = 512 * 1024;
