/**
 * The gateway's work for one order, part by part, in nanoseconds: the microseconds of a placement outside sockets and
 * commits. Each sample runs a part a thousand times.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bench } from "tinybench";
import { MatchType, OrderStatus, Reason, Role, Side } from "../../engine/constants.ts";
import { Ledger } from "../../engine/ledger.ts";
import { DEFAULT_TERMS } from "../../engine/log/user-terms.ts";
import { EngineEvent } from "../../engine/ring/engine-event.ts";
import * as R from "../../engine/ring/records.ts";
import { NumberMap } from "../../engine/util/number-map.ts";
import { Accounts } from "../../server/accounts/accounts.ts";
import { hashToken } from "../../server/accounts/token-hash.ts";
import { NO_ADDRESS } from "../../server/http/client-address.ts";
import { encodeJson } from "../../server/http/message-pack.ts";
import { compileSchema } from "../../server/http/validate.ts";
import { reportJson } from "../../server/orders/order-json.ts";
import { Authenticator } from "../../server/sign-in/authenticator.ts";
import { SigningKeys } from "../../server/sign-in/signing-keys.ts";
import { ClientOrderIds } from "../../server/trading/client-order-ids.ts";
import { CLIENT_ORDER_ID_MS } from "../../server/trading/limits.ts";
import { OrderStore } from "../../server/trading/order-store.ts";
import { PlaceOrder } from "../../server/trading/schemas.ts";
import { SlotReport } from "../../server/trading/slot-report.ts";
import { printHead, printResult } from "../support/report.ts";

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
const accounts = new Accounts(() => {});
const verified = {
  emailVerifiedAt: 0,
  phone: null,
  phoneVerifiedAt: 0,
  passwordHash: null,
  suspendedAt: null,
  watchlist: null,
  notifications: null,
  priceAlerts: null,
};
accounts.addUser({
  id: 1,
  email: "bench@example.com",
  role: "user",
  kycTier: 2,
  createdAt: 0,
  ...verified,
  ...DEFAULT_TERMS,
});
const token = "pm_pat_bench";
const tokenRow = { id: 1, userId: 1, name: "bench", tokenHash: hashToken(token), prefix: "", scopes: "orders:write" };
accounts.addPat({ ...tokenRow, allowedAddresses: null, createdAt: 0, lastUsedAt: null, expiresAt: null });
const keyFolder = mkdtempSync(join(tmpdir(), "exchange-bench-"));
const service = { issuer: "http://127.0.0.1:8080", audience: "http://127.0.0.1:8080/api/v1" };
const now = Date.now();
const keys = await SigningKeys.open(keyFolder, { ...service, tokenTtlMs: 900_000, now });
rmSync(keyFolder, { recursive: true });
const authenticator = new Authenticator(accounts, keys);
const times = { createdAt: now, lastUsedAt: now, expiresAt: now + 900_000 };
const family = { family: "A".repeat(24), refreshHash: "", userAgent: null, address: null, amr: null };
const scopes = ["markets:read", "markets:propose", "orders:write", "portfolio:read"];
const sessionRow = { id: 1, userId: 1, grantId: null, method: "password", scopes: scopes.join(" ") };
const session = accounts.addSession({ ...sessionRow, ...family, ...times })!;
const iat = Math.floor(now / 1_000);
const claims = { sub: "1", scope: scopes.join(" "), iat, exp: iat + 900, jti: "A".repeat(22), sid: session.sid };
const signed = await keys.sign(claims, "JWT");
authenticator.issued(signed, session, (iat + 900) * 1_000, scopes);
const address = (): typeof NO_ADDRESS => NO_ADDRESS;
const header = `Bearer ${token}`;
const sessionHeader = `Bearer ${signed}`;
const nothing = (): void => {};

const store = new OrderStore();

function show(name: string, nanoseconds: number): void {
  console.log(`  ${name.padEnd(40)} ${nanoseconds.toFixed(0).padStart(6)} ns`);
}

function addOrder(id: number, terms: number): number {
  const fields = { user: 1, market: 0, outcome: 0, price: 4200, quantity: 100, remaining: 0 };
  const rest = { status: 0, connection: 0, expiresAt: 0, createdAt: 0, updatedAt: 0 };
  const slot = store.allocate({ id, terms, ...fields, ...rest });
  store.link(slot);
  return slot;
}
const slot = addOrder(1, 0);
const named = [addOrder(2, R.FLAG_TEXT), addOrder(3, R.FLAG_TEXT)] as const;

const ledger = new Ledger();
for (const user of [1, 2]) ledger.deposit(user, 1_000_000_000_000);
ledger.split({ id: 1, first: 1, count: 2 }, { user: 2, quantity: 100_000, isSetBySet: true }, 0);
const ids = new NumberMap();
for (let id = 1; id <= 100_000; id++) ids.set(id, id);

const NAMES = 100_000;
const names = Array.from({ length: NAMES }, (_, i) => `0193465e-7a2c-7c41-9d3f-${String(i).padStart(12, "0")}`);
for (const [i, slot] of named.entries()) store.texts.write(slot, names[i]!, null, 1);
const clientOrderIds = new ClientOrderIds(0);
let clock = CLIENT_ORDER_ID_MS;

/** Remembers a client order id and looks it up as a repeat would; of fifty thousand the oldest go, as they do with time. */
function remember(i: number): number {
  const name = names[clock++ % NAMES]!;
  clientOrderIds.add(1, name, clock, clock);
  if (i === 0) clientOrderIds.expire(clock + CLIENT_ORDER_ID_MS - NAMES / 2, () => false);
  return clientOrderIds.find(1, name);
}

/** Ten shares at 0.42, by each of two users in turn. */
const FILLS = [1, 2].map((buyer) => ({
  maker: fillOf(3 - buyer, Side.sell, Role.maker, R.FLAG_PAT),
  taker: fillOf(buyer, Side.buy, Role.taker, R.FLAG_PAT | R.FLAG_MATCH_END),
}));

function fillOf(user: number, side: number, role: number, flags: number): EngineEvent {
  const words = new Int32Array(R.RECORD_WORDS);
  words[R.W_PACKED] = R.packFill(side, OrderStatus.filled, MatchType.direct, role, flags);
  words[R.W_USER] = user;
  words[R.W_OUTCOME] = 1;
  words[R.W_PRICE] = 4200;
  words[R.W_QUANTITY] = 10;
  return new EngineEvent().at(words, new Float64Array(words.buffer), 0);
}

const report = new SlotReport(store);
const slotJson = (slot: number): string => reportJson(report.at(slot, OrderStatus.queued, Reason.none, 100, 1));
const json = slotJson(slot);
// Alternating texts, so that the encoder's cache doesn't help.
const jsons = [json, json.replace('"queued"', '"open"')];

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
    repeat(() => authenticator.authenticateHeader(header, 1, address, nothing)),
  )
  .add(
    "find a known session token",
    repeat(() => authenticator.authenticateHeader(sessionHeader, now, address, nothing)),
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
      const { maker, taker } = FILLS[i % 2]!;
      ledger.beginMatch(63_000);
      ledger.fill(maker, 1);
      ledger.fill(taker, 1);
    }),
  )
  .add(
    "find an order among 100,000",
    repeat((i) => ids.get(1 + ((i * 7919) % 100_000))),
  )
  .add(
    "write the order as JSON",
    repeat(() => slotJson(slot)),
  )
  .add(
    "the same with a client order id",
    // Each order twice in a row: for its response and for its first update.
    repeat((i) => slotJson(named[(i >> 1) % 2]!)),
  )
  .add(
    "write its client order id into the slot",
    repeat((i) => store.texts.write(named[i % 2]!, names[i]!, null, 1)),
  )
  .add("remember a client order id, and find it", repeat(remember))
  .add(
    "make MessagePack of the order's JSON",
    repeat((i) => encodeJson(jsons[i % 2]!)),
  );
await bench.run();
/** Not batched: the first use of a token after a restart. */
const verifying = new Bench({ time: smoke ? 20 : 500, warmupTime: smoke ? 5 : 100 });
verifying.add("verify a session token that isn't known", () => authenticator.verify(signed, now));
await verifying.run();

printHead("parts", `one order's work in the gateway, ${TIMES} times a sample`);
const result: Record<string, number> = {};
for (const { name, result: measured } of bench.tasks) {
  if (measured === undefined || !("latency" in measured))
    throw new Error(`${name} failed: ${JSON.stringify(measured)}`);
  // Milliseconds a sample of a thousand are microseconds each.
  const nanoseconds = measured.latency.p50 * 1_000;
  result[name] = Math.round(nanoseconds);
  show(name, nanoseconds);
}
const [verification] = verifying.tasks;
if (verification?.result === undefined || !("latency" in verification.result)) throw new Error("verifying failed");
result[verification.name] = Math.round(verification.result.latency.p50 * 1_000_000);
show(verification.name, verification.result.latency.p50 * 1_000_000);
printResult({ bench: "parts", nanoseconds: result });
