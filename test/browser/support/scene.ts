/** An exchange with enough activity that every page has content, for a trader and at the desk. */
import { Guests, PASSWORD, signUp } from "../../support/identity.ts";
import { newMarket, OPERATORS, settle } from "../../support/markets.ts";
import { pay, withdraw } from "../../support/money.ts";
import { operatorOf } from "../../support/operator.ts";
import { BUY, SELL, terms } from "../../support/terms.ts";
import { ThirdParty } from "../../support/third-party.ts";
import { USDC, World } from "../../support/world.ts";

export const EVENT = "the-race";
const DOCUMENT = { document_type: "id_card", document_number: "L01X00T47", country: "DE" };
const UNTIL_MS = 30 * 86_400_000;

export interface Scene {
  readonly world: World;
  /** The app that requests access to the trader's account. */
  readonly app: ThirdParty;
}

/** Starts the exchange. The trader has a password, a token, positions in two markets, orders, fills, a settlement and payments. */
export async function setScene(): Promise<Scene> {
  const world = await World.start({
    users: 1,
    named: { trader: { password: PASSWORD }, ...OPERATORS },
    markets: [2, 4, 2],
    env: { TWO_PERSON_RULE: "withdrawals,deposits,terms" },
  });
  const guests = new Guests();
  const operator = await operatorOf(world.server);
  const [trader, maker] = [world.client("trader"), world.user()];
  const session = (await guests.signIn(world.server, "trader@example.com")).client;
  const [plain, many, over] = [world.market(), world.market(4), world.market()];

  await world.split(maker, plain, 500);
  await world.split(maker, over, 100);
  for (const price of [5_000, 5_100, 5_275]) await maker.place(terms(plain, 0, SELL, price, 100));
  for (const price of [4_600, 4_450]) await maker.place(terms(plain, 0, BUY, price, 150));
  await trader.place(terms(plain, 0, BUY, 5_000, 60));
  await trader.place(terms(plain, 0, SELL, 6_000, 20));
  await trader.place(terms(plain, 1, BUY, 3_000, 40, { expires_at: Date.now() + UNTIL_MS, time_in_force: "gtd" }));
  const { id } = await trader.place(terms(plain, 0, BUY, 100, 10));
  await trader.cancel(id);
  for (const i of [0, 1, 2, 3]) await maker.place(terms(many, i, BUY, 1_500 + 100 * i, 80));
  await world.split(trader, many, 25);
  await maker.place(terms(over, 1, SELL, 4_000, 50));
  await trader.place(terms(over, 1, BUY, 4_000, 50));
  await settle(operator, over, { payouts: [0, 10_000], note: "As reported by the press." });

  const paid = await withdraw(session, 25 * USDC);
  await withdraw(session, 75 * USDC, "0x52908400098527886E0F7030069857D2E4169EE7");
  await pay(operator, paid.id, { reference: "wire 1" });
  const { id: traderId } = await session.get<{ id: number }>("/me");
  await operator.data("POST", "/admin/deposits", { user_id: traderId, amount: 30 * USDC, reference: "wire 2" });
  await operator.data("PATCH", `/admin/users/${traderId}/terms`, { maker_rebate: 20, daily_limit: null });
  const { id: eventId } = await operator.data<{ id: number }>("POST", "/admin/events", {
    slug: EVENT,
    title: "The race",
  });
  await operator.data("POST", "/admin/markets", newMarket({ event_id: eventId, category: "sports" }));
  await trader.data("POST", "/markets/proposals", newMarket({ description: "Pending proposal for the desk." }));
  const applicant = guests.keep(await signUp(world.server, "applicant@people.example", 1));
  await applicant.client.data("POST", "/me/identity", DOCUMENT);
  const app = await ThirdParty.register(world, session);
  await app.tokens(session);
  operator.close();
  guests.close();
  return { world, app };
}
