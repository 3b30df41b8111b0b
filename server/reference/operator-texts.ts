/** The documentation of operators' routes, and of health and metrics. */

import type { Static } from "typebox";
import type { TermsChange } from "../accounts/terms.ts";
import type { Now, PageQuery } from "../http/schemas.ts";
import type { NoteOnly } from "../http/text-schemas.ts";
import type { MarketChanges, NewEvent, NewMarket, ProposalsQuery, Resolution, Settlement } from "../markets/schemas.ts";
import type { ApplicationsQuery, AuditLine, AuditQuery, Restoration, UsersQuery } from "../operators/schemas.ts";
import type { Health, Readiness } from "../service/schemas.ts";
import type {
  AllWithdrawalsQuery,
  HousePayment,
  HouseWithdrawal,
  NewDeposit,
  NewDepositAnswer,
  Reversal,
  Solvency,
  UserQuery,
  WithdrawalDecision,
  WithdrawalPayment,
  WithdrawalWithTrail,
} from "../wallet/schemas.ts";

import type { OperationText, OperationTexts } from "./operation-text.ts";
import * as example from "./samples.ts";

const PAGE = { limit: 10 } satisfies Static<typeof PageQuery>;
const NOTE = { note: "Requested by the compliance desk." } satisfies Static<typeof NoteOnly>;
const HEALTHY = { status: "ok" } satisfies Static<typeof Health>;

function text(id: string, rest: Omit<OperationText, "id" | "tag">): OperationText {
  return { id, tag: "Operators", ...rest };
}

export const OPERATOR_TEXTS: OperationTexts = {
  "POST /admin/deposits": text("creditDeposit", {
    errors: [404, 409],
    body: { user_id: 3, amount: 250_000_000, reference: "wire 2026-11-22 0001" } satisfies Static<typeof NewDeposit>,
    response: { ...example.deposit, approval: null } satisfies Static<typeof NewDepositAnswer>,
  }),
  "GET /admin/deposits": text("listAllDeposits", {
    query: { user_id: 3 } satisfies Static<typeof UserQuery>,
    response: example.pageOf(example.deposit),
  }),
  "POST /admin/house/deposits": text("fundHouse", {
    errors: [409],
    body: { amount: 5_000_000, reference: "house 2026-11-22 0001" } satisfies Static<typeof HousePayment>,
    response: {
      ...{ ...example.deposit, amount: 5_000_000, reference: "house 2026-11-22 0001" },
      ...{ user_id: null, approval: null },
    } satisfies Static<typeof NewDepositAnswer>,
  }),
  "POST /admin/deposits/:id/reverse": text("reverseDeposit", {
    errors: [404, 409, 422],
    params: { id: 10 },
    body: {
      ...{ amount: 250_000_000, reference: "wire 2026-11-22 0001 back" },
      note: "Credited to the wrong account.",
    } satisfies Static<typeof Reversal>,
    response: {
      ...{ ...example.deposit, id: 12, amount: -250_000_000, reference: "wire 2026-11-22 0001 back" },
      ...{ reverses: example.deposit.id, approval: null },
    } satisfies Static<typeof NewDepositAnswer>,
  }),
  "POST /admin/house/withdrawals": text("withdrawFromHouse", {
    errors: [409, 422],
    body: { amount: 1_000_000, reference: "house 2026-11-22 0002" } satisfies Static<typeof HousePayment>,
    response: {
      withdrawal: {
        id: 14,
        amount: 1_000_000,
        reference: "house 2026-11-22 0002",
        created_at: example.ownDeposit.created_at,
      },
      ...{ approval: null },
    } satisfies Static<typeof HouseWithdrawal>,
  }),
  "GET /admin/withdrawals": text("listAllWithdrawals", {
    query: { status: "pending" } satisfies Static<typeof AllWithdrawalsQuery>,
    response: example.pageOf(example.withdrawal),
  }),
  "GET /admin/withdrawals/:id": text("getAnyWithdrawal", {
    params: { id: 11 },
    response: { ...example.withdrawal, trail: example.trail } satisfies Static<typeof WithdrawalWithTrail>,
  }),
  "GET /admin/users/:id/trail": text("getTrail", { params: { id: 3 }, response: example.trail }),
  "POST /admin/withdrawals/:id/pay": text("payWithdrawal", {
    errors: [409],
    params: { id: 11 },
    body: { reference: "payout 2026-11-22 0001" } satisfies Static<typeof WithdrawalPayment>,
    response: {
      withdrawal: {
        ...example.withdrawal,
        status: "paid",
        reference: "payout 2026-11-22 0001",
        decided_at: example.THEN,
      },
      approval: null,
    } satisfies Static<typeof WithdrawalDecision>,
  }),
  "POST /admin/withdrawals/:id/refuse": text("refuseWithdrawal", {
    errors: [409],
    params: { id: 11 },
    body: { note: "The address is not yours." } satisfies Static<typeof NoteOnly>,
    response: {
      withdrawal: {
        ...example.withdrawal,
        status: "refused",
        note: "The address is not yours.",
        decided_at: example.THEN,
      },
      approval: null,
    } satisfies Static<typeof WithdrawalDecision>,
  }),
  "GET /admin/approvals": text("listApprovals", { query: PAGE, response: example.pageOf(example.approval) }),
  "DELETE /admin/approvals/:id": text("takeBackApproval", {
    errors: [409],
    params: { id: 9 },
    response: example.approval,
  }),
  "GET /admin/proposals": text("listAllProposals", {
    query: { status: "proposed" } satisfies Static<typeof ProposalsQuery>,
    response: example.pageOf(example.marketRecord),
  }),
  "POST /admin/proposals/:id/approve": text("approveProposal", {
    errors: [409],
    params: { id: 2 },
    body: NOTE,
    response: { ...example.proposedMarket, status: "open", opens_at: example.THEN },
  }),
  "POST /admin/proposals/:id/refuse": text("refuseProposal", {
    errors: [409],
    params: { id: 2 },
    body: NOTE,
    response: { ...example.proposedMarket, status: "rejected" },
  }),
  "POST /admin/events": text("createEvent", {
    errors: [409],
    body: { slug: "fed-decisions", title: "Decisions of the Federal Reserve", category: "economics" } satisfies Static<
      typeof NewEvent
    >,
    response: { ...example.event, closes_at: null, volume: 0, volume_24h: 0, market_count: 0, markets: [] },
  }),
  "POST /admin/markets": text("createMarket", {
    errors: [404, 409],
    body: {
      question: example.market.question,
      description: example.market.description,
      category: "economics",
      outcomes: ["Yes", "No"],
      closes_at: example.FAR_OFF,
      event_id: 1,
      slug: "fed-cut-by-june",
    } satisfies Static<typeof NewMarket>,
    response: example.market,
  }),
  "GET /admin/markets/:id": text("getMarketRecord", { params: { id: 2 }, response: example.marketRecord }),
  "PATCH /admin/markets/:id": text("changeMarket", {
    errors: [409],
    description: "The audit log shows a picture by its hash, not the file.",
    params: { id: 1 },
    body: { category: "economics", closes_at: example.FAR_OFF } satisfies Static<typeof MarketChanges>,
    response: example.market,
  }),
  "POST /admin/markets/:id/open": text("openMarket", {
    errors: [409],
    params: { id: 2 },
    body: NOTE,
    response: { ...example.proposedMarket, status: "open", opens_at: example.THEN },
  }),
  "POST /admin/markets/:id/halt": text("haltMarket", {
    errors: [409],
    params: { id: 1 },
    body: NOTE,
    response: { ...example.market, status: "halted" },
  }),
  "POST /admin/markets/:id/resume": text("resumeMarket", {
    errors: [409],
    params: { id: 1 },
    body: NOTE,
    response: example.market,
  }),
  "POST /admin/markets/:id/close": text("closeMarket", {
    errors: [409],
    params: { id: 1 },
    body: NOTE,
    response: example.closedMarket,
  }),
  "POST /admin/markets/:id/resolve": text("resolveMarket", {
    errors: [409],
    params: { id: 1 },
    body: { payouts: [10_000, 0], note: "The range was lowered on 17 March." } satisfies Static<typeof Resolution>,
    response: { market: example.resolvedMarket, approval: null } satisfies Static<typeof Settlement>,
  }),
  "POST /admin/markets/:id/void": text("voidMarket", {
    errors: [409],
    params: { id: 1 },
    body: NOTE,
    response: {
      market: {
        ...example.resolvedMarket,
        status: "voided",
        resolution: { payouts: [5_000, 5_000], outcome_id: null, note: NOTE.note, resolved_at: example.THEN },
      },
      approval: null,
    } satisfies Static<typeof Settlement>,
  }),
  "GET /admin/users": text("listUsers", {
    query: { kyc_tier: 1, suspended: false, limit: 10 } satisfies Static<typeof UsersQuery>,
    response: example.pageOf(example.operatorUser),
  }),
  "GET /admin/users/:id": text("getUser", { params: { id: 3 }, response: example.operatorUser }),
  "POST /admin/users/:id/suspend": text("suspendUser", {
    errors: [409],
    params: { id: 3 },
    body: NOTE,
    response: { ...example.operatorUser, suspended_at: example.THEN },
  }),
  "POST /admin/users/:id/restore": text("restoreUser", {
    errors: [409],
    params: { id: 3 },
    body: { ...NOTE, tokens: "restore" } satisfies Static<typeof Restoration>,
    response: example.operatorUser,
  }),
  "PATCH /admin/users/:id/terms": text("setTerms", {
    errors: [409],
    params: { id: 3 },
    body: { maker_rebate: 10, rate_limit_factor: 20 } satisfies TermsChange,
    response: {
      ...example.operatorUser,
      terms: { ...example.operatorUser.terms, maker_rebate: 10, rate_limit_factor: 20 },
    },
  }),
  "GET /admin/identity-applications": text("listIdentityApplications", {
    query: { status: "pending" } satisfies Static<typeof ApplicationsQuery>,
    response: example.pageOf(example.operatorApplication),
  }),
  "POST /admin/identity-applications/:id/approve": text("approveIdentity", {
    errors: [409],
    params: { id: 2 },
    body: {} satisfies Static<typeof NoteOnly>,
    response: { ...example.operatorApplication, status: "approved", decided_at: example.THEN },
  }),
  "POST /admin/identity-applications/:id/refuse": text("refuseIdentity", {
    errors: [409],
    params: { id: 2 },
    body: { note: "The number is not legible." } satisfies Static<typeof NoteOnly>,
    response: {
      ...example.operatorApplication,
      status: "refused",
      note: "The number is not legible.",
      decided_at: example.THEN,
    },
  }),
  "GET /admin/audit-log": text("listAuditLog", {
    query: { action: "user.", limit: 10 } satisfies Static<typeof AuditQuery>,
    response: example.pageOf<Static<typeof AuditLine>>({
      id: 77,
      at: example.THEN,
      action: "user.suspend",
      actor: "operator 1",
      user_id: 3,
      subject: 3,
      details: NOTE,
      request_id: "3f2a-1c",
      address: "203.0.113.7",
    }),
  }),
};

export const SERVICE_TEXTS: OperationTexts = {
  "GET /time": {
    id: "getTime",
    tag: "Service",
    response: { now: example.THEN } satisfies Static<typeof Now>,
  },
  "GET /solvency": {
    id: "getSolvency",
    tag: "Service",
    response: {
      deposits: 20_000_000_000,
      withdrawals: 0,
      users_total: 19_959_932_800,
      collateral: 40_000_000,
      house: 67_200,
      balanced: true,
      sequence: 1_204,
      at: example.THEN,
    } satisfies Static<typeof Solvency>,
  },
  "GET /livez": { id: "getLiveness", tag: "Service", response: HEALTHY },
  "GET /readyz": {
    id: "getReadiness",
    tag: "Service",
    description:
      "503, with the reason as `status`, while the exchange is starting or stopping, after a failure, while the others that keep a copy of its log don't respond (`held`), and on a second box that follows (`standby`). A box without such a copy has only `status`.",
    response: {
      status: "ok",
      role: "active",
      epoch: 1,
      behind_batches: 0,
      ack: "standby",
      alone: false,
    } satisfies Static<typeof Readiness>,
  },
  "GET /metrics": {
    id: "getMetrics",
    tag: "Service",
    response: "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 12.5\n",
  },
  "GET /openapi.json": {
    id: "getOpenApi",
    tag: "Service",
    response: { openapi: "3.1.0", info: { title: "Prediction exchange" } },
  },
  "GET /asyncapi.json": {
    id: "getAsyncApi",
    tag: "Service",
    response: { asyncapi: "3.0.0", info: { title: "Prediction exchange: WebSocket" } },
  },
  "GET /sbe.xml": {
    id: "getBinarySchema",
    tag: "Service",
    response:
      '<?xml version="1.0" encoding="UTF-8"?>\n<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" ...',
  },
};
