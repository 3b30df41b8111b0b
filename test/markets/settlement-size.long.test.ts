/**
 * A market with a hundred thousand holders settles in one transaction while thousands of them listen, and no other response
 * waits long for it. The test measures the gateway's processor time between request and response: elapsed time depends on
 * the machine's other work.
 */

import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { addHolders, setsOf } from "../../bench/figures/settle/holders.ts";
import { Probe, type ProbeReport } from "../../bench/figures/settle/probe.ts";
import { eventually, expectSoundDatabase } from "../support/checks.ts";
import {
  API_BASE,
  type BalanceJson,
  Client,
  type MarketJson,
  type PositionJson,
  type TransactionJson,
} from "../support/client.ts";
import { rowsOf } from "../support/data-dir.ts";
import { asOperator, OPERATORS, settle, take } from "../support/markets.ts";
import { alone } from "../support/trading.ts";
import { USDC } from "../support/world.ts";

/** To make the holders, open their sockets and check the tables takes half a minute on two idle cores. */
const LONG = { timeout: 180_000 };
const HOLDERS = 100_000;
const LISTENERS = 2_000;
const LONGEST_MS = 50;
/** Responses before the settlement. */
const QUIET_ANSWERS = 300;
const DEPOSIT = 18 * USDC;
const PROBE = pathToFileURL(fileURLToPath(new URL("../../dist/bench/children/latency-probe.js", import.meta.url)));

const tokenOf = (index: number): string => `pm_pat_holder-${index}`;

/** A connection that counts position updates by outcome, and keeps the last balance. */
class Listener {
  readonly positions = new Map<number, PositionJson>();
  balance: BalanceJson | null = null;
  readonly socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (bytes: Buffer) => {
      const { event, data } = JSON.parse(bytes.toString()) as { event: string; data: unknown };
      if (event === "balance.updated") this.balance = data as BalanceJson;
      if (event === "position.updated") this.positions.set((data as PositionJson).outcome_id, data as PositionJson);
    });
  }

  static async open(root: string, token: string): Promise<Listener> {
    const url = `${root.replace("http", "ws")}${API_BASE}/ws?token=${token}`;
    const socket = new WebSocket(url, { perMessageDeflate: false });
    const listener = new Listener(socket);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    return listener;
  }
}

/** The longest of at least this many responses. */
async function answersOf(probe: Probe, count: number): Promise<ProbeReport> {
  let report = await probe.report();
  for (let answers = 0; answers < count; ) {
    await new Promise((resolve) => setImmediate(resolve));
    const more = await probe.report();
    answers += more.count;
    report = {
      ...report,
      longestMs: Math.max(report.longestMs, more.longestMs),
      longestBusyMs: Math.max(report.longestBusyMs, more.longestBusyMs),
    };
  }
  return report;
}

test("100,000 holders are paid in one settlement while the gateway keeps responding", LONG, async () => {
  await alone({ users: 0, named: OPERATORS, markets: [2, 2] }, async (world) => {
    const market = world.market();
    await world.server.stop();
    const tokens = Array.from({ length: LISTENERS }, (_, i) => tokenOf(i));
    const options = { marketId: market.id, holders: HOLDERS, tokens };
    const { firstUser, sets } = addHolders(join(world.server.dataDir, "exchange.db"), options);
    world.server = await world.server.restart();
    const { server } = world;
    const operator = await asOperator(world);
    expect(await operator.get<MarketJson>(`/markets/${market.id}`)).toMatchObject({ open_interest: sets });
    await take(operator, market, "close");
    const listeners: Listener[] = [];
    // A few at a time: the server's accept queue is bounded.
    for (let i = 0; i < LISTENERS; i += 200) {
      listeners.push(
        ...(await Promise.all(tokens.slice(i, i + 200).map((token) => Listener.open(server.root, token)))),
      );
    }
    const probe = await Probe.start(PROBE, { url: server.root, path: "/livez", pid: server.pid });
    const quiet = await answersOf(probe, QUIET_ANSWERS);
    const startedAt = performance.now();
    const resolved = await settle(operator, market, { payouts: [6_000, 4_000], note: "many" });
    const took = performance.now() - startedAt;
    const busy = await probe.report();
    await probe.end();
    const shown = ({ longestMs, longestBusyMs }: ProbeReport): string =>
      `${longestMs.toFixed(1)} ms at most, ${longestBusyMs.toFixed(1)} ms of the gateway`;
    process.stdout.write(
      `${HOLDERS} holders in ${took.toFixed(0)} ms; an answer: ${shown(busy)}; quiet: ${shown(quiet)}\n`,
    );
    expect(resolved).toMatchObject({ status: "resolved", open_interest: 0 });
    expect(busy.refused).toBe(0);
    // A machine where every response is slow says nothing about the settlement.
    expect(busy.longestBusyMs).toBeLessThan(Math.max(LONGEST_MS, 3 * quiet.longestBusyMs));

    // A set of this market pays one USDC, whatever its outcomes pay.
    await eventually(async () => {
      for (const listener of listeners) {
        expect([listener.positions.size, listener.balance?.total]).toEqual([2, DEPOSIT]);
      }
    });
    listeners.forEach(({ positions }, i) => {
      const [yes, no] = market.outcomes.map((outcome) => positions.get(outcome)!.realized_pnl);
      expect([yes, no]).toEqual([setsOf(i) * 100_000, -setsOf(i) * 100_000]);
    });
    const [wrong] = rowsOf<{ count: number; paid: number }>(
      server.dataDir,
      `SELECT count(*) FILTER (WHERE balance <> ?) AS count, (SELECT sum(amount) FROM entries WHERE type = 'settlement') AS paid
       FROM accounts WHERE user_id >= ?`,
      DEPOSIT,
      firstUser,
    );
    expect(wrong).toEqual({ count: 0, paid: sets * USDC });
    const holder = new Client(server, tokenOf(7));
    const entries = await holder.all<TransactionJson>("/wallet/transactions?type=settlement");
    expect(entries.map(({ outcome_id, amount }) => [outcome_id, amount])).toEqual([
      [market.outcomes[1], setsOf(7) * 400_000],
      [market.outcomes[0], setsOf(7) * 600_000],
    ]);
    holder.close();
    for (const { socket } of listeners) socket.terminate();
    operator.close();
    expectSoundDatabase(server.dataDir);
  });
});
