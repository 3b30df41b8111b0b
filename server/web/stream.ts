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
export const liveState = signal<"idle" | "connecting" | "live" | "stale">("idle");

interface Message {
  readonly event?: string;
  readonly id?: number;
  readonly code?: number;
  readonly msg?: string;
  readonly sequence: number;
  readonly ts: number;
  readonly data: unknown;
}

export interface LiveEvent {
  readonly event: string;
  readonly sequence: number;
  readonly ts: number;
  readonly data: never;
}

interface Subscriber {
  /** Each message of the channel. */
  readonly onEvent: (event: LiveEvent) => void;
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
  readonly tickers: Map<number, LiveEvent>;
}

const HEARTBEAT_MS = 5_000;
/** Two heartbeats, and a little. */
const SILENCE_MS = 2 * HEARTBEAT_MS + 2_000;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 10_000;
const CLOSE_UNAUTHENTICATED = 4401;
/** Codes of the API's errors. */
const UNAUTHENTICATED = 40100;
const EXPIRED = 2002;

const topics = new Map<string, Topic>();
const ownListeners = new Map<string, Set<(event: LiveEvent) => void>>();
const ownGapListeners = new Set<() => void>();
const waiting = new Map<number, (message: Message) => void>();
let socket: WebSocket | null = null;
/** A token was presented on the connection, which is that user's from then on. */
let isPresented = false;
let isAuthenticated = false;
/** Of the last order.updated; null where none was heard of yet. */
let orderSequence: number | null = null;
/** What came after it is asked for. */
let isResuming = false;
let lastId = 0;
let lastHeard = 0;
let waitMs = FIRST_WAIT_MS;
let reconnecting: ReturnType<typeof setTimeout> | null = null;

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
  onEvent: (event: LiveEvent) => void,
  onGap?: () => void,
): () => void {
  const key = keyOf(channel, marketId, outcomeId);
  const subscriber = { onEvent, onGap };
  let topic = topics.get(key);
  if (topic === undefined) {
    const named = { channel, market_id: marketId, outcome_id: outcomeId };
    topic = { ...named, subscribers: new Set([subscriber]), sequence: null, tickers: new Map() };
    topics.set(key, topic);
    ask("subscribe", topic);
  } else {
    topic.subscribers.add(subscriber);
    // For a snapshot of its own; nobody else minds another.
    if (channel === "book") renewTopic(topic);
    for (const event of topic.tickers.values()) onEvent(event);
  }
  connect();
  return () => {
    topic.subscribers.delete(subscriber);
    if (topic.subscribers.size > 0 || topics.get(key) !== topic) return;
    topics.delete(key);
    ask("unsubscribe", topic);
  };
}

/** Hears the caller's own events until the answer is called. @param event such as order.updated */
export function onOwn(event: string, listener: (event: LiveEvent) => void): () => void {
  const found = ownListeners.get(event) ?? new Set();
  ownListeners.set(event, found.add(listener));
  connect();
  return () => found.delete(listener);
}

/** What is known of the caller's own state is to be read anew. */
export function onOwnGap(listener: () => void): () => void {
  ownGapListeners.add(listener);
  return () => ownGapListeners.delete(listener);
}

function operation(op: string, fields: object, answered: (message: Message) => void = () => {}): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  lastId++;
  waiting.set(lastId, answered);
  socket.send(JSON.stringify({ op, id: lastId, ...fields }));
}

function ask(op: "subscribe" | "unsubscribe", topic: Topic, answered = (): void => {}): void {
  const { channel, market_id, outcome_id } = topic;
  const named = {
    channel,
    ...(market_id === null ? {} : { market_id }),
    ...(outcome_id === null ? {} : { outcome_id }),
  };
  operation(op, named, ({ code, data }) => {
    if (op !== "subscribe" || code !== 0) return;
    const { subscriptions } = data as { subscriptions: { sequence: number }[] };
    topic.sequence ??= subscriptions[0]?.sequence ?? null;
    answered();
  });
}

/** Messages were missed: a new subscription brings a new snapshot. */
function renewTopic(topic: Topic): void {
  ask("unsubscribe", topic);
  topic.sequence = null;
  ask("subscribe", topic);
}

function connect(): void {
  if (socket !== null || reconnecting !== null) return;
  if (liveState.peek() !== "stale") liveState.value = "connecting";
  const { protocol, host } = window.location;
  const opened = new WebSocket(`${protocol === "https:" ? "wss" : "ws"}://${host}${base}api/v1/ws`);
  socket = opened;
  lastHeard = Date.now();
  opened.onopen = () => void greet(opened);
  opened.onmessage = ({ data }) => {
    if (socket === opened) receive(JSON.parse(data as string) as Message);
  };
  opened.onclose = ({ code }) => {
    if (socket === opened) lost(code);
  };
}

async function greet(opened: WebSocket): Promise<void> {
  const token = await accessToken().catch(() => null);
  if (socket !== opened) return;
  if (token !== null) authenticate(token);
  for (const topic of topics.values()) {
    topic.sequence = null;
    // What happened before it is known to be heard may be in nothing that was read: that goes for the first time too.
    ask("subscribe", topic, () => tellGap(topic));
  }
  if (token === null) live();
}

function tellGap({ subscribers }: Topic): void {
  for (const { onGap } of subscribers) onGap?.();
}

function live(): void {
  waitMs = FIRST_WAIT_MS;
  liveState.value = "live";
}

function authenticate(token: string): void {
  isPresented = true;
  operation("auth", { token }, ({ code }) => {
    // Nothing of the caller's own would come: another connection, in a while, and where that helps another token.
    if (code !== 0) return lost(code === UNAUTHENTICATED || code === EXPIRED ? CLOSE_UNAUTHENTICATED : 0);
    live();
    if (isAuthenticated) return;
    isAuthenticated = true;
    if (orderSequence === null) tellOwnGap();
    else resume();
  });
}

/** Has everything after the last order update that was heard told again, in its turn. */
function resume(): void {
  if (isResuming) return;
  isResuming = true;
  operation("resume", { sequence: orderSequence }, ({ code }) => {
    isResuming = false;
    if (code === 0) return;
    // It can't be told any more, or not now: all is read anew, and counted from what comes next.
    orderSequence = null;
    tellOwnGap();
  });
}

function tellOwnGap(): void {
  for (const listener of ownGapListeners) listener();
}

function receive(message: Message): void {
  lastHeard = Date.now();
  if (liveState.peek() === "stale") liveState.value = "live";
  const { id, event } = message;
  if (event === undefined) {
    if (id === undefined) return;
    const answered = waiting.get(id);
    waiting.delete(id);
    answered?.(message);
  } else if (event === "heartbeat") compare(message.data as Heartbeat);
  else if (event === "system.shutdown") lost(0);
  else if (ownListeners.has(event) || event === "order.updated") receiveOwn(message as LiveEvent);
  else receiveTopic(message as LiveEvent);
}

function receiveOwn(event: LiveEvent): void {
  if (event.event === "order.updated") {
    if (orderSequence !== null) {
      // Said again after a resume.
      if (event.sequence <= orderSequence) return;
      // It went out between the sign-in and the resume, which brings it again behind what was missed before it.
      if (event.sequence > orderSequence + 1) return resume();
    }
    orderSequence = event.sequence;
  }
  for (const listener of ownListeners.get(event.event) ?? []) listener(event);
}

const CHANNEL_OF: Readonly<Record<string, Channel>> = {
  "book.snapshot": "book",
  "book.updated": "book",
  "trade.created": "trades",
  "ticker.updated": "ticker",
  "market.updated": "markets",
};

function receiveTopic(event: LiveEvent): void {
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
      missed(topic);
      continue;
    }
    topic.sequence = event.sequence;
    if (channel === "ticker") topic.tickers.set(outcomeId!, event);
    for (const { onEvent } of topic.subscribers) onEvent(event);
  }
}

function missed(topic: Topic): void {
  renewTopic(topic);
  tellGap(topic);
}

/** What the server has sent, against what was heard. */
function compare({ subscriptions, orders }: Heartbeat): void {
  for (const { channel, market_id, outcome_id, sequence } of subscriptions) {
    const topic = topics.get(keyOf(channel, market_id, outcome_id));
    if (topic === undefined || topic.sequence === null) continue;
    if (topic.sequence < sequence) missed(topic);
  }
  if (orders === null) return;
  if (orderSequence !== null && orderSequence < orders) resume();
  orderSequence ??= orders;
}

function disconnect(): void {
  const gone = socket;
  socket = null;
  isPresented = false;
  isAuthenticated = false;
  isResuming = false;
  waiting.clear();
  gone?.close();
}

/** @param code of the close, 0 where the page closes it */
function lost(code: number): void {
  disconnect();
  liveState.value = "stale";
  if (code === CLOSE_UNAUTHENTICATED) renew().catch(() => {});
  // Not all pages at one time.
  const delay = waitMs * (0.5 + Math.random());
  waitMs = Math.min(2 * waitMs, MAX_WAIT_MS);
  reconnecting = setTimeout(() => {
    reconnecting = null;
    connect();
  }, delay);
}

/** Watches for silence, and for who is signed in. Called once. */
export function startLive(): void {
  setInterval(() => {
    if (socket !== null && Date.now() - lastHeard > SILENCE_MS) lost(0);
  }, 1_000);
  window.addEventListener("online", () => {
    waitMs = FIRST_WAIT_MS;
    if (socket === null && reconnecting !== null) {
      clearTimeout(reconnecting);
      reconnecting = null;
      connect();
    }
  });
  onToken((token) => {
    if (token === null) {
      orderSequence = null;
      // A connection has one user: what comes from now on is for nobody in particular.
      if (!isPresented) return;
      disconnect();
      connect();
    } else if (socket?.readyState === WebSocket.OPEN) authenticate(token);
  });
  connect();
}
