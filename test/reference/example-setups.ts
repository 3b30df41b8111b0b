/**
 * The preparations for sending a documented example: for each operation that names an object, creates the object and
 * replaces the example's id, secret or code by the real one.
 */
import { expect } from "vitest";
import { admin } from "../support/admin.ts";
import type { Client, MarketJson, OrderJson } from "../support/client.ts";
import {
  freshEmail,
  type Guests,
  PASSWORD,
  phoneCode,
  register,
  resetToken,
  type SignedIn,
  signIn,
  signUp,
  unsubscribeToken,
  verificationToken,
} from "../support/identity.ts";
import { newMarket, take } from "../support/markets.ts";
import { withdraw } from "../support/money.ts";
import type { TestProvider } from "../support/oidc-provider.ts";
import { pictureFile } from "../support/pictures.ts";
import { AuthenticatorApp, addApp, challengeOf, type EnrolmentJson, FACTORS, prove } from "../support/second-factor.ts";
import { BUY, SELL, terms } from "../support/terms.ts";
import { codeIn } from "../support/third-party.ts";
import type { World } from "../support/world.ts";

/** Replacements for parts of the example, and the client if it isn't the usual one. */
interface SetUp {
  readonly client?: Client;
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** The clients and the server of the examples. */
export interface Cast {
  readonly world: World;
  readonly guests: Guests;
  /** Uses a personal access token; `session` belongs to the same user. */
  readonly trader: Client;
  readonly session: Client;
  readonly operator: Client;
  readonly provider: TestProvider;
}

export type SetUps = Readonly<Record<string, (cast: Cast, example: Example) => Promise<SetUp>>>;
export interface Example {
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Identified {
  readonly id: number;
}

const idOf = async (made: Promise<Identified>): Promise<SetUp> => ({ params: { id: (await made).id } });
let phones = 0;
const freshPhone = (): string => `+1415555${2_000 + ++phones}`;

/** A resting order in a market that no other example uses. */
const restingOrder = ({ world, trader }: Cast): Promise<OrderJson> =>
  trader.place(terms(world.market(), 0, BUY, 4_200, 100, { client_order_id: `example-${++phones}` }));

const namedOrder = async (cast: Cast): Promise<SetUp> => {
  const { client_order_id } = await restingOrder(cast);
  return { params: { client_order_id: client_order_id! } };
};

const marketIn = async ({ world, operator }: Cast, ...steps: string[]): Promise<SetUp> => {
  const market = world.market();
  for (const step of steps) await take(operator, market, step);
  return { params: { id: market.id } };
};
const proposal = ({ trader }: Cast): Promise<SetUp> =>
  idOf(trader.data<MarketJson>("POST", "/markets/proposals", newMarket()));
const withdrawal = ({ session }: Cast): Promise<SetUp> => idOf(withdraw(session, 1_000_000));

async function person({ world, guests }: Cast, tier: 0 | 1): Promise<SignedIn> {
  return guests.keep(await signUp(world.server, freshEmail(), tier, freshPhone()));
}

const DOCUMENT = { document_type: "id_card", document_number: "L01X00T47", country: "DE" };
/** The link of a mail that told the trader of a deposit. */
async function mailedLink({ world, operator, session }: Cast): Promise<SetUp> {
  const { id, email } = await session.get<{ id: number; email: string }>("/me");
  await operator.data("POST", "/admin/deposits", { user_id: id, amount: 1_000_000, reference: `told ${++phones}` });
  return { params: { token: await unsubscribeToken(world.server, email) } };
}

async function application(cast: Cast): Promise<{ client: Client; id: number }> {
  const { client } = await person(cast, 1);
  const { id } = await client.data<Identified>("POST", "/me/identity", DOCUMENT);
  return { client, id };
}

async function userOf(cast: Cast): Promise<number> {
  return (await person(cast, 0)).user.id;
}

interface OAuthClient {
  readonly id: number;
  readonly client_id: string;
  readonly client_secret: string;
}
const oauthClient = ({ session }: Cast): Promise<OAuthClient> =>
  session.data("POST", "/me/oauth-clients", {
    name: "third party",
    redirect_uris: ["https://client.example/callback"],
    confidential: true,
  });

/** A code for the challenge in the authorization's example, which the verifier of the redemption's example matches. */
async function code(cast: Cast, authorization: object): Promise<Record<string, string>> {
  const { client_id, client_secret } = await oauthClient(cast);
  const body = { ...authorization, client_id, decision: "approve" };
  const { redirect_to } = await cast.session.data<{ redirect_to: string }>("POST", "/oauth/authorize", body);
  return { client_id, client_secret, code: codeIn(redirect_to) };
}

interface Granted extends Record<string, string> {
  client_id: string;
  client_secret: string;
  access_token: string;
  refresh_token: string;
}
async function tokens(cast: Cast, { authorization, redemption }: OAuthExamples): Promise<Granted> {
  const own = await code(cast, authorization);
  const { client_id, client_secret } = own as Granted;
  const form = new URLSearchParams({ ...redemption, ...own }).toString();
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  const { data } = await cast.world.anonymous().request<Granted>("POST", "/oauth/token", { body: form, headers });
  return { ...data, client_id, client_secret };
}

/** The examples of one authorization flow. */
export interface OAuthExamples {
  readonly authorization: object;
  readonly redemption: Record<string, string>;
}

/** Orders, fills and complete sets. */
const TRADING: SetUps = {
  runBatch: async (cast, { body }) => {
    const { id, market_id, outcome_id, client_order_id } = await restingOrder(cast);
    const [place, amend, cancel] = body["operations"] as object[];
    const operations = [
      { ...place, market_id, outcome_id },
      { ...amend, id },
      { ...cancel, client_order_id },
    ];
    return { body: { operations } };
  },
  getOrder: (cast) => idOf(restingOrder(cast)),
  cancelOrder: (cast) => idOf(restingOrder(cast)),
  getOrderByClientId: (cast) => namedOrder(cast),
  cancelOrderByClientId: (cast) => namedOrder(cast),
  amendOrder: (cast) => idOf(restingOrder(cast)),
  getBuilderStats: async ({ world, trader }) => {
    const headers = { "X-Builder-Code": "acme-terminal" };
    await trader.request("POST", "/orders", { headers, body: terms(world.market(), 0, BUY, 10, 1) });
    return {};
  },
  listFills: async ({ world, trader }) => {
    const market = world.markets[0]!;
    const other = world.user();
    await world.split(other, market, 10);
    await trader.place(terms(market, 0, BUY, 9_000, 10));
    await other.place(terms(market, 0, SELL, 9_000, 10));
    return {};
  },
  mergeSets: async ({ world, trader }) => {
    await world.split(trader, world.markets[0]!, 40);
    return {};
  },
};

/** Withdrawals, the house and approvals. */
const MONEY: SetUps = {
  getWithdrawal: withdrawal,
  cancelWithdrawal: withdrawal,
  getAnyWithdrawal: withdrawal,
  payWithdrawal: withdrawal,
  refuseWithdrawal: withdrawal,
  reverseDeposit: async ({ operator }) => {
    const body = { amount: 250_000_000, reference: "for the example of a reversal" };
    return idOf(operator.data<Identified>("POST", "/admin/house/deposits", body));
  },
  withdrawFromHouse: async ({ operator }) => {
    await operator.data("POST", "/admin/house/deposits", { amount: 2_000_000, reference: "for the example" });
    return {};
  },
  takeBackApproval: async (cast) => {
    const { params } = await withdrawal(cast);
    const path = `/admin/withdrawals/${params!["id"]}/pay`;
    return idOf(cast.operator.data<{ approval: Identified }>("POST", path, {}).then(({ approval }) => approval));
  },
};

/** Of users who are signed in. */
const ACCOUNTS: SetUps = {
  changePassword: async (cast) => ({ client: (await person(cast, 0)).client }),
  sendPhoneCode: async (cast) => ({ client: (await person(cast, 0)).client, body: { phone: freshPhone() } }),
  openUnsubscribePage: (cast) => mailedLink(cast),
  unsubscribe: (cast) => mailedLink(cast),
  verifyPhone: async (cast) => {
    const { client } = await person(cast, 0);
    const phone = freshPhone();
    await client.data("POST", "/me/phone", { phone });
    return { client, body: { code: await phoneCode(cast.world.server, phone) } };
  },
  applyForTier2: async (cast) => ({ client: (await person(cast, 1)).client }),
  getIdentityApplication: async (cast) => ({ client: (await application(cast)).client }),
  endSession: async ({ world, guests, session }) => {
    await guests.signIn(world.server, "trader@example.com");
    const { items } = await session.get<{ items: (Identified & { current: boolean })[] }>("/me/sessions");
    return { params: { id: items.find(({ current }) => !current)!.id } };
  },
  revokePersonalAccessToken: ({ session }) =>
    idOf(session.data("POST", "/me/personal-access-tokens", { name: "old", scopes: ["portfolio:read"] })),
};

/** Second factors. */
const SECOND_FACTORS: SetUps = {
  proveOwner: async (cast) => ({ client: (await person(cast, 1)).client, body: { password: PASSWORD } }),
  addSecondFactor: async (cast) => {
    const { client } = await person(cast, 1);
    await prove(client);
    return { client };
  },
  confirmSecondFactor: async (cast) => {
    const { client } = await person(cast, 1);
    await prove(client);
    const { id, secret } = await client.data<EnrolmentJson>("POST", FACTORS, { kind: "totp" });
    return { client, params: { id }, body: { code: new AuthenticatorApp(secret!).next() } };
  },
  renewRecoveryCodes: async (cast) => {
    const { client } = await person(cast, 1);
    await addApp(client);
    return { client };
  },
  removeSecondFactor: async (cast) => {
    const { client } = await person(cast, 1);
    return { client, params: { id: (await addApp(client)).id } };
  },
};

/** Sign-in, and what comes before it. */
const SIGN_IN: SetUps = {
  verifyEmail: async ({ world }) => {
    const email = freshEmail();
    await register(world.server, email);
    return { body: { token: await verificationToken(world.server, email) } };
  },
  login: async () => ({ body: { email: "trader@example.com" } }),
  finishSignIn: async (cast) => {
    const { client, user } = await person(cast, 1);
    const { app } = await addApp(client);
    const { challenge } = await challengeOf(cast.world.server, user.email);
    return { body: { challenge, code: app.next() } };
  },
  refresh: async ({ world, guests }) => {
    const { refreshToken } = await guests.signIn(world.server, "trader@example.com");
    return { body: { refresh_token: refreshToken } };
  },
  logout: async ({ world, guests }) => ({ client: (await guests.signIn(world.server, "trader@example.com")).client }),
  resetPassword: async (cast) => {
    const { server } = cast.world;
    const { user } = await person(cast, 0);
    await cast.world.anonymous().data("POST", "/auth/forgot-password", { email: user.email });
    return { body: { token: await resetToken(server, user.email) } };
  },
  finishSocialSignIn: async ({ world, provider }) => {
    const { headers } = await world.anonymous().request("GET", "/auth/social/example");
    const back = new URL(await provider.signInAt(headers.location!, "alice"));
    const cookie = headers["set-cookie"]!.map((line) => line.split(";")[0]).join("; ");
    return { query: Object.fromEntries(back.searchParams), headers: { Cookie: cookie } };
  },
};

/** What operators do. */
const MARKETS: SetUps = {
  getHistoryFile: async ({ world }) => {
    // Every market was opened today.
    const today = new Date().toISOString().slice(0, 10);
    expect((await admin(world.server.dataDir, "history", today, today)).code).toBe(0);
    return { params: { id: world.markets[0]!.id, file: `${today}.parquet` } };
  },
  getMarketPicture: async ({ world, operator }) => {
    const { id } = world.market();
    const { picture } = await operator.data<MarketJson>("PATCH", `/admin/markets/${id}`, { picture: pictureFile() });
    return { params: { id, hash: picture!.split("/").at(-1)! } };
  },
};

const OPERATORS: SetUps = {
  approveProposal: proposal,
  refuseProposal: proposal,
  openMarket: proposal,
  getMarketRecord: proposal,
  haltMarket: (cast) => marketIn(cast),
  resumeMarket: (cast) => marketIn(cast, "halt"),
  closeMarket: (cast) => marketIn(cast),
  resolveMarket: (cast) => marketIn(cast, "close"),
  voidMarket: (cast) => marketIn(cast, "close"),
  suspendUser: async (cast) => ({ params: { id: await userOf(cast) } }),
  restoreUser: async (cast) => {
    const id = await userOf(cast);
    await cast.operator.data("POST", `/admin/users/${id}/suspend`, {});
    return { params: { id } };
  },
  resetSecondFactors: async (cast) => {
    const { client, user } = await person(cast, 1);
    await addApp(client);
    return { params: { id: user.id } };
  },
  approveIdentity: async (cast) => ({ params: { id: (await application(cast)).id } }),
  refuseIdentity: async (cast) => ({ params: { id: (await application(cast)).id } }),
};

/** Third parties: they need the examples of a whole flow. */
function thirdParties(oauth: OAuthExamples): SetUps {
  return {
    getOAuthClient: (cast) => idOf(oauthClient(cast)),
    removeOAuthClient: (cast) => idOf(oauthClient(cast)),
    revokeOAuthGrant: async (cast) => {
      const { client_id } = await tokens(cast, oauth);
      const { items } = await cast.session.get<{ items: (Identified & { client_id: string })[] }>("/me/oauth-grants");
      return { params: { id: items.find((grant) => grant.client_id === client_id)!.id } };
    },
    getAskingClient: async (cast) => ({ params: { client_id: (await oauthClient(cast)).client_id } }),
    authorize: async (cast) => ({ query: { client_id: (await oauthClient(cast)).client_id } }),
    decideAuthorization: async (cast) => ({ body: { client_id: (await oauthClient(cast)).client_id } }),
    requestToken: async (cast) => ({ body: await code(cast, oauth.authorization) }),
    revokeToken: async (cast) => {
      const { client_id, client_secret, refresh_token } = await tokens(cast, oauth);
      return { body: { client_id, client_secret, token: refresh_token } };
    },
    introspectToken: async (cast) => {
      const { client_id, client_secret, access_token } = await tokens(cast, oauth);
      return { body: { client_id, client_secret, token: access_token } };
    },
  };
}

/** What to prepare for each operation, by its operationId; operations without an entry need nothing. */
export function setUpsWith(oauth: OAuthExamples): SetUps {
  return {
    ...{ ...MARKETS, ...TRADING, ...MONEY, ...ACCOUNTS, ...SECOND_FACTORS, ...SIGN_IN, ...OPERATORS },
    ...thirdParties(oauth),
  };
}

/** Signs in the seeded user. */
export const sessionOf = async (world: World, guests: Guests, name: string): Promise<Client> =>
  guests.keep(await signIn(world.server, `${name}@example.com`)).client;
