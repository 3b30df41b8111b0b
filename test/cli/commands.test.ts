/** The table of the operator's commands: it covers every operators' route, and parses command lines. */
import { expect, test } from "vitest";
import { COMMANDS, findCommand, HELP, readArguments, requestOf, UsageError } from "../../server/cli/commands.ts";
import { ROUTES } from "../support/client.ts";

const routed = COMMANDS.filter(({ does }) => does.includes("/"));
const schemaFields = (schema: unknown): string[] =>
  Object.keys((schema as { properties?: object } | null)?.properties ?? {});

/** The request that a command line stands for. */
function read(line: string): unknown {
  const { command, rest } = findCommand(line.split(" "));
  return requestOf(command, readArguments(command, rest));
}

test("every route for operators has one command, and every command has a route", () => {
  const routes = ROUTES.filter(({ access }) => access === "operator").map(({ method, path }) => `${method} ${path}`);
  const named = routed.map(({ does }) => does);
  expect(new Set(named).size).toBe(named.length);
  expect(named.sort()).toEqual(routes.sort());
});

test.each(routed.map((command) => [command.does, command] as const))(
  "%s takes every field of its route, and nothing else",
  (does, { args, options }) => {
    const { path, query, body } = ROUTES.find((route) => `${route.method} ${route.path}` === does)!;
    const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
    const fields = [...args, ...Object.values(options)].map(({ field }) => field);
    expect(fields.sort()).toEqual([...inPath, ...schemaFields(query), ...schemaFields(body)].sort());
  },
);

test("the help names every command once", () => {
  for (const { words } of COMMANDS) expect(HELP.match(new RegExp(`^  ${words}( [A-Z[].*)?$`, "gm"))).toHaveLength(1);
});

test.each([
  ["suspend 7", { method: "POST", path: "/admin/users/7/suspend", body: {} }],
  ["suspend --note why 7", { method: "POST", path: "/admin/users/7/suspend", body: { note: "why" } }],
  ["users", { method: "GET", path: "/admin/users", query: "" }],
  ["users --role user --suspended true", { method: "GET", path: "/admin/users", query: "role=user&suspended=true" }],
  [
    "terms 7 --daily-limit 12.5usdc --trading-fee default --merge-fee 4 --rate-limit-factor=3 --max-live-orders 9",
    {
      method: "PATCH",
      path: "/admin/users/7/terms",
      body: { daily_limit: 12_500_000, trading_fee: null, merge_fee: 4, rate_limit_factor: 3, max_live_orders: 9 },
    },
  ],
  [
    "deposit 7 25 wire-1",
    { method: "POST", path: "/admin/deposits", body: { user_id: 7, amount: 25, reference: "wire-1" } },
  ],
  [
    "house withdraw 0.000001USDC r",
    { method: "POST", path: "/admin/house/withdrawals", body: { amount: 1, reference: "r" } },
  ],
  ["withdrawals --user 7", { method: "GET", path: "/admin/withdrawals", query: "user_id=7" }],
  ["approvals", { method: "GET", path: "/admin/approvals", query: "" }],
  ["approvals revoke 3", { method: "DELETE", path: "/admin/approvals/3" }],
  ["audit --from 1970-01-01T00:00:01Z", { method: "GET", path: "/admin/audit-log", query: "from=1000" }],
  [
    "market create Rain? --outcome Yes --outcome No --closes-at 1000 --event-id 2",
    {
      method: "POST",
      path: "/admin/markets",
      body: { question: "Rain?", outcomes: ["Yes", "No"], closes_at: 1_000, event_id: 2 },
    },
  ],
  ["market describe m-1 --category none", { method: "PATCH", path: "/admin/markets/m-1", body: { category: null } }],
  [
    "market resolve a/../b --payouts 10000,0",
    { method: "POST", path: "/admin/markets/a%2F..%2Fb/resolve", body: { payouts: [10_000, 0] } },
  ],
  ["operator grant a@example.com", { command: "operator grant", args: ["a@example.com"] }],
  ["keys rotate", { command: "keys rotate", args: [] }],
  ["standby status", { command: "standby status", args: [] }],
])("%s", (line, request) => {
  expect(read(line)).toEqual(request);
});

test.each([
  ["", /^unknown command ""/],
  ["nothing", /^unknown command "nothing"/],
  ["suspend", /^ID\|EMAIL: missing/],
  ["suspend 1 2", /^2: unexpected argument/],
  ["suspend me", /^ID\|EMAIL: me is neither a user's id nor an email address/],
  ["suspend 1 --reason x", /'--reason'/],
  ["suspend 1 --note", /'--note/],
  ["suspend 1 --note a --note b", /^--note: given twice/],
  ["deposit 1 5.5 ref", /^AMOUNT: 5.5 is neither an integer of micro-USDC nor USDC as in 12.5usdc/],
  ["deposit 1 1.1234567usdc ref", /^AMOUNT: 1.1234567usdc is neither/],
  ["deposit 1 -5 ref", /-5/],
  ["deposit 1 9007199254740993 ref", /^AMOUNT: /],
  ["deposit 1 5", /^REFERENCE: missing/],
  ["terms 1 --trading-fee 1.5", /^--trading-fee: 1.5 is not an integer/],
  ["market resolve 1 --payouts 1,x", /^--payouts: 1,x is not a list of integers/],
  ["market resolve 1 --payouts 1,", /^--payouts: /],
  [
    "market describe 1 --picture no/such/file.png",
    /^--picture: no\/such\/file.png is not a file of at most 45000 bytes/,
  ],
  [
    "market describe 1 --picture package-lock.json",
    /^--picture: package-lock.json is not a file of at most 45000 bytes/,
  ],
  ["event create a b --closes-at tomorrow", /^--closes-at: tomorrow is not a time/],
  ["keys rotate now", /^now: unexpected argument/],
])("%s is an invalid command line", (line, message) => {
  const run = (): unknown => read(line);
  expect(run).toThrow(UsageError);
  expect(run).toThrow(message);
});
