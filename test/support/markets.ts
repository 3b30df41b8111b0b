/** Operators' actions on markets, and the lines they leave in the audit log. Keeps no state. */

import type { Static } from "typebox";
import type { MarketRecord, Proposals, Settlement } from "../../server/markets/schemas.ts";

import type { Answer, Client, MarketJson } from "./client.ts";
import { rowsOf } from "./data-dir.ts";
import { PASSWORD, signIn } from "./identity.ts";
import type { UserSpec, World } from "./world.ts";

export type SettlementJson = Static<typeof Settlement>;
export type MarketRecordJson = Static<typeof MarketRecord>;
export type ProposalJson = Static<typeof Proposals>["items"][number];

export type Status = "proposed" | "open" | "halted" | "closed" | "resolved" | "voided" | "rejected";

/** The contract's transitions: the next state of each step, by the states that allow it. */
export const NEXT_STATUS: Readonly<Record<string, Partial<Record<Status, Status>>>> = {
  open: { proposed: "open", halted: "open" },
  halt: { open: "halted" },
  resume: { halted: "open" },
  close: { open: "closed", halted: "closed" },
  resolve: { closed: "resolved" },
  void: { closed: "voided" },
};

/** Two people who may act under /admin. */
export const OPERATORS: Readonly<Record<string, UserSpec>> = {
  operator: { role: "operator", password: PASSWORD, deposit: 0 },
  second: { role: "operator", password: PASSWORD, deposit: 0 },
};

/** Signs an operator in. Close the client. */
export async function asOperator({ server }: World, name = "operator"): Promise<Client> {
  return (await signIn(server, `${name}@example.com`)).client;
}

type Named = { readonly id: number } | { readonly slug: string };
const nameOf = (market: Named): string | number => ("id" in market ? market.id : market.slug);

/** Requests a step in a market's life: halt, resume, open, close, resolve, void. */
export function ask<T = MarketJson>(
  operator: Client,
  market: Named,
  step: string,
  body: object = {},
): Promise<Answer<T>> {
  return operator.request("POST", `/admin/markets/${nameOf(market)}/${step}`, { body });
}

/** Takes a step that must succeed; returns the market after it. */
export function take(operator: Client, market: Named, step: string, body: object = {}): Promise<MarketJson> {
  return operator.data("POST", `/admin/markets/${nameOf(market)}/${step}`, body);
}

/** Resolves or voids a market; closes it first if it trades. */
export async function settle(
  operator: Client,
  market: { readonly id: number },
  body: object | null,
): Promise<MarketJson> {
  const { status } = await operator.get<MarketJson>(`/markets/${market.id}`);
  if (status === "open" || status === "halted") await take(operator, market, "close");
  const path = `/admin/markets/${market.id}/${body === null ? "void" : "resolve"}`;
  return (await operator.data<SettlementJson>("POST", path, body ?? {})).market;
}

export interface AuditLine {
  readonly action: string;
  readonly actor: string;
  readonly subject: number;
  readonly details: string;
  readonly request_id: string | null;
}

/** The audit log's lines about a market, oldest first, with parsed details. */
export function auditOf(
  world: World,
  market: { readonly id: number },
): (Omit<AuditLine, "details"> & { details: unknown })[] {
  const sql = `SELECT action, actor, subject, details, request_id FROM audit_log
    WHERE action LIKE 'market.%' AND subject = ? ORDER BY id`;
  return rowsOf<AuditLine>(world.server.dataDir, sql, market.id).map((line) => {
    return { ...line, details: JSON.parse(line.details) as unknown };
  });
}

let questions = 0;
/** The body that creates or proposes a market, with a unique question. */
export function newMarket(more: object = {}): { question: string; outcomes: string[] } {
  return { question: `Will number ${++questions} happen?`, outcomes: ["Yes", "No"], ...more };
}
