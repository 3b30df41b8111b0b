/** The stage of an order that a function belongs to: the first matching rule decides. */
import type { Place } from "./cpu-profile.ts";

interface Rule {
  readonly group: string;
  readonly file: RegExp;
  readonly name?: RegExp;
}

/** Waiting for work; not counted. */
export const IDLE = "idle";

/** uWebSockets.js and SQLite count as their callers. */
const RULES: readonly Rule[] = [
  { group: IDLE, file: /^$/, name: /^\(idle\)$/ },
  { group: IDLE, file: /^engine\/ring\/waker\.ts$/, name: /^sleep$/ },
  { group: IDLE, file: /worker\.ts$/, name: /^atomicsWaitLoop$/ },
  { group: "garbage collection", file: /^$/, name: /garbage/ },
  { group: "outside of JavaScript: event loop, receiving", file: /^$/, name: /^\(program\)$/ },
  {
    group: "answer: its text",
    file: /^server\/(trading\/(order-json|pending-replies|composite-reply)|markets\/(views|trade-json|book-json))\.ts$/,
  },
  { group: "answer: its text", file: /^server\/http\/reply\.ts$/, name: /^(successBody|errorBody|errorFields)$/ },
  {
    group: "answer: status, headers, text into the socket",
    file: /^server\/(http\/(reply|security-headers)|websocket\/(connection|replay))\.ts$/,
  },
  { group: "parse", file: /^server\/http\/body\.ts$/, name: /^parse/ },
  { group: "parse", file: /^server\/http\/message-pack\.ts$/ },
  {
    group: "request: line, headers, body",
    file: /^server\/(http\/(server|body|credentials|request-head|event-loop-guard|route|client-address|deprecation)|websocket\/(hub|operations|upgrade))\.ts$/,
  },
  { group: "validate", file: /^server\/(http\/validate|[a-z]+\/schemas)\.ts$|typebox/ },
  { group: "validate", file: /^$/, name: /^RegExp/ },
  {
    group: "token, scopes, limits",
    file: /^server\/(accounts\/(authenticator|pats|users|last-use|kyc|sessions)|http\/(dispatch|rate-limiter)|util\/fair-queue)\.ts$/,
  },
  {
    group: "hold",
    file: /^server\/(trading\/(holds|cash)|accounts\/accounts)\.ts$|^engine\/ledger\.ts$|^engine\/money\.ts$/,
  },
  {
    group: "place: checks, slot, ids",
    file: /^server\/trading\/(order-entry|order-checks|order-requests|order-store|client-order-ids|command-writer|quotes|routes|batch|order-times)\.ts$|^engine\/util\/number-map\.ts$/,
  },
  { group: "rings, waking", file: /^engine\/(ring|util\/micro-clock)|^server\/trading\/turn-loop\.ts$/ },
  {
    group: "books, tickers, streams",
    file: /^server\/(markets\/|websocket\/channels)/,
  },
  {
    group: "committed events",
    file: /^server\/trading\/(exchange|committed-events|event-projection|user-outbox|user-updates|bulk-cancels)\.ts$|^server\/util\/counters\.ts$/,
  },
  {
    group: "match",
    file: /^engine\/(book\/|engine-stage|engine-thread|log\/batch-stamp)/,
  },
  { group: "checkpoint, beside the commits", file: /^engine\/log\/checkpoint\.ts$/ },
  { group: "append and COMMIT, the wait for the disk included", file: /^engine\/log\/append\.ts$/, name: /^commit$/ },
  { group: "number, copy or read batches", file: /^engine\/log\// },
  { group: "transactions of the tables", file: /^engine\/projection\/projector\.ts$/, name: /^commit$/ },
  { group: "rows into SQLite", file: /^engine\/projection\/row-inserter\.ts$/ },
  { group: "rows into SQLite", file: /^engine\/projection\//, name: /^(flush|insert|update|write)/ },
  { group: "apply the log's records", file: /^engine\/projection\// },
];

/** For functions that match no rule. */
const OTHER = "all else";

export function groupOf({ name, file }: Place): string {
  return RULES.find((rule) => rule.file.test(file) && (rule.name?.test(name) ?? true))?.group ?? OTHER;
}
