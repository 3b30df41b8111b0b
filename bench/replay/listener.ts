/**
 * One WebSocket per user: collects every `order.updated` with its states and fills. Notes gaps in the users' sequences;
 * judges nothing else.
 */
import { WebSocket } from "ws";

const CONNECTING_AT_ONCE = 32;
const ORDER_UPDATED = '{"event":"order.updated"';

/** One side of a match, as `order.updated` and /me/fills show it. */
export interface Fill {
  readonly id: number;
  readonly match_id: number;
  readonly order_id: number;
  readonly market_id: number;
  readonly outcome_id: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
  readonly role: string;
  readonly match_type: string;
}

export interface OrderState {
  readonly id: number;
  readonly status: string;
  readonly reason: string | null;
  readonly filled: number;
}

interface OrderFrame {
  readonly sequence: number;
  readonly data: OrderState & Omit<Fill, "order_id" | "match_id"> & { readonly trades: readonly Fill[] };
}

export interface HeardFill extends Fill {
  /** Index of the user. */
  readonly user: number;
}

export class Listener {
  /** By order id, the last state heard. */
  readonly orders = new Map<number, OrderState>();
  readonly fills: HeardFill[] = [];
  /** Order updates that were skipped, by the users' sequences. */
  gaps = 0;
  /** Why a socket ended before `close`, or null. */
  fault: string | null = null;
  private readonly sockets: WebSocket[] = [];
  private readonly sequences: number[] = [];
  private closing = false;

  /** Opens one socket per token; throws if an upgrade is rejected. @param base without /ws */
  async open(base: string, tokens: readonly string[]): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < tokens.length) await this.connect(base, tokens, next++);
    };
    await Promise.all(Array.from({ length: CONNECTING_AT_ONCE }, worker));
  }

  close(): void {
    this.closing = true;
    for (const socket of this.sockets) socket.terminate();
  }

  private connect(base: string, tokens: readonly string[], user: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const url = `${base.replace(/^http/, "ws")}/ws?token=${encodeURIComponent(tokens[user]!)}`;
      const socket = new WebSocket(url, { perMessageDeflate: false });
      this.sockets.push(socket);
      socket.once("open", () => resolve());
      socket.on("error", reject);
      socket.on("close", (code) => {
        if (!this.closing) this.fault ??= `a WebSocket was closed with ${code}`;
      });
      socket.on("message", (bytes: Buffer) => {
        const text = bytes.toString();
        if (text.startsWith(ORDER_UPDATED)) this.receiveUpdate(user, JSON.parse(text) as OrderFrame);
      });
    });
  }

  private receiveUpdate(user: number, { sequence, data }: OrderFrame): void {
    const last = this.sequences[user];
    if (last !== undefined && sequence !== last + 1) this.gaps += Math.abs(sequence - last - 1);
    this.sequences[user] = sequence;
    const { id: order_id, market_id, outcome_id, side, status, reason, filled } = data;
    this.orders.set(order_id, { id: order_id, status, reason, filled });
    for (const { id, match_id, price, quantity, role, match_type } of data.trades) {
      const what = { id, match_id, price, quantity, role, match_type };
      this.fills.push({ ...what, order_id, market_id, outcome_id, side, user });
    }
  }
}
