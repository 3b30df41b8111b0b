/**
 * One market, a few rich users and a fixed course: an exchange of the simulation's parts for tests that script every
 * action.
 */
import { expect, onTestFinished } from "vitest";
import { OrderType, SelfTradePrevention, TimeInForce } from "../../engine/constants.ts";
import { packTerms } from "../../engine/ring/records.ts";
import type { Placement, Quote } from "../../server/trading/types.ts";
import { Random } from "../support/random.ts";
import { compareBooks, compareDatabase, compareGateway, verify } from "./checks.ts";
import { Clients } from "./clients.ts";
import { Committed } from "./committed.ts";
import { Disk } from "./disk.ts";
import { Hash } from "./hash.ts";
import { Life, type Shape } from "./life.ts";
import { Tally } from "./tally.ts";

const SHAPE: Shape = {
  engines: 1,
  commandRecords: 512,
  eventRecords: 512,
  reservedCommands: 4,
  longestChain: 16,
  capacity: 400,
  largestId: 10,
  activeBooks: 8,
};
const UNHEARD = { order(): void {}, canceled(): void {}, data(): void {}, error(): void {} };
const UNHEARD_QUOTES = {
  standing(): void {},
  arrived(): void {},
  order(): void {},
  done(): void {},
  failed(): void {},
};
const USUAL = {
  marketId: 1,
  timestamps: false,
  clientOrderId: null,
  expiresAt: null,
  validUntil: null,
};

/** An order's fields beyond the defaults. */
type Wish = Pick<Placement, "outcomeId" | "price" | "quantity"> &
  Partial<Placement> & { readonly side: number; readonly selfTradePrevention?: number };

export class SmallWorld {
  readonly clock = { now: Date.UTC(2026, 0, 10) };
  readonly record = new Committed();
  /** The current life, once `begin` was called. */
  life!: Life;
  /** Of each user. */
  maxLiveOrders = Number.MAX_SAFE_INTEGER;
  private readonly shape: Shape;
  private readonly disk: Disk;
  private readonly clients: Clients;

  /** @param shape overrides of the default shape */
  constructor(shape: Partial<Shape> = {}) {
    this.shape = { ...SHAPE, ...shape };
    const random = new Random(1);
    this.disk = new Disk(Disk.template(), random);
    this.clients = new Clients(random, this.clock, this.record, new Tally(), new Hash());
    onTestFinished(() => {
      this.life.end();
      this.disk.remove();
    });
  }

  /** Starts from the disk. @param ringIsFull called in the middle of a command if the event ring is full */
  async begin(ringIsFull: () => void = () => expect.unreachable("few events")): Promise<void> {
    const { disk, clock, record, clients, shape } = this;
    this.life = new Life(disk.files, shape, clock, record, clients.received, {
      committed() {},
      event() {},
      ringIsFull,
    });
    clients.begin(this.life);
    await this.life.becomeQuiet();
    await this.life.restored;
    this.life.isReady = true;
  }

  /** Makes users, with money, and the market. */
  async found(users: number): Promise<void> {
    const { life, clock } = this;
    this.clients.operators.createUsers(users);
    await life.becomeQuiet();
    const at = clock.now;
    for (let userId = 1; userId <= users; userId++) {
      void life.writer.write([{ kind: "deposit", userId, amount: 1e12, reference: `bank-${userId}`, at }]);
    }
    const texts = { slug: "m", question: "?", description: null, category: null, eventId: null, proposedBy: null };
    const terms = { outcomes: ["Yes", "No"], opensAt: at, closesAt: null, at };
    void life.writer.write([{ kind: "createMarket", ...texts, ...terms }]);
    await life.becomeQuiet();
  }

  private trader(userId: number) {
    const { maxLiveOrders } = this;
    return { userId, dailyLimit: Number.MAX_SAFE_INTEGER, maxLiveOrders, mergeFee: null, pat: false };
  }

  async split(userId: number, sets: number): Promise<void> {
    this.life.entry.sets.split(this.trader(userId), { marketId: 1, quantity: sets }, this.clock.now, UNHEARD, () => {});
    await this.life.becomeQuiet();
  }

  /** Hands an order over; nothing moves yet. */
  place(userId: number, { side, selfTradePrevention = SelfTradePrevention.cancelTaker, ...wish }: Wish): void {
    const terms = packTerms(side, OrderType.limit, TimeInForce.gtc, selfTradePrevention, 0);
    const order = { ...USUAL, terms, ...wish };
    this.life.entry.place(this.trader(userId), { connection: null, builderCode: null }, order, this.clock.now, UNHEARD);
  }

  /** Replaces the user's quotes in the market; nothing moves yet. */
  quote(userId: number, quotes: readonly Quote[]): void {
    const origin = { connection: null, builderCode: null };
    const terms = { validUntil: null, expiresAt: null };
    const request = { trader: this.trader(userId), origin, marketId: 1, quotes, terms, now: this.clock.now };
    this.life.entry.quotes.replace(request, () => UNHEARD_QUOTES);
  }

  /** The process is gone. */
  crash(): void {
    this.disk.crash(this.life.copiedFrames, null);
    this.life.end();
  }

  /** Checks that books, gateway and database match the record. */
  compareAll(): void {
    compareBooks(this.life, this.record);
    compareGateway(this.life, this.record);
    compareDatabase(this.life, this.record, { fills: 0, entries: 0, updates: new Map() });
    verify(this.life.database);
  }
}
