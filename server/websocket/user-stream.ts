/**
 * The private messages of users: order updates, balances and positions, to each connection of the user that may see them.
 * A connection that catches up on missed updates gets them from its replay (replay.ts).
 */
import { balanceJson, balanceView, positionJson, positionsOf, positionView } from "../markets/views.ts";
import { type OrderReport, reportJson } from "../orders/order-json.ts";
import type { Exchange } from "../trading/exchange.ts";
import type { UserSink } from "../trading/types.ts";
import { UserOutbox } from "../trading/user-outbox.ts";
import { frame, type SocketConnection } from "./connection.ts";
import type { Delivery } from "./delivery.ts";
import { FrameWriter } from "./sbe/frame-writer.ts";
import type { SbeMessages } from "./sbe/messages.ts";

/** An order update as it waits: in each form that a connection of its user needs. */
interface OrderMessage {
  readonly text: string | null;
  /** SBE */
  readonly binary: Uint8Array | null;
}

/** An account's change as it waits, and who receives it. */
interface AccountUpdate {
  readonly connections: readonly SocketConnection[];
  /** ms since the epoch */
  readonly at: number;
  readonly texts: readonly string[];
  /** SBE */
  readonly binary: Uint8Array | null;
}

/** A change of an account: of its balance, and of some positions. */
interface AccountChange {
  readonly userId: number;
  readonly sequence: number;
  readonly at: number;
  /** In the ledger. */
  readonly positions: readonly number[];
}

const isBinary = ({ format }: SocketConnection): boolean => format === "sbe";

export class UserStream implements UserSink<OrderMessage, AccountUpdate> {
  /** Holds users' messages back while a composite reply is incomplete. */
  readonly outbox = new UserOutbox(this);
  private readonly exchange: Exchange;
  private readonly delivery: Delivery;
  private readonly messages: SbeMessages;
  /** For messages that wait. */
  private readonly scratch = new FrameWriter();
  /** Those that receive the user's order updates. */
  private readonly byUser = new Map<number, Set<SocketConnection>>();

  constructor(exchange: Exchange, delivery: Delivery, messages: SbeMessages) {
    this.exchange = exchange;
    this.delivery = delivery;
    this.messages = messages;
  }

  add(userId: number, connection: SocketConnection): void {
    addTo(this.byUser, userId, connection);
  }

  remove(userId: number, connection: SocketConnection): void {
    removeFrom(this.byUser, userId, connection);
  }

  has(userId: number, connection: SocketConnection): boolean {
    return this.byUser.get(userId)?.has(connection) === true;
  }

  flush(): void {
    this.delivery.flush();
  }

  listens(userId: number): boolean {
    return this.byUser.has(userId);
  }

  // ---------------------------------------------------------------- order updates

  orderUpdated(userId: number, sequence: number, at: number, report: OrderReport): void {
    const connections = this.byUser.get(userId);
    if (connections === undefined) return;
    let text: string | null = null;
    for (const connection of connections) {
      if (isBinary(connection)) {
        if (connection.replay !== null) connection.replay.defer(sequence, this.encoded(sequence, report));
        else if (this.takes(connection, sequence, at)) {
          const frame = this.delivery.frame(connection);
          if (frame !== null) this.messages.orderUpdated(frame, sequence, report);
        }
      } else {
        text ??= textOf(sequence, at, report);
        this.sendMessage(connection, sequence, at, text);
      }
    }
  }

  orderMessage(userId: number, sequence: number, at: number, report: OrderReport): OrderMessage {
    let text: string | null = null;
    let binary: Uint8Array | null = null;
    for (const connection of this.byUser.get(userId) ?? []) {
      if (!isBinary(connection)) text ??= textOf(sequence, at, report);
      else binary ??= this.encoded(sequence, report);
    }
    return { text, binary };
  }

  /** An order update in SBE. */
  encoded(sequence: number, report: OrderReport): Uint8Array {
    this.messages.orderUpdated(this.scratch, sequence, report);
    return this.scratch.take();
  }

  sendOrder(userId: number, sequence: number, at: number, { text, binary }: OrderMessage): void {
    for (const connection of this.byUser.get(userId) ?? []) {
      const message = isBinary(connection) ? binary : text;
      if (message !== null) this.sendMessage(connection, sequence, at, message);
    }
  }

  private sendMessage(connection: SocketConnection, sequence: number, at: number, message: string | Uint8Array): void {
    if (connection.replay !== null) connection.replay.defer(sequence, message);
    else if (this.takes(connection, sequence, at)) this.delivery.deliver(connection, message);
  }

  /**
   * Moves the connection on to an order update that it is about to be sent. Returns false for one that opened after the
   * update was published: its `orderSequence` says so. Such a connection may lack the form of a message that waits.
   */
  private takes(connection: SocketConnection, sequence: number, at: number): boolean {
    if (sequence <= connection.orderSequence) return false;
    connection.orderSequence = sequence;
    connection.updatedAt = at;
    return true;
  }

  // ---------------------------------------------------------------- accounts

  accountChanged(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): void {
    const connections = this.receivers(userId);
    if (connections.length > 0) this.sendChange(connections, this.changeOf(userId, sequence, at, outcomeIds));
  }

  accountUpdate(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): AccountUpdate | null {
    const connections = this.receivers(userId);
    if (connections.length === 0) return null;
    const change = this.changeOf(userId, sequence, at, outcomeIds);
    const texts = connections.every(isBinary) ? [] : this.accountTexts(change);
    if (!connections.some(isBinary)) return { connections, at, texts, binary: null };
    this.writeAccount(this.scratch, change);
    return { connections, at, texts, binary: this.scratch.take() };
  }

  sendAccountUpdate({ connections, at, texts, binary }: AccountUpdate): void {
    for (const connection of connections) {
      // While the update was deferred, a replay may have started, or a token with fewer scopes replaced the old one.
      if (connection.replay !== null) connection.replay.deferAccount();
      else if (connection.receivesAccount) {
        connection.updatedAt = at;
        if (!isBinary(connection)) for (const text of texts) this.delivery.send(connection, text);
        else if (binary !== null) this.delivery.deliver(connection, binary);
      }
    }
  }

  /** Sends a connection its balance and all positions, as of the last order update that was sent. */
  sendAccount(connection: SocketConnection): void {
    const { principal } = connection;
    if (principal === null || !connection.receivesAccount) return;
    const { ledger, updates } = this.exchange;
    const { userId } = principal;
    const positions = positionsOf(ledger, userId);
    const at = updates.publishedUntil();
    this.sendChange([connection], { userId, sequence: updates.sequenceOf(userId), at, positions });
  }

  /** The user's connections that are sent a change of its account now. */
  private receivers(userId: number): SocketConnection[] {
    const receivers: SocketConnection[] = [];
    for (const connection of this.byUser.get(userId) ?? []) {
      // At its end, a replay sends its connection the whole account.
      if (connection.replay !== null) connection.replay.deferAccount();
      else if (connection.receivesAccount) receivers.push(connection);
    }
    return receivers;
  }

  private changeOf(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): AccountChange {
    const positions: number[] = [];
    for (const outcomeId of outcomeIds) positions.push(this.exchange.ledger.findPosition(userId, outcomeId));
    return { userId, sequence, at, positions };
  }

  private sendChange(connections: readonly SocketConnection[], change: AccountChange): void {
    let texts: readonly string[] | null = null;
    for (const connection of connections) {
      connection.updatedAt = change.at;
      if (isBinary(connection)) {
        const frame = this.delivery.frame(connection);
        if (frame !== null) this.writeAccount(frame, change);
      } else {
        texts ??= this.accountTexts(change);
        for (const text of texts) this.delivery.send(connection, text);
      }
    }
  }

  private accountTexts({ userId, sequence, at, positions }: AccountChange): string[] {
    const { ledger, registry } = this.exchange;
    const texts = [frame("balance.updated", sequence, at, balanceJson(balanceView(ledger, userId)))];
    for (const position of positions) {
      const view = positionJson(positionView(ledger, registry, position));
      texts.push(frame("position.updated", sequence, at, view));
    }
    return texts;
  }

  private writeAccount(into: FrameWriter, { userId, sequence, at, positions }: AccountChange): void {
    const { ledger, registry } = this.exchange;
    this.messages.balanceUpdated(into, sequence, at, balanceView(ledger, userId));
    for (const position of positions) {
      this.messages.positionUpdated(into, sequence, at, positionView(ledger, registry, position));
    }
  }
}

const textOf = (sequence: number, at: number, report: OrderReport): string =>
  frame("order.updated", sequence, at, reportJson(report));

export function addTo<K>(groups: Map<K, Set<SocketConnection>>, key: K, connection: SocketConnection): void {
  const members = groups.get(key);
  if (members === undefined) groups.set(key, new Set([connection]));
  else members.add(connection);
}

export function removeFrom<K>(groups: Map<K, Set<SocketConnection>>, key: K, connection: SocketConnection): void {
  const members = groups.get(key);
  members?.delete(connection);
  if (members?.size === 0) groups.delete(key);
}
