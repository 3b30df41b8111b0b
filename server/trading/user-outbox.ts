/**
 * Delivers users' messages in order, with deferrals: while a composite reply is incomplete, messages of its user that follow
 * its first event wait until it was sent. Deferrals of one user may overlap; a message waits only for older ones.
 * Stands between the exchange and whoever sends (the WebSocket hub); formats nothing.
 */
import type { OrderReport } from "../orders/order-json.ts";
import type { Deferral, UserListener, UserSink } from "./types.ts";

type DeferredMessage<Message, Update> =
  | { readonly kind: "order"; readonly sequence: number; readonly at: number; readonly message: Message }
  | { readonly kind: "account"; readonly update: Update }
  | { readonly kind: "callback"; readonly callback: () => void };

class OpenDeferral<Message, Update> implements Deferral {
  isOver = false;
  /** Messages since this deferral began and before the next one did. */
  readonly messages: DeferredMessage<Message, Update>[] = [];
  private readonly released: () => void;

  constructor(released: () => void) {
    this.released = released;
  }

  release(): void {
    this.isOver = true;
    this.released();
  }
}

export class UserOutbox<Message, Update> implements UserListener {
  private readonly sink: UserSink<Message, Update>;
  /** By user: the deferrals that messages wait for, oldest first. */
  private readonly deferrals = new Map<number, OpenDeferral<Message, Update>[]>();

  constructor(sink: UserSink<Message, Update>) {
    this.sink = sink;
  }

  listens(userId: number): boolean {
    return this.sink.listens(userId);
  }

  defer(userId: number): Deferral {
    const deferral = new OpenDeferral<Message, Update>(() => this.release(userId));
    const deferrals = this.deferrals.get(userId);
    if (deferrals === undefined) this.deferrals.set(userId, [deferral]);
    else deferrals.push(deferral);
    return deferral;
  }

  /** True where a message of the user would wait. */
  defers(userId: number): boolean {
    return this.deferrals.size > 0 && this.deferrals.has(userId);
  }

  orderUpdated(userId: number, sequence: number, at: number, report: OrderReport): void {
    const last = this.newestDeferral(userId);
    if (last === undefined) return this.sink.orderUpdated(userId, sequence, at, report);
    const message = this.sink.orderMessage(userId, sequence, at, report);
    last.messages.push({ kind: "order", sequence, at, message });
  }

  accountChanged(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): void {
    const last = this.newestDeferral(userId);
    if (last === undefined) return this.sink.accountChanged(userId, sequence, at, outcomeIds);
    const update = this.sink.accountUpdate(userId, sequence, at, outcomeIds);
    if (update !== null) last.messages.push({ kind: "account", update });
  }

  afterMessages(userId: number, callback: () => void): void {
    const last = this.newestDeferral(userId);
    if (last === undefined) callback();
    else last.messages.push({ kind: "callback", callback });
  }

  endBatch(): void {
    this.sink.flush();
  }

  private newestDeferral(userId: number): OpenDeferral<Message, Update> | undefined {
    return this.deferrals.size === 0 ? undefined : this.deferrals.get(userId)?.at(-1);
  }

  private release(userId: number): void {
    const deferrals = this.deferrals.get(userId) ?? [];
    while (deferrals[0]?.isOver === true) {
      for (const message of deferrals.shift()?.messages ?? []) this.deliver(userId, message);
    }
    if (deferrals.length === 0) this.deferrals.delete(userId);
  }

  private deliver(userId: number, message: DeferredMessage<Message, Update>): void {
    switch (message.kind) {
      case "order":
        return this.sink.sendOrder(userId, message.sequence, message.at, message.message);
      case "account":
        return this.sink.sendAccountUpdate(message.update);
      case "callback":
        return message.callback();
    }
  }
}
