/**
 * Delivers users' messages in order, with deferrals: while a composite reply is incomplete, messages of its user that follow
 * its first event wait until it was sent. Deferrals of one user may overlap; a message waits only for older ones.
 * Stands between the exchange and whoever sends (the WebSocket hub); formats nothing.
 */
import type { Deferral, UserListener, UserSink } from "./types.ts";

type DeferredMessage<Update> =
  | { readonly kind: "order"; readonly sequence: number; readonly at: number; readonly json: string }
  | { readonly kind: "account"; readonly update: Update }
  | { readonly kind: "callback"; readonly callback: () => void };

class OpenDeferral<Update> implements Deferral {
  isOver = false;
  /** Messages since this deferral began and before the next one did. */
  readonly messages: DeferredMessage<Update>[] = [];
  private readonly released: () => void;

  constructor(released: () => void) {
    this.released = released;
  }

  release(): void {
    this.isOver = true;
    this.released();
  }
}

export class UserOutbox<Update> implements UserListener {
  private readonly sink: UserSink<Update>;
  /** By user: the deferrals that messages wait for, oldest first. */
  private readonly deferrals = new Map<number, OpenDeferral<Update>[]>();

  constructor(sink: UserSink<Update>) {
    this.sink = sink;
  }

  listens(userId: number): boolean {
    return this.sink.listens(userId);
  }

  defer(userId: number): Deferral {
    const deferral = new OpenDeferral<Update>(() => this.release(userId));
    const deferrals = this.deferrals.get(userId);
    if (deferrals === undefined) this.deferrals.set(userId, [deferral]);
    else deferrals.push(deferral);
    return deferral;
  }

  /** True where a message of the user would wait. */
  defers(userId: number): boolean {
    return this.deferrals.size > 0 && this.deferrals.has(userId);
  }

  orderUpdated(userId: number, sequence: number, at: number, json: string): void {
    const last = this.newestDeferral(userId);
    if (last === undefined) this.sink.orderUpdated(userId, sequence, at, json);
    else last.messages.push({ kind: "order", sequence, at, json });
  }

  /** An account's change is formatted when it happens, and sent when nothing older waits. */
  accountChanged(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): void {
    const update = this.sink.accountUpdate(userId, sequence, at, outcomeIds);
    if (update === null) return;
    const last = this.newestDeferral(userId);
    if (last === undefined) this.sink.sendAccountUpdate(update);
    else last.messages.push({ kind: "account", update });
  }

  afterMessages(userId: number, callback: () => void): void {
    const last = this.newestDeferral(userId);
    if (last === undefined) callback();
    else last.messages.push({ kind: "callback", callback });
  }

  endBatch(): void {
    this.sink.flush();
  }

  private newestDeferral(userId: number): OpenDeferral<Update> | undefined {
    return this.deferrals.size === 0 ? undefined : this.deferrals.get(userId)?.at(-1);
  }

  private release(userId: number): void {
    const deferrals = this.deferrals.get(userId) ?? [];
    while (deferrals[0]?.isOver === true) {
      for (const message of deferrals.shift()?.messages ?? []) this.deliver(userId, message);
    }
    if (deferrals.length === 0) this.deferrals.delete(userId);
  }

  private deliver(userId: number, message: DeferredMessage<Update>): void {
    switch (message.kind) {
      case "order":
        return this.sink.orderUpdated(userId, message.sequence, message.at, message.json);
      case "account":
        return this.sink.sendAccountUpdate(message.update);
      case "callback":
        return message.callback();
    }
  }
}
