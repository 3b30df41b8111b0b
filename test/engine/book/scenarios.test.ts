/**
 * Runs the scenario files of test/scenarios: inputs at the margin, the events they must cause indented below them.
 * test/scenarios/README.md explains the language. The reference book runs along and must agree.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { FLAG_LOST_PRIORITY } from "../../../engine/ring/records.ts";
import { decodeEvent, type EngineEvent, ensure } from "./harness.ts";
import { LockStep, type Market, sides } from "./lock-step.ts";
import type { Placement, PreventionWord } from "./reference-book.ts";

const FOLDER = new URL("../../scenarios/", import.meta.url);
const OUTCOME_NAMES = ["A", "B", "C", "D", "E", "F"];
const PREVENTIONS: Record<string, PreventionWord> = {
  "cancel-taker": "cancel_taker",
  "cancel-maker": "cancel_maker",
  "cancel-both": "cancel_both",
  decrement: "decrement",
};

class Stage {
  private readonly steps = new LockStep({ capacity: 256 });
  private readonly orderNames: string[] = [];
  private readonly orderIds = new Map<string, number>();
  private readonly users = new Map<string, number>();
  private market: Market | null = null;
  private levels: string[] = [];

  constructor() {
    // "Unread" in a scenario includes the orders' slots.
    this.steps.slotsComeBack = false;
  }

  /** Runs one input line and returns its events as lines. */
  input(line: string): string[] {
    if (line === "book") return this.bookLines();
    if (line === "levels") return this.levels;
    const before = this.steps.engine.eventWords.length;
    this.command(line);
    const words = this.steps.engine.eventWords.slice(before);
    const events = words.map((record) => decodeEvent(record, new Float64Array(record.buffer), 0));
    const isLevel = (event: EngineEvent) => event.kind === "levelChanged";
    this.levels = events.filter(isLevel).map((event) => this.levelLine(event));
    return events.filter((event) => !isLevel(event)).map((event) => this.eventLine(event));
  }

  private command(line: string): void {
    if (line.startsWith("chain ")) {
      return this.steps.chain(() => {
        for (const one of line.slice("chain ".length).split("; ")) this.command(one);
      });
    }
    const placement = /^(\w+): (\w+) (buys|sells) (\d+) (\w) at (\d+)((?: \S+)*)$/.exec(line);
    if (placement !== null) return this.place(placement.slice(1) as Placed);
    const [verb, ...words] = line.split(" ");
    const market = this.market;
    if (verb === "market") this.market = this.steps.openMarket(words.length);
    else if (market === null) throw new Error("a scenario opens its market first");
    else if (verb === "cancel") this.steps.cancel(this.idOf(words[0]!), words[1]);
    else if (verb === "amend") this.amend(words);
    else if (verb === "halt" || verb === "resume" || verb === "close") this.steps[verb](market);
    else throw new Error(`not a command: ${line}`);
  }

  private place([name, user, verb, quantity, outcome, price, options]: Placed): void {
    const words = options.trim().split(" ");
    const value = (key: string) => words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1);
    // The lock step assigns the next placement this time.
    const at = this.steps.now + 1;
    const timeInForce = value("gtd") === undefined ? words.find((word) => word === "ioc" || word === "fok") : "gtd";
    const type = words.includes("market") ? "market" : "limit";
    const prevention = words.find((word) => word in PREVENTIONS) ?? "cancel-taker";
    const [replaced, expected] = value("replaces")?.split(":") ?? [];
    // The first event of the placement names the order.
    this.orderIds.set(name, this.steps.nextId);
    this.orderNames.push(name);
    this.steps.place(this.market!, {
      user: this.userOf(user),
      outcome: this.outcomeOf(outcome),
      side: verb === "buys" ? 1 : 2,
      price: Number(price),
      quantity: Number(quantity),
      type,
      timeInForce: (timeInForce ?? (type === "market" ? "ioc" : "gtc")) as Placement["timeInForce"],
      prevention: PREVENTIONS[prevention]!,
      postOnly: words.includes("post-only"),
      pat: words.includes("pat"),
      expiresAt: value("gtd") === undefined ? 0 : at + Number(value("gtd")),
      validUntil: value("valid") === undefined ? 0 : at + Number(value("valid")),
      ...(replaced && { replaces: { id: this.idOf(replaced), expected: Number(expected) } }),
    });
  }

  private amend([name, total, , price, valid]: string[]): void {
    const validUntil = valid === undefined ? 0 : this.steps.now + 1 + Number(valid.replace("valid=", ""));
    this.steps.amend(this.idOf(name!), Number(price), Number(total), validUntil);
  }

  private eventLine(event: EngineEvent): string {
    const name = this.nameOf(event.orderId);
    const reason = event.reason === null ? "" : `: ${event.reason}`;
    switch (event.kind) {
      case "orderPlaced":
        if (event.status === "queued") return `${name} placed`;
        if (event.status === "open") return `${name} open${this.reduction(event)}`;
        return `${name} ${event.status}${reason}, ${event.remaining} left`;
      case "orderFilled": {
        const what = `${event.quantity} ${this.outcomeName(event.outcome)} at ${event.price}`;
        return `${name} ${event.role} ${event.matchType} ${what}, ${event.remaining} left`;
      }
      case "orderCanceled":
        return `${name} ${event.status}${reason}, ${event.remaining} left`;
      case "orderReduced":
        return `${name} reduced to ${event.quantity}, ${event.remaining} left`;
      case "orderAmended": {
        const lost = (event.packed & FLAG_LOST_PRIORITY) === 0 ? "" : ", priority lost";
        return `${name} ${event.status}: ${event.quantity} at ${event.price}, ${event.remaining} left${lost}`;
      }
      case "cancelRejected":
        return `cancel ${name} refused${reason}`;
      case "amendRejected":
        return `amend ${name} refused${reason}`;
      case "marketChanged":
        return `market ${this.steps.tape.marketStatus.get(event.slot)}`;
      default:
        return event.kind;
    }
  }

  /** The quantity that a replacement lost to fills that its sender didn't know of. */
  private reduction(event: EngineEvent): string {
    const asked = this.market!.book.orders.get(event.orderId)!.terms.quantity;
    return event.quantity === asked ? "" : `, reduced to ${event.quantity}`;
  }

  private levelLine(event: EngineEvent): string {
    return `${this.outcomeName(event.outcome)} ${event.side === 1 ? "buy" : "sell"} ${event.price}: ${event.detail}`;
  }

  private bookLines(): string[] {
    const { market } = this;
    return sides(market!).flatMap(([outcome, side]) => {
      const resting = market!.book.resting(outcome, side);
      return [...new Set(resting.map((order) => order.price))].map((price) => {
        const queue = resting.filter((order) => order.price === price);
        const orders = queue.map((order) => `${this.nameOf(order.terms.id)} ${order.remaining}`).join(", ");
        return `${this.outcomeName(outcome)} ${side === 1 ? "buy" : "sell"} ${price}: ${orders}`;
      });
    });
  }

  private userOf(name: string): number {
    if (!this.users.has(name)) this.users.set(name, this.users.size + 1);
    return this.users.get(name)!;
  }

  private idOf(name: string): number {
    const id = this.orderIds.get(name);
    ensure(id !== undefined, `no order ${name}`);
    return id;
  }

  private nameOf(id: number): string {
    return this.orderNames.find((name) => this.orderIds.get(name) === id) ?? String(id);
  }

  private outcomeOf(name: string): number {
    const outcome = this.market!.outcomes[OUTCOME_NAMES.indexOf(name)];
    ensure(outcome !== undefined, `no outcome ${name}`);
    return outcome;
  }

  private outcomeName(outcome: number): string {
    return OUTCOME_NAMES[outcome - this.market!.first]!;
  }
}

type Placed = [
  name: string,
  user: string,
  verb: string,
  quantity: string,
  outcome: string,
  price: string,
  options: string,
];

/** Runs a scenario and returns it with the actual events in place of the expected ones. */
function perform(lines: readonly string[]): string[] {
  const stage = new Stage();
  return lines.flatMap((line) => [line, ...stage.input(line).map((event) => `  ${event}`)]);
}

let count = 0;
for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".txt"))) {
  describe(file, () => {
    const text = readFileSync(new URL(file, FOLDER), "utf8");
    for (const part of text.split(/^== /m).slice(1)) {
      const [title, ...rest] = part.split("\n");
      const lines = rest.map((line) => line.trimEnd()).filter((line) => line !== "" && !line.startsWith("#"));
      count++;
      test(title!, () => {
        const inputs = lines.filter((line) => !line.startsWith(" "));
        expect(inputs.length).toBeGreaterThan(1);
        expect(perform(inputs)).toEqual(lines);
      });
    }
  });
}

test("the scenario files are found and not empty", () => {
  expect(count).toBeGreaterThan(40);
});
