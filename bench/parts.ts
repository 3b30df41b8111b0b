/**
 * What the gateway does for one order, part by part, in nanoseconds: where the microseconds of a placement go that
 * sockets and commits don't take. Each sample runs a part a thousand times.
 */
import { Bench } from "tinybench";
import { MatchType, OrderStatus, Reason, Role, Side } from "../engine/constants.ts";
import { Ledger } from "../engine/ledger.ts";
import { NumberMap } from "../engine/number-map.ts";
import { Accounts, hashToken } from "../server/accounts.ts";
import { orderJson } from "../server/order-json.ts";
import { OrderStore } from "../server/order-store.ts";
import { PlaceOrder } from "../server/schemas.ts";
import { compileSchema } from "../server/validate.ts";
import { printHead, printResult } from "./report.ts";

const TIMES = 1_000;
const smoke = process.argv.includes("--smoke");
const BODY = '{"market_id":1,"outcome_id":1,"side":1,"price":4200,"quantity":100,"client_order_id":"maker-1:4711"}';

function repeat(part: (i: number) => unknown): () => void {
  let kept: unknown;
  return () => {
    for (let i = 0; i < TIMES; i++) kept = part(i);
    if (kept === repeat) throw new Error("keeps the part's result alive");
  };
}

const check = compileSchema(PlaceOrder);
const parsed: unknown = JSON.parse(BODY);
const accounts = new Accounts();
accounts.addUser({ id: 1, email: "bench@example.com", role: "user", kycTier: 2, createdAt: 0 });
const token = "pm_pat_bench";
const row = { id: 1, userId: 1, tokenHash: hashToken(token), scopes: "orders:write", expiresAt: null };
accounts.addToken(row);
const header = `Bearer ${token}`;

const store = new OrderStore();
const slot = store.takeSlot();
store.ids[slot] = 1;
store.users[slot] = 1;
store.quantities[slot] = 100;
store.prices[slot] = 4200;
store.link(slot, null);

const ledger = new Ledger();
for (const user of [1, 2]) ledger.deposit(user, 1_000_000_000_000);
ledger.split(2, 1, 1, 2, 100_000);
const ids = new NumberMap();
for (let id = 1; id <= 100_000; id++) ids.set(id, id);

const bench = new Bench({ time: smoke ? 20 : 500, warmupTime: smoke ? 5 : 100 });
bench
  .add(
    "parse the body",
    repeat(() => JSON.parse(BODY)),
  )
  .add(
    "validate it",
    repeat(() => check(parsed)),
  )
  .add(
    "find a known token",
    repeat(() => accounts.authenticateHeader(header, 1)),
  )
  .add(
    "hold and release",
    repeat(() => {
      ledger.hold(1, 420_000);
      ledger.release(1, 420_000);
    }),
  )
  .add(
    "settle a match, two fills, and back",
    repeat((i) => {
      const buyer = i % 2 === 0 ? 1 : 2;
      const { taker, maker } = Role;
      ledger.fill(3 - buyer, 1, 1, Side.sell, 4200, 10, MatchType.direct, maker, true, false, 1);
      ledger.fill(buyer, 1, 1, Side.buy, 4200, 10, MatchType.direct, taker, true, true, 1);
    }),
  )
  .add(
    "find an order among 100,000",
    repeat((i) => ids.get(1 + ((i * 7919) % 100_000))),
  )
  .add(
    "write the order as JSON",
    repeat(() => orderJson(store, slot, OrderStatus.queued, Reason.none, 100, 1, "")),
  );
await bench.run();

printHead("parts", `one order's work in the gateway, ${TIMES} times a sample`);
const result: Record<string, number> = {};
for (const { name, result: measured } of bench.tasks) {
  if (measured === undefined || !("latency" in measured))
    throw new Error(`${name} failed: ${JSON.stringify(measured)}`);
  // Milliseconds a sample of a thousand are microseconds each.
  const nanoseconds = measured.latency.p50 * 1_000;
  result[name] = Math.round(nanoseconds);
  console.log(`  ${name.padEnd(38)} ${nanoseconds.toFixed(0).padStart(6)} ns`);
}
printResult({ bench: "parts", nanoseconds: result });
