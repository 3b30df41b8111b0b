/** Which part of an order's way a function belongs to: the first rule that fits decides. */
import type { Place } from "./cpu-profile.ts";

interface Rule {
  readonly group: string;
  readonly file: RegExp;
  readonly name?: RegExp;
}

/** Waiting for work; not counted. */
export const IDLE = "idle";

/** uWebSockets.js and SQLite count as what calls them. */
const RULES: readonly Rule[] = [
  { group: IDLE, file: /^$/, name: /^\(idle\)$/ },
  { group: IDLE, file: /^engine\/ring\.ts$/, name: /^sleep$/ },
  { group: IDLE, file: /worker\.ts$/, name: /^atomicsWaitLoop$/ },
  { group: "garbage collection", file: /^$/, name: /garbage/ },
  { group: "outside of JavaScript: event loop, receiving", file: /^$/, name: /^\(program\)$/ },
  {
    group: "answer: status, headers, text into the socket",
    file: /^server\/http\.ts$/,
    name: /^(write|writeHead|writeOut|finish|encode|give|flush|end)$/,
  },
  {
    group: "answer: status, headers, text into the socket",
    file: /^server\/(answer-policy|socket-connection|frames|messages|replay)\.ts$/,
  },
  { group: "answer: its text", file: /^server\/(order-json|views|envelope|waiting-answers|gathered-answer)\.ts$/ },
  {
    group: "request: line, headers, body",
    file: /^server\/(http|request-head|turn-watch|websocket|route|client-address|deprecation)\.ts$/,
  },
  { group: "parse", file: /^server\/(parse-json|msgpack)\.ts$/ },
  { group: "validate", file: /^server\/(validate|schemas|[a-z]+-schemas)\.ts$|typebox/ },
  { group: "validate", file: /^$/, name: /^RegExp/ },
  {
    group: "token, scopes, limits",
    file: /^server\/(authenticator|dispatch|rate-limiter|pats|users|last-use|kyc|sessions|fair-queue)\.ts$/,
  },
  { group: "hold", file: /^server\/(holds|accounts|coming)\.ts$|^engine\/ledger\.ts$|^engine\/money\.ts$/ },
  {
    group: "place: checks, slot, ids",
    file: /^server\/(order-entry|order-store|client-order-ids|routes|batch|order-times)\.ts$|^engine\/number-map\.ts$/,
  },
  { group: "rings, waking", file: /^engine\/(ring|micro-clock)\.ts$|^server\/engine-links\.ts$/ },
  {
    group: "books, tickers, streams",
    file: /^server\/(market-[a-z]+|book|book-json|channels|recent-trades|text-cache)\.ts$/,
  },
  { group: "committed events", file: /^server\/(exchange|followers|counters|cancel-jobs)\.ts$/ },
  {
    group: "match",
    file: /^engine\/(matcher|engine-stage|engine-thread|batch-stamp|book-layout)\.ts$/,
  },
  { group: "COMMIT, the wait for the disk included", file: /^engine\/journal\/journal\.ts$/, name: /^flush$/ },
  {
    group: "rows into SQLite",
    file: /^engine\/journal\/(row-inserter|updates|order-states|chains|candles|builders)\.ts$/,
  },
  { group: "rows into SQLite", file: /^engine\/journal\/journal\.ts$/, name: /^(flush|insert|list|begin|write)/ },
  { group: "checkpoint, beside the commits", file: /^server\/history-worker\.ts$/ },
  { group: "journal's own state", file: /^engine\/journal\// },
];

/** What fits no rule. */
const OTHER = "all else";

export function groupOf({ name, file }: Place): string {
  return RULES.find((rule) => rule.file.test(file) && (rule.name?.test(name) ?? true))?.group ?? OTHER;
}
