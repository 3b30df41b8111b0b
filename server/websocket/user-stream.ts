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

/** The messages about an account's change, and who receives them. */
interface AccountUpdate {
  readonly connections: readonly SocketConnection[];
  /** ms since the epoch */
  readonly at: number;
  readonly messages: readonly string[];
}

export class UserStream implements UserSink<string, AccountUpdate> {
  /** Holds users' messages back while a composite reply is incomplete. */
  readonly outbox = new UserOutbox(this);
  private readonly exchange: Exchange;
  private readonly delivery: Delivery;
  /** Those that receive the user's order updates. */
  private readonly byUser = new Map<number, Set<SocketConnection>>();

  constructor(exchange: Exchange, delivery: Delivery) {
    this.exchange = exchange;
    this.delivery = delivery;
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
    if (!this.byUser.has(userId)) return;
    this.sendOrder(userId, sequence, at, this.orderMessage(userId, sequence, at, report));
  }

  orderMessage(_userId: number, sequence: number, at: number, report: OrderReport): string {
    return frame("order.updated", sequence, at, reportJson(report));
  }

  /** A connection that opened after the update was published starts behind it: its `orderSequence` says so. */
  sendOrder(userId: number, sequence: number, at: number, message: string): void {
    const connections = this.byUser.get(userId);
    if (connections === undefined) return;
    for (const connection of connections) {
      if (connection.replay !== null) connection.replay.defer(sequence, message);
      else if (sequence > connection.orderSequence) {
        connection.orderSequence = sequence;
        connection.updatedAt = at;
        this.delivery.send(connection, message);
      }
    }
  }

  // ---------------------------------------------------------------- accounts

  accountChanged(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): void {
    const update = this.accountUpdate(userId, sequence, at, outcomeIds);
    if (update !== null) this.sendAccountUpdate(update);
  }

  accountUpdate(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): AccountUpdate | null {
    const connections: SocketConnection[] = [];
    for (const connection of this.byUser.get(userId) ?? []) {
      // At its end, a replay sends its connection the whole account.
      if (connection.replay !== null) connection.replay.deferAccount();
      else if (connection.receivesAccount) connections.push(connection);
    }
    if (connections.length === 0) return null;
    const positions: number[] = [];
    for (const outcomeId of outcomeIds) positions.push(this.exchange.ledger.findPosition(userId, outcomeId));
    return { connections, at, messages: this.accountMessages(userId, sequence, at, positions) };
  }

  sendAccountUpdate({ connections, at, messages }: AccountUpdate): void {
    for (const connection of connections) {
      // While the update was deferred, a replay may have started, or a token with fewer scopes replaced the old one.
      if (connection.replay !== null) connection.replay.deferAccount();
      else if (connection.receivesAccount) {
        connection.updatedAt = at;
        for (const message of messages) this.delivery.send(connection, message);
      }
    }
  }

  private accountMessages(userId: number, sequence: number, at: number, positions: readonly number[]): string[] {
    const { ledger, registry } = this.exchange;
    const balance = balanceJson(balanceView(ledger, userId));
    const messages = [frame("balance.updated", sequence, at, balance)];
    for (const position of positions) {
      const view = positionJson(positionView(ledger, registry, position));
      messages.push(frame("position.updated", sequence, at, view));
    }
    return messages;
  }

  /** Sends a connection its balance and all positions, as of the last order update that was sent. */
  sendAccount(connection: SocketConnection): void {
    const { principal } = connection;
    if (principal === null || !connection.receivesAccount) return;
    const { exchange } = this;
    const { userId } = principal;
    const positions = positionsOf(exchange.ledger, userId);
    connection.updatedAt = exchange.updates.publishedUntil();
    const sequence = exchange.updates.sequenceOf(userId);
    const messages = this.accountMessages(userId, sequence, connection.updatedAt, positions);
    for (const message of messages) this.delivery.send(connection, message);
  }
}

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
