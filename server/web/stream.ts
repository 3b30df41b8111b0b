/**
 * The page's one WebSocket. Channels are subscribed to while somebody looks; after a break everything is subscribed to
 * anew and the caller's own order updates are resumed after the last one that was heard. Sequences and heartbeats show
 * what was missed; silence shows that the stream is stale.
 */
import { signal } from "@preact/signals";
import { base } from "./router.ts";
import { accessToken, onToken, renew } from "./session.ts";
import type { Heartbeat } from "./types.ts";

export type Channel = "book" | "trades" | "ticker" | "markets";

/** stale: what is shown may be old. */
export const streamState = signal<"idle" | "connecting" | "live" | "stale">("idle");

interface Message {
  readonly event?: string;
  readonly id?: number;
  readonly code?: number;
  readonly msg?: string;
  readonly sequence: number;
  readonly ts: number;
  readonly data: unknown;
}

export interface StreamEvent {
  readonly event: string;
  readonly sequence: number;
  readonly ts: number;
  readonly data: never;
}

interface Subscriber {
  /** Each message of the channel. */
  readonly onEvent: (event: StreamEvent) => void;
  /** Messages may have been missed: what isn't a snapshot of its own is to be read anew. */
  readonly onGap: (() => void) | undefined;
}

interface Topic {
  readonly channel: Channel;
  readonly market_id: number | null;
  readonly outcome_id: number | null;
  readonly subscribers: Set<Subscriber>;
  /** Of the last message; null until the subscription is acknowledged. */
  sequence: number | null;
  /** The last ticker of each outcome, for who comes later. */
  readonly tickers: Map<number, StreamEvent>;
}

const HEARTBEAT_MS = 5_000;
/** Two heartbeats, and a little. */
const SILENCE_MS = 2 * HEARTBEAT_MS + 2_000;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 10_000;
const CLOSE_UNAUTHENTICATED = 4401;
/** Codes of the API's errors. */
const UNAUTHENTICATED = 40100;
const EXPIRED = 2002;

const topics = new Map<string, Topic>();
const privateListeners = new Map<string, Set<(event: StreamEvent) => void>>();
const privateGapListeners = new Set<() => void>();
const pendingReplies = new Map<number, (message: Message) => void>();
let socket: WebSocket | null = null;
/** A token was presented on the connection, which is that user's from then on. */
let isTokenSent = false;
let isAuthenticated = false;
/** Of the last order.updated; null where none was heard of yet. */
let orderSequence: number | null = null;
/** What came after it is asked for. */
let isResuming = false;
let lastId = 0;
let lastMessageAt = 0;
let backoffMs = FIRST_BACKOFF_MS;
let reconnectTimer: ReturnType<typeof setTimeout> | null = null;

const keyOf = (channel: string, marketId: number | null, outcomeId: number | null): string =>
  `${channel}/${marketId ?? "all"}/${outcomeId ?? "all"}`;

/**
 * Hears a channel until the answer is called.
 * @param outcomeId of book and ticker; null with ticker: all of the market's
 * @param onGap messages were missed: read what the channel's events add to anew. A book sends a snapshot of itself
 */
export function subscribe(
  channel: Channel,
  marketId: number | null,
  outcomeId: number | null,
  onEvent: (event: StreamEvent) => void,
  onGap?: () => void,
): () => void {
  const key = keyOf(channel, marketId, outcomeId);
  const subscriber = { onEvent, onGap };
  let topic = topics.get(key);
  if (topic === undefined) {
    const named = { channel, market_id: marketId, outcome_id: outcomeId };
    topic = { ...named, subscribers: new Set([subscriber]), sequence: null, tickers: new Map() };
    topics.set(key, topic);
    sendSubscription("subscribe", topic);
  } else {
    topic.subscribers.add(subscriber);
    // For a snapshot of its own; nobody else minds another.
    if (channel === "book") resubscribe(topic);
    for (const event of topic.tickers.values()) onEvent(event);
  }
  connect();
  return () => {
    topic.subscribers.delete(subscriber);
    if (topic.subscribers.size > 0 || topics.get(key) !== topic) return;
    topics.delete(key);
    sendSubscription("unsubscribe", topic);
  };
}

/** Hears the caller's own events until the answer is called. @param event such as order.updated */
export function onPrivateEvent(event: string, listener: (event: StreamEvent) => void): () => void {
  const found = privateListeners.get(event) ?? new Set();
  privateListeners.set(event, found.add(listener));
  connect();
  return () => found.delete(listener);
}

/** What is known of the caller's own state is to be read anew. */
export function onPrivateGap(listener: () => void): () => void {
  privateGapListeners.add(listener);
  return () => privateGapListeners.delete(listener);
}

function sendOperation(op: string, fields: object, answered: (message: Message) => void = () => {}): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  lastId++;
  pendingReplies.set(lastId, answered);
  socket.send(JSON.stringify({ op, id: lastId, ...fields }));
}

function sendSubscription(op: "subscribe" | "unsubscribe", topic: Topic, answered = (): void => {}): void {
  const { channel, market_id, outcome_id } = topic;
  const named = {
    channel,
    ...(market_id === null ? {} : { market_id }),
    ...(outcome_id === null ? {} : { outcome_id }),
  };
  sendOperation(op, named, ({ code, data }) => {
    if (op !== "subscribe" || code !== 0) return;
    const { subscriptions } = data as { subscriptions: { sequence: number }[] };
    topic.sequence ??= subscriptions[0]?.sequence ?? null;
    answered();
  });
}

/** Messages were missed: a new subscription brings a new snapshot. */
function resubscribe(topic: Topic): void {
  sendSubscription("unsubscribe", topic);
  topic.sequence = null;
  sendSubscription("subscribe", topic);
}

function connect(): void {
  if (socket !== null || reconnectTimer !== null) return;
  if (streamState.peek() !== "stale") streamState.value = "connecting";
  const { protocol, host } = window.location;
  const opened = new WebSocket(`${protocol === "https:" ? "wss" : "ws"}://${host}${base}api/v1/ws`);
  socket = opened;
  lastMessageAt = Date.now();
  opened.onopen = () => void onOpen(opened);
  opened.onmessage = ({ data }) => {
    if (socket === opened) receive(JSON.parse(data as string) as Message);
  };
  opened.onclose = ({ code }) => {
    if (socket === opened) reconnect(code);
  };
}

async function onOpen(opened: WebSocket): Promise<void> {
  const token = await accessToken().catch(() => null);
  if (socket !== opened) return;
  if (token !== null) authenticate(token);
  for (const topic of topics.values()) {
    topic.sequence = null;
    // What happened before it is known to be heard may be in nothing that was read: that goes for the first time too.
    sendSubscription("subscribe", topic, () => notifyGap(topic));
  }
  if (token === null) setLive();
}

function notifyGap({ subscribers }: Topic): void {
  for (const { onGap } of subscribers) onGap?.();
}

function setLive(): void {
  backoffMs = FIRST_BACKOFF_MS;
  streamState.value = "live";
}

function authenticate(token: string): void {
  isTokenSent = true;
  sendOperation("auth", { token }, ({ code }) => {
    // Nothing of the caller's own would come: another connection, in a while, and where that helps another token.
    if (code !== 0) return reconnect(code === UNAUTHENTICATED || code === EXPIRED ? CLOSE_UNAUTHENTICATED : 0);
    setLive();
    if (isAuthenticated) return;
    isAuthenticated = true;
    if (orderSequence === null) notifyPrivateGap();
    else resume();
  });
}

/** Has everything after the last order update that was heard told again, in its turn. */
function resume(): void {
  if (isResuming) return;
  isResuming = true;
  sendOperation("resume", { sequence: orderSequence }, ({ code }) => {
    isResuming = false;
    if (code === 0) return;
    // It can't be told any more, or not now: all is read anew, and counted from what comes next.
    orderSequence = null;
    notifyPrivateGap();
  });
}

function notifyPrivateGap(): void {
  for (const listener of privateGapListeners) listener();
}

function receive(message: Message): void {
  lastMessageAt = Date.now();
  if (streamState.peek() === "stale") streamState.value = "live";
  const { id, event } = message;
  if (event === undefined) {
    if (id === undefined) return;
    const answered = pendingReplies.get(id);
    pendingReplies.delete(id);
    answered?.(message);
  } else if (event === "heartbeat") checkHeartbeat(message.data as Heartbeat);
  else if (event === "system.shutdown") reconnect(0);
  else if (privateListeners.has(event) || event === "order.updated") receivePrivate(message as StreamEvent);
  else receiveTopic(message as StreamEvent);
}

function receivePrivate(event: StreamEvent): void {
  if (event.event === "order.updated") {
    if (orderSequence !== null) {
      // Said again after a resume.
      if (event.sequence <= orderSequence) return;
      // It went out between the sign-in and the resume, which brings it again behind what was missed before it.
      if (event.sequence > orderSequence + 1) return resume();
    }
    orderSequence = event.sequence;
  }
  for (const listener of privateListeners.get(event.event) ?? []) listener(event);
}

const CHANNEL_OF: Readonly<Record<string, Channel>> = {
  "book.snapshot": "book",
  "book.updated": "book",
  "trade.created": "trades",
  "ticker.updated": "ticker",
  "market.updated": "markets",
};

function receiveTopic(event: StreamEvent): void {
  const channel = CHANNEL_OF[event.event];
  if (channel === undefined) return;
  const named = event.data as { id?: number; market_id?: number; outcome_id?: number };
  const marketId = (channel === "markets" ? named.id : named.market_id) ?? null;
  const outcomeId = channel === "trades" || channel === "markets" ? null : (named.outcome_id ?? null);
  const keys = [keyOf(channel, marketId, outcomeId)];
  if (channel === "markets") keys.push(keyOf(channel, null, null));
  if (channel === "ticker") keys.push(keyOf(channel, marketId, null));
  for (const key of keys) {
    const topic = topics.get(key);
    if (topic === undefined) continue;
    // A ticker is a state: the next one says it all.
    const isFact = channel !== "ticker" && event.event !== "book.snapshot";
    if (isFact && topic.sequence !== null && event.sequence > topic.sequence + 1) {
      handleGap(topic);
      continue;
    }
    topic.sequence = event.sequence;
    if (channel === "ticker") topic.tickers.set(outcomeId!, event);
    for (const { onEvent } of topic.subscribers) onEvent(event);
  }
}

function handleGap(topic: Topic): void {
  resubscribe(topic);
  notifyGap(topic);
}

/** What the server has sent, against what was heard. */
function checkHeartbeat({ subscriptions, orders }: Heartbeat): void {
  for (const { channel, market_id, outcome_id, sequence } of subscriptions) {
    const topic = topics.get(keyOf(channel, market_id, outcome_id));
    if (topic === undefined || topic.sequence === null) continue;
    if (topic.sequence < sequence) handleGap(topic);
  }
  if (orders === null) return;
  if (orderSequence !== null && orderSequence < orders) resume();
  orderSequence ??= orders;
}

function disconnect(): void {
  const gone = socket;
  socket = null;
  isTokenSent = false;
  isAuthenticated = false;
  isResuming = false;
  pendingReplies.clear();
  gone?.close();
}

/** @param code of the close, 0 where the page closes it */
function reconnect(code: number): void {
  disconnect();
  streamState.value = "stale";
  if (code === CLOSE_UNAUTHENTICATED) renew().catch(() => {});
  // Not all pages at one time.
  const delay = backoffMs * (0.5 + Math.random());
  backoffMs = Math.min(2 * backoffMs, MAX_BACKOFF_MS);
  reconnectTimer = setTimeout(() => {
    reconnectTimer = null;
    connect();
  }, delay);
}

/** Watches for silence, and for who is signed in. Called once. */
export function startStream(): void {
  setInterval(() => {
    if (socket !== null && Date.now() - lastMessageAt > SILENCE_MS) reconnect(0);
  }, 1_000);
  window.addEventListener("online", () => {
    backoffMs = FIRST_BACKOFF_MS;
    if (socket === null && reconnectTimer !== null) {
      clearTimeout(reconnectTimer);
      reconnectTimer = null;
      connect();
    }
  });
  onToken((token) => {
    if (token === null) {
      orderSequence = null;
      // A connection has one user: what comes from now on is for nobody in particular.
      if (!isTokenSent) return;
      disconnect();
      connect();
    } else if (socket?.readyState === WebSocket.OPEN) authenticate(token);
  });
  connect();
}
