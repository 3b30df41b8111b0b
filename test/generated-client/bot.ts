/**
 * A bot on a client that openapi-typescript generated from the served document: it quotes, is filled, reads its position
 * and cancels the rest. It compiles next to the generated types, so the repository's own type check excludes it.
 */

import type { components, paths } from "exchange-api";
import createClient from "openapi-fetch";

type Order = components["schemas"]["Order"];
type Position = components["schemas"]["Position"];

export interface Outcome {
  readonly placed: Order;
  readonly after: Order;
  readonly positions: readonly Position[];
  readonly canceled: readonly number[];
  /** `code` and `msg` of an invalid order. */
  readonly refused: readonly [number, string];
}

/** @param base with the version prefix @param tokens of two users with money */
export async function trade(base: string, tokens: readonly [string, string]): Promise<Outcome> {
  const [maker, taker] = tokens.map((token) => {
    return createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${token}` } });
  }) as [ReturnType<typeof createClient<paths>>, ReturnType<typeof createClient<paths>>];

  const listed = await maker.GET("/markets", { params: { query: { status: "open", limit: 1 } } });
  const market = listed.data!.data.items[0]!;
  const [yes, no] = market.outcomes as [components["schemas"]["Market"]["outcomes"][0], { id: number }];

  const placement = { market_id: market.id, outcome_id: yes.id, side: 1, price: 4_200, quantity: 100 };
  const { data: answer } = await maker.POST("/orders", { body: { ...placement, time_in_force: "gtc" } });
  const placed = answer!.data;

  // Bids for Yes at 42 % and No at 58 % mint complete sets.
  await taker.POST("/orders", { body: { ...placement, outcome_id: no.id, price: 5_800, quantity: 40 } });
  let after = placed;
  while (after.filled === 0) {
    const found = await maker.GET("/orders/{id}", { params: { path: { id: placed.id } } });
    after = found.data!.data;
  }

  const { data: held } = await maker.GET("/me/positions", { params: { query: { market_id: market.id } } });
  const { data: ended } = await maker.DELETE("/orders", { params: { query: { market_id: market.id } } });
  const { error } = await maker.POST("/orders", { body: { ...placement, price: 10_000 } });
  if (error === undefined) throw new Error("a price of 100 % was taken");
  return {
    placed,
    after,
    positions: held!.data.items,
    canceled: ended!.data.order_ids,
    refused: [error.code, error.msg],
  };
}
