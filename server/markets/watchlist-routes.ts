/** What a user watches: markets and events, kept in the user's row. */
import type { User } from "../accounts/types.ts";
import { changeUser } from "../accounts/users.ts";
import { ApiError, badRequest, ErrorKind, notFound } from "../errors.ts";
import { OWN_SESSION, type Route, route } from "../http/route.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import { MAX_WATCHED } from "./limits.ts";
import type { MarketRegistry } from "./registry.ts";
import type { MarketExchange } from "./routes.ts";
import * as S from "./schemas.ts";
import { isListed } from "./views.ts";
import { readWatched, type Watched, watchedText } from "./watched-text.ts";

export interface WatchlistContext {
  readonly exchange: MarketExchange;
  readonly writer: LogWriter;
}

export function createWatchlistRoutes({ exchange, writer }: WatchlistContext): Route[] {
  return [
    route({
      method: "GET",
      path: "/me/watchlist",
      summary: "The markets and events that the user watches",
      ...OWN_SESSION,
      response: S.Watchlist,
      handler: ({ principal }) => listJson(principal.credential.user),
    }),
    route({
      method: "PATCH",
      path: "/me/watchlist",
      summary: "Add markets and events to what the user watches, or remove some; the response is the whole list",
      ...OWN_SESSION,
      body: S.WatchlistChange,
      response: S.Watchlist,
      async handler({ principal, body: { add = [], remove = [] } }) {
        if (add.length + remove.length === 0) throw badRequest("add or remove: give at least one market or event");
        const { user } = principal.credential;
        for (const watched of add) expectListed(exchange.registry, watched);
        const list = changed(readWatched(user.watchlist), add, remove);
        if (list.length > MAX_WATCHED) {
          throw new ApiError(ErrorKind.conflict, `the watchlist has at most ${MAX_WATCHED} entries: remove some first`);
        }
        const text = list.length === 0 ? null : watchedText(list);
        if (text !== user.watchlist) await writer.write([changeUser(user, { watchlist: text })], []);
        return listJson(user);
      },
    }),
  ];
}

const nameOf = (watched: Watched): string => watchedText([watched]);

const listJson = (user: User): string => JSON.stringify({ items: readWatched(user.watchlist) });

function changed(list: readonly Watched[], add: readonly Watched[], remove: readonly Watched[]): Watched[] {
  const removed = new Set(remove.map(nameOf));
  const kept = list.filter((each) => !removed.has(nameOf(each)));
  const known = new Set(kept.map(nameOf));
  const added = new Map(add.filter((each) => !known.has(nameOf(each))).map((each) => [nameOf(each), each]));
  return [...added.values(), ...kept];
}

/** @throws ApiError 4040 */
function expectListed(registry: MarketRegistry, { kind, id }: Watched): void {
  if (kind === "event" && registry.findEvent(id) === undefined) throw notFound(`event: ${id}`);
  const market = kind === "market" ? registry.get(id) : undefined;
  if (kind === "market" && (market === undefined || !isListed(market))) throw notFound(`market: ${id}`);
}
