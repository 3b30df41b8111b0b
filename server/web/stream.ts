/**
 * The page's single WebSocket. Subscribes to channels while a component shows them. After a reconnect, resubscribes to
 * everything and resumes the user's order updates after the last one received. Sequences and heartbeats reveal missed
 * events; silence marks the stream as stale.
 */
import { signal } from "@preact/signals";
import { learnTime } from "./clock.ts";
import { base } from "./router.ts";
import { accessToken, onToken, renew } from "./session.ts";
import type { Heartbeat, Shutdown } from "./types.ts";

export type Channel = "book" | "trades" | "ticker" | "markets";

/** "stale": displayed data may be out of date. */
export const streamState = signal<"idle" | "connecting" | "live" | "stale">("idle");

interface Outage {
  /** When the last message arrived, and when the next try begins; ms of this computer's clock. */
  readonly since: number | null;
  readonly nextTry: number;
  /** The address of the server that goes on with the exchange, where this one said it. */
  readonly other: string | null;
}

/** Null unless the stream is stale. */
export const outage = signal<Partial<Outage> | null>(null);

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
  /** Called with each event of the channel. */
  readonly onEvent: (event: StreamEvent) => void;
  /** Called when events may have been missed and the channel sends no snapshot. */
  readonly onGap: (() => void) | undefined;
}

interface Topic {
  readonly channel: Channel;
  readonly market_id: number | null;
  readonly outcome_id: number | null;
  readonly subscribers: Set<Subscriber>;
  /** Sequence of the last event; null until the subscription is acknowledged. */
  sequence: number | null;
  /** The last ticker of each outcome, for later subscribers. */
  readonly tickers: Map<number, StreamEvent>;
}

const HEARTBEAT_MS = 5_000;
/** Two missed heartbeats and a margin. */
const SILENCE_MS = 2 * HEARTBEAT_MS + 2_000;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 10_000;
/** Another box trades after two or three seconds: by then a page tries every second. */
const BACKOFF_GROWTH = 1.3;
const CLOSE_UNAUTHENTICATED = 4401;
/** API error codes. */
const UNAUTHENTICATED = 40100;
const EXPIRED = 2002;

const topics = new Map<string, Topic>();
const privateListeners = new Map<string, Set<(event: StreamEvent) => void>>();
const privateGapListeners = new Set<() => void>();
const pendingReplies = new Map<number, (message: Message) => void>();
let socket: WebSocket | null = null;
/** A token was sent on this connection, which belongs to its user from then on. */
let isTokenSent = false;
let isAuthenticated = false;
/** Sequence of the last order.updated; null before the first. */
let orderSequence: number | null = null;
/** A resume from that sequence is in flight. */
let isResuming = false;
let lastId = 0;
/** By the clock that goes on while the computer sleeps, and by the one that nobody sets. */
let lastMessage = { at: 0, monotonic: 0 };
/** When the last message arrived, ms of this computer's clock; null before the first. */
let heardAt: number | null = null;
/** As in the outage. */
let other: string | null = null;
let backoffMs = FIRST_BACKOFF_MS;
let reconnectTimer: ReturnType<typeof setTimeout> | null = null;

const keyOf = (channel: string, marketId: number | null, outcomeId: number | null): string =>
  `${channel}/${marketId ?? "all"}/${outcomeId ?? "all"}`;

/**
 * Subscribes to a channel. Returns a function that unsubscribes.
 * @param outcomeId for book and ticker; null for ticker: all outcomes of the market
 * @param onGap called when events were missed: reload the data they update. A book needs none, it sends a new snapshot
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
    const target = { channel, market_id: marketId, outcome_id: outcomeId };
    topic = { ...target, subscribers: new Set([subscriber]), sequence: null, tickers: new Map() };
    topics.set(key, topic);
    sendSubscription("subscribe", topic);
  } else {
    topic.subscribers.add(subscriber);
    // The new subscriber needs a snapshot; another one doesn't harm the others.
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

/** Listens to the user's private events. Returns a function that unsubscribes. @param event such as order.updated */
export function onPrivateEvent(event: string, listener: (event: StreamEvent) => void): () => void {
  const found = privateListeners.get(event) ?? new Set();
  privateListeners.set(event, found.add(listener));
  connect();
  return () => found.delete(listener);
}

/** Calls the listener when private events may have been missed: reload the user's state. */
export function onPrivateGap(listener: () => void): () => void {
  privateGapListeners.add(listener);
  return () => privateGapListeners.delete(listener);
}

function sendOperation(op: string, fields: object, onReply: (message: Message) => void = () => {}): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  lastId++;
  pendingReplies.set(lastId, onReply);
  socket.send(JSON.stringify({ op, id: lastId, ...fields }));
}

function sendSubscription(op: "subscribe" | "unsubscribe", topic: Topic, onReply = (): void => {}): void {
  const { channel, market_id, outcome_id } = topic;
  const target = {
    channel,
    ...(market_id === null ? {} : { market_id }),
    ...(outcome_id === null ? {} : { outcome_id }),
  };
  sendOperation(op, target, ({ code, data }) => {
    if (op !== "subscribe" || code !== 0) return;
    const { subscriptions } = data as { subscriptions: { sequence: number }[] };
    topic.sequence ??= subscriptions[0]?.sequence ?? null;
    onReply();
  });
}

/** Resubscribes after missed events: a new subscription starts with a new snapshot. */
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
  lastMessage = { at: Date.now(), monotonic: performance.now() };
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
    // Events before the acknowledgement may be missing from the loaded data. This applies to the first connection too.
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
  outage.value = null;
  other = null;
}

function authenticate(token: string): void {
  isTokenSent = true;
  sendOperation("auth", { token }, ({ code }) => {
    // Private events wouldn't arrive: reconnect after a delay, with a new token if the old one was rejected.
    if (code !== 0) return reconnect(code === UNAUTHENTICATED || code === EXPIRED ? CLOSE_UNAUTHENTICATED : 0);
    setLive();
    if (isAuthenticated) return;
    isAuthenticated = true;
    if (orderSequence === null) notifyPrivateGap();
    else resume();
  });
}

/** Asks the server to replay, in order, all order updates after the last one received. */
function resume(): void {
  if (isResuming) return;
  isResuming = true;
  sendOperation("resume", { sequence: orderSequence }, ({ code }) => {
    isResuming = false;
    if (code === 0) return;
    // The replay isn't available: reload everything, and count from the next event.
    orderSequence = null;
    notifyPrivateGap();
  });
}

function notifyPrivateGap(): void {
  for (const listener of privateGapListeners) listener();
}

function receive(message: Message): void {
  lastMessage = { at: Date.now(), monotonic: performance.now() };
  heardAt = lastMessage.at;
  if (streamState.peek() === "stale") setLive();
  const { id, event } = message;
  if (event === undefined) {
    if (id === undefined) return;
    const onReply = pendingReplies.get(id);
    pendingReplies.delete(id);
    onReply?.(message);
  } else if (event === "heartbeat") {
    learnTime(message.ts);
    checkHeartbeat(message.data as Heartbeat);
  } else if (event === "system.shutdown") {
    other = (message.data as Shutdown).url;
    reconnect(0);
  } else if (privateListeners.has(event) || event === "order.updated") receivePrivate(message as StreamEvent);
  else receiveTopic(message as StreamEvent);
}

function receivePrivate(event: StreamEvent): void {
  if (event.event === "order.updated") {
    if (orderSequence !== null) {
      // Already received: repeated by a resume.
      if (event.sequence <= orderSequence) return;
      // Sent between authentication and resume. The resume repeats it after the events missed before it.
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
  const target = event.data as { id?: number; market_id?: number; outcome_id?: number };
  const marketId = (channel === "markets" ? target.id : target.market_id) ?? null;
  const outcomeId = channel === "trades" || channel === "markets" ? null : (target.outcome_id ?? null);
  const keys = [keyOf(channel, marketId, outcomeId)];
  if (channel === "markets") keys.push(keyOf(channel, null, null));
  if (channel === "ticker") keys.push(keyOf(channel, marketId, null));
  for (const key of keys) {
    const topic = topics.get(key);
    if (topic === undefined) continue;
    // A ticker carries the full state: a gap before it doesn't matter.
    const isDelta = channel !== "ticker" && event.event !== "book.snapshot";
    if (isDelta && topic.sequence !== null && event.sequence > topic.sequence + 1) {
      handleGap(topic);
      continue;
    }
    topic.sequence = event.sequence;
    if (channel === "ticker" && outcomeId !== null) topic.tickers.set(outcomeId, event);
    for (const { onEvent } of topic.subscribers) onEvent(event);
  }
}

function handleGap(topic: Topic): void {
  resubscribe(topic);
  notifyGap(topic);
}

/** Compares the server's sequences with those received. */
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
  const closing = socket;
  socket = null;
  isTokenSent = false;
  isAuthenticated = false;
  isResuming = false;
  pendingReplies.clear();
  closing?.close();
}

/** @param code close code, 0 if this page closes the connection */
function reconnect(code: number): void {
  disconnect();
  streamState.value = "stale";
  if (code === CLOSE_UNAUTHENTICATED) renew().catch(() => {});
  // Jitter: not all pages reconnect at once.
  const delay = backoffMs * (0.5 + Math.random());
  backoffMs = Math.min(BACKOFF_GROWTH * backoffMs, MAX_BACKOFF_MS);
  outage.value = { since: outage.peek()?.since ?? heardAt, nextTry: Date.now() + delay, other };
  reconnectTimer = setTimeout(() => {
    reconnectTimer = null;
    connect();
  }, delay);
}

/** Tries to connect at once. */
export function retryNow(): void {
  backoffMs = FIRST_BACKOFF_MS;
  if (socket !== null || reconnectTimer === null) return;
  clearTimeout(reconnectTimer);
  reconnectTimer = null;
  connect();
}

/** Connects, watches for silence, and follows the session. Call once. */
export function startStream(): void {
  setInterval(() => {
    const silenceMs = Math.max(Date.now() - lastMessage.at, performance.now() - lastMessage.monotonic);
    if (socket !== null && silenceMs > SILENCE_MS) reconnect(0);
  }, 1_000);
  window.addEventListener("online", retryNow);
  onToken((token) => {
    if (token === null) {
      orderSequence = null;
      // A connection belongs to one user: continue anonymously on a new one.
      if (!isTokenSent) return;
      disconnect();
      connect();
    } else if (socket?.readyState === WebSocket.OPEN) authenticate(token);
  });
  connect();
}
