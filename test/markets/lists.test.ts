/**
 * The lists of markets and events and the feed: search in any script and with any input, each filter and sort, pages by
 * cursor with ties and while trades continue, and all of it again after a restart. Search over an older database and over
 * real questions is in search-data.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Listing } from "../../server/http/paging.ts";
import { MAX_EVENT_MARKETS, MAX_LISTED_EVENT_MARKETS } from "../../server/markets/limits.ts";
import { Client, type MarketJson } from "../support/client.ts";
import { withDatabase } from "../support/data-dir.ts";
import { Random } from "../support/random.ts";
import { TestServer } from "../support/server.ts";
import { ALL_SCOPES, seedOf, tokenOf } from "../support/world.ts";

interface EventJson {
  readonly id: number;
  readonly slug: string;
  readonly category: string | null;
  readonly volume: number;
  readonly volume_24h: number;
  readonly market_count: number;
  readonly markets: readonly MarketJson[];
}

interface FeedJson {
  readonly items: readonly (EventJson & MarketJson & { readonly kind: string })[];
  readonly total: number;
}

const BUY = 1;
const SELL = 2;
const LISTED = 90;
const MANY = 130;
const CATEGORIES = ["sports", "science", "a b&c=d", null];

/** By slug, what its market asks. */
const TEXTS: Readonly<Record<string, string>> = {
  french: "Le café sera-t-il bientôt ouvert à Noël?",
  decomposed: "Le cafe\u0301 decompose\u0301",
  german: "Wird die Große Straße in Köln gesperrt?",
  greek: "Θα κερδίσει η Ώρα της ΑΘΗΝΑΣ;",
  russian: "Выиграет ли Ёлкин матч в Йошкар-Оле?",
  polish: "Czy Łódź wygra? Øresund?",
  turkish: "İSTANBUL'da ılık bir kış mı?",
  hindi: "क्या नमस्ते दुनिया होगा?",
  japanese: "東京オリンピック 2036",
  korean: "한국어 질문",
  arabic: "هل يفوز مُحَمَّد؟",
  hebrew: "האם שָׁלוֹם יהיה?",
  vietnamese: "Việt Nam vô địch?",
  wide: "ＷＩＤＥ letters and the ﬁne ligature",
  signs: 'AT&T at 3.5% - O\'Brien "quoted" (NEAR/2) NOT x OR y AND z* ^a col:um {b} \\ ; DROP TABLE',
};

const random = Random.printed("the lists of markets");
let server: TestServer;
let client: Client;
let traders: Client[];

beforeAll(async () => {
  const listed = Array.from({ length: LISTED }, (_, i) => ({
    slug: `listed-${i}`,
    question: `Question ${i}`,
    category: random.pick(CATEGORIES),
    event_slug: random.pick(["first", "second", "third", null]),
    outcomes: ["Yes", "No"],
    // Few ends, so that many are the same.
    closes_at: random.pick([1_900_000_000_000, 1_900_000_000_001, 2_000_000_000_000, null]),
  }));
  const texts = Object.entries(TEXTS).map(([slug, question]) => ({ slug, question, outcomes: ["Yes", "No"] }));
  const many = Array.from({ length: MANY }, (_, i) => {
    return { slug: `many-${i}`, question: "?", event_slug: "many", outcomes: ["Yes", "No"], category: "of many" };
  });
  const events = [
    ...["first", "second", "third"].map((slug, i) => ({ slug, title: `Größe ${i}`, category: CATEGORIES[i]! })),
    { slug: "many", title: "Many of them", category: "sports" },
    { slug: "empty", title: "Nothing yet" },
  ];
  const named = { trader0: { scopes: [ALL_SCOPES] }, trader1: { scopes: [ALL_SCOPES] } };
  const { users } = seedOf({ users: 0, named });
  server = await TestServer.start({ seed: { users: users!, events, markets: [...listed, ...texts, ...many] } });
  connect();
});
afterAll(async () => {
  disconnect();
  await server.stop();
});

function connect(): void {
  client = new Client(server, null);
  traders = [0, 1].map((n) => new Client(server, tokenOf(`trader${n}`)));
}

function disconnect(): void {
  for (const each of [client, ...traders]) each.close();
}

const slugs = (items: readonly { slug: string }[]): string[] => items.map(({ slug }) => slug);
const search = (q: string, path = "/markets"): Promise<{ slug: string }[]> => {
  return client.all(`${path}${path.includes("?") ? "&" : "?"}q=${encodeURIComponent(q)}`);
};
const everyMarket = (): Promise<MarketJson[]> => client.all<MarketJson>("/markets");

async function everyPlace(query = ""): Promise<FeedJson["items"]> {
  const items: FeedJson["items"][number][] = [];
  for (let page = 1; ; page++) {
    const found = await client.get<FeedJson>(`/feed?size=100&page=${page}${query}`);
    items.push(...found.items);
    if (items.length >= found.total) return items;
  }
}

/** One match of `quantity` shares. */
async function trade(market: MarketJson, quantity: number): Promise<void> {
  const [seller, buyer] = traders as [Client, Client];
  await seller.data("POST", "/wallet/split", { market_id: market.id, quantity });
  const terms = { market_id: market.id, outcome_id: market.outcomes[0]!.id, price: 100, quantity };
  await seller.place({ ...terms, side: SELL });
  await buyer.place({ ...terms, side: BUY });
}

describe("the search", () => {
  test.for([
    ["CAFE", ["decomposed", "french"]],
    ["cafe\u0301", ["decomposed", "french"]],
    ["Noel bientot", ["french"]],
    ["caf ouv", ["french"]],
    ["strasse", ["german"]],
    ["KOLN GROSSE", ["german"]],
    ["ωρα αθηνας", ["greek"]],
    ["ΑΘΗ", ["greek"]],
    ["елкин ЙОШКАР", ["russian"]],
    ["lodz oresund", ["polish"]],
    ["istanbul ilik", ["turkish"]],
    ["नमस्ते", ["hindi"]],
    ["東京", ["japanese"]],
    ["２０３６", ["japanese"]],
    ["한국", ["korean"]],
    ["محمد", ["arabic"]],
    ["שלום", ["hebrew"]],
    ["viet NAM vo dich", ["vietnamese"]],
    ["wide fine", ["wide"]],
    ["AT&T", ["signs"]],
    ["brien quoted near", ["signs"]],
    ["not or and", ["signs"]],
    ["drop-table;", ["signs"]],
    ["col:um", ["signs"]],
    ["🚀 istanbul 🚀", ["turkish"]],
    ["german", ["german"]],
    ["afe", []],
    ["cafe strasse", []],
    ["question", slugsFromEnd("listed", LISTED)],
    ["of many yes no", slugsFromEnd("many", MANY)],
  ] as [string, string[]][])("the search finds by %s", async ([q, expected]) => {
    expect(slugs(await search(q)).sort()).toEqual(expected.toSorted());
  });

  test.for([
    ...[
      '"',
      "'",
      "*",
      "^",
      ":",
      "(",
      "NEAR(",
      '" OR "',
      "{a} : b*",
      "-listed",
      "a AND",
      "NOT",
      "OR OR OR",
      "\\",
      ";--",
    ],
    ...[
      "%",
      "?!.,",
      "🚀🎲",
      "\u0000",
      "a\u0000b",
      "\u0301\u0301",
      "\u200b",
      "\ufffd",
      " ",
      "()*:^\"'",
      "😀".repeat(50),
    ],
    ...["x".repeat(200), "a ".repeat(100), "' OR 1=1 --", "market_words:a", "rowid:1", "\ufdfa".repeat(200), "㌀㌁㌂"],
    Array.from({ length: 200 }, (_, i) => String.fromCodePoint(0x3300 + i)).join(""),
    Array.from({ length: 100 }, (_, i) => String.fromCodePoint(0x61 + (i % 26))).join(" "),
  ])("the search takes whatever is typed: %j", async (q) => {
    for (const path of ["/markets", "/events", "/feed"]) {
      const answer = await client.request<{ items: unknown[] }>("GET", `${path}?q=${encodeURIComponent(q)}`);
      expect(answer).toMatchObject({ status: 200, code: 0 });
      // Without a letter or digit there is nothing to look for.
      if (!/[\p{L}\p{N}]/u.test(q)) expect(answer.data.items).toEqual([]);
    }
  });

  test("the search rejects empty and too long queries, and survives bytes that are no text", async () => {
    for (const path of ["/markets", "/events", "/feed"]) {
      for (const q of ["", "x".repeat(201)]) {
        const answer = await client.request("GET", `${path}?q=${q}`);
        expect([answer.code, answer.msg.startsWith("q:")]).toEqual([40000, true]);
      }
      for (const q of ["%ff%fe", "%", "%zz", "%c3", "%ed%a0%80"]) {
        expect((await client.request("GET", `${path}?q=${q}`)).status).toBe(200);
      }
    }
  });

  test("the search combines with every filter, sort and page", async () => {
    const all = await everyMarket();
    const found = all.filter(({ slug }) => slug.startsWith("listed-"));
    for (const limit of [7, 200]) {
      expect(slugs(await client.all("/markets?q=question", limit))).toEqual(slugs(found));
      const some = found.filter(({ category }) => category === "sports");
      expect(slugs(await client.all("/markets?q=question&category=sports", limit))).toEqual(slugs(some));
      const byEnd = found.toSorted((a, b) => endOf(a) - endOf(b) || b.id - a.id);
      expect(slugs(await client.all("/markets?q=question&sort=closes_at", limit))).toEqual(slugs(byEnd));
    }
    expect(await search("question", "/markets?status=closed")).toEqual([]);
  });

  test("the search of events covers title, category and slug", async () => {
    expect(slugs(await search("grosse", "/events"))).toEqual(["third", "second", "first"]);
    expect(slugs(await search("many sports", "/events"))).toEqual(["many"]);
    expect(slugs(await search("question", "/events"))).toEqual([]);
    expect(slugs(await search("größe", "/events?category=science"))).toEqual(["second"]);
  });

  test("the search returns the same to many concurrent requests", async () => {
    const many = new Client(server, null, 16);
    const found = await Promise.all(
      Array.from({ length: 200 }, (_, i) => many.all(`/markets?q=questio${i % 2 ? "n" : ""}`)),
    );
    for (const markets of found) expect(markets).toEqual(found[0]);
    expect(found[0]).toHaveLength(LISTED);
    many.close();
  });
});

function slugsFromEnd(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${name}-${count - 1 - i}`);
}

const endOf = ({ closes_at }: MarketJson): number => closes_at ?? Number.MAX_SAFE_INTEGER;

describe("the list of markets", () => {
  const sorts: Record<string, (a: MarketJson, b: MarketJson) => number> = {
    created_at: (a, b) => b.id - a.id,
    volume: (a, b) => b.volume - a.volume || b.id - a.id,
    closes_at: (a, b) => endOf(a) - endOf(b) || b.id - a.id,
  };

  test("the list of markets in every sort, with ties, filtered, in pages of any size", async () => {
    const before = await everyMarket();
    for (let n = 0; n < 25; n++) await trade(random.pick(before), random.integer(1, 3));
    const all = await everyMarket();
    const eventId = all.find(({ event_id }) => event_id !== null)!.event_id!;
    const filters: [string, (market: MarketJson) => boolean][] = [
      ["", () => true],
      ["&category=sports", ({ category }) => category === "sports"],
      ["&category=a%20b%26c%3Dd", ({ category }) => category === "a b&c=d"],
      ["&category=null", () => false],
      [`&event_id=${eventId}`, ({ event_id }) => event_id === eventId],
      [`&event_id=${eventId}&category=science`, (m) => m.event_id === eventId && m.category === "science"],
      ["&event_id=9007199254740991", () => false],
    ];
    for (const [sort, compare] of Object.entries(sorts)) {
      for (const [filter, fits] of filters) {
        const expected = slugs(all.filter(fits).sort(compare));
        for (const limit of [1 + random.integer(4, 12), 200]) {
          expect(slugs(await client.all(`/markets?sort=${sort}${filter}`, limit)), sort + filter).toEqual(expected);
        }
      }
    }
    expect(slugs(await client.all("/markets?sort=volume", 1))).toEqual(slugs(all.toSorted(sorts["volume"])));
    for (const market of all) expect(market.volume_24h).toBe(market.volume);
  });

  test("a trade changes the order of the list of markets at once", async () => {
    const last = (await client.all<MarketJson>("/markets?sort=volume")).at(-1)!;
    const top = (await client.get<{ items: MarketJson[] }>("/markets?sort=volume&limit=1")).items[0]!;
    await trade(last, top.volume + 1);
    const [first] = (await client.get<{ items: MarketJson[] }>("/markets?sort=volume&limit=1")).items;
    expect(first).toMatchObject({ slug: last.slug, volume: top.volume + 1 + last.volume });
    expect((await client.get<FeedJson>("/feed?kind=market&size=1")).items[0]).toMatchObject({ slug: last.slug });
  });

  test("the list of markets, paged by volume while trades continue: no market twice, and every untraded market once", async () => {
    const all = await everyMarket();
    const traded = new Set<string>();
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page: { items: MarketJson[]; next_cursor: string | null } = await client.get(
        `/markets?sort=volume&limit=20${query}`,
      );
      seen.push(...slugs(page.items));
      cursor = page.next_cursor;
      for (let n = 0; n < 4; n++) {
        const market = random.pick(all);
        traded.add(market.slug);
        await trade(market, random.integer(1, 5));
      }
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(slugs(all).filter((slug) => !traded.has(slug) && !seen.includes(slug))).toEqual([]);
  });

  test("a cursor of the list of markets is valid for its own list, sort and filters only", async () => {
    const paths = ["/markets?limit=2", "/events?limit=2"].flatMap((path) => {
      return Object.keys(sorts).map((sort) => `${path}&sort=${sort}`);
    });
    for (const from of paths) {
      const { next_cursor } = await client.get<{ next_cursor: string }>(from);
      for (const path of paths) {
        const { code, msg } = await client.request("GET", `${path}&cursor=${next_cursor}`);
        expect([path, code]).toEqual([path, path === from ? 0 : 40000]);
        if (path !== from) expect(msg).toMatch(/^cursor: /);
      }
      expect((await client.request("GET", `${from}&category=sports&cursor=${next_cursor}`)).code).toBe(40000);
    }
    const made = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const wrong = [
      [],
      [1],
      [1, 2],
      [1, 2, 3, 4],
      ["1", 2, 3],
      [1, 2.5, 3],
      [1, null, 3],
      [0, 1, 1],
      [7, 1, 1],
      {},
      1,
      null,
    ];
    for (const cursor of ["x", "%00", "null", ...wrong.map(made)]) {
      for (const path of ["/markets", "/events"]) {
        expect((await client.request("GET", `${path}?cursor=${cursor}`)).code, `${path} ${cursor}`).toBe(40000);
      }
    }
    const listing = new Listing("/markets", { status: "open", sort: "created_at" });
    for (const [key, id] of [[2 ** 53 - 1, 1], [-(2 ** 53 - 1), -5], [0, 0]] as const) {
      expect((await client.request("GET", `/markets?cursor=${listing.cursor(key, id)}`)).code).toBe(0);
    } // biome-ignore format: one pair each
  });
});

describe("events", () => {
  test("events are listed with their markets, newest first, by volume, by category", async () => {
    const markets = await everyMarket();
    const events = await client.all<EventJson>("/events");
    expect(slugs(events)).toEqual(["empty", "many", "third", "second", "first"]);
    const sum = (numbers: number[]): number => numbers.reduce((total, n) => total + n, 0);
    for (const event of events) {
      const own = markets.filter(({ event_id }) => event_id === event.id);
      expect(event.market_count).toBe(own.length);
      expect(event.volume).toBe(sum(own.map(({ volume }) => volume)));
      expect(event.volume_24h).toBe(event.volume);
      if (own.length <= MAX_LISTED_EVENT_MARKETS) expect(event.markets).toEqual(own.reverse());
      else expect(event.markets).toEqual(own.slice(0, MAX_LISTED_EVENT_MARKETS).reverse());
    }
    const byVolume = events.toSorted((a, b) => b.volume - a.volume || b.id - a.id);
    for (const limit of [1, 2, 200]) {
      expect(slugs(await client.all("/events", limit))).toEqual(slugs(events));
      expect(slugs(await client.all("/events?sort=volume", limit))).toEqual(slugs(byVolume));
      expect(slugs(await client.all("/events?sort=closes_at", limit))).toEqual(slugs(events));
    }
    expect(slugs(await client.all("/events?category=sports"))).toEqual(["many", "first"]);
    expect(slugs(await client.all("/events?category=none"))).toEqual([]);
  });

  test("events are found by id and slug, and nothing else is", async () => {
    const [first] = await client.all<EventJson>("/events?q=first");
    // A list shows fewer of its markets than it may have here.
    const own = (await everyMarket()).filter(({ event_id }) => event_id === first!.id).reverse();
    for (const key of [first!.id, "first"])
      expect(await client.get(`/events/${key}`)).toEqual({ ...first, markets: own });
    const wrong = [
      "0",
      "-1",
      "1.5",
      "01",
      "1e0",
      "999",
      "x",
      "9".repeat(17),
      "9".repeat(300),
      "FIRST",
      "%20",
      "listed-0",
    ];
    for (const id of [...wrong, "__proto__", "constructor"]) {
      expect((await client.request("GET", `/events/${id}`)).code, id).toBe(4040);
      if (id !== "listed-0" && id !== "999")
        expect((await client.request("GET", `/markets/${id}`)).code, id).toBe(4040);
    }
  });

  test("events with very many markets are complete in the list of markets", async () => {
    const { id, market_count, markets } = await client.get<EventJson>("/events/many");
    expect([market_count, markets.length]).toEqual([MANY, MAX_EVENT_MARKETS]);
    expect(await client.all(`/markets?event_id=${id}`)).toHaveLength(MANY);
  });
});

describe("the feed", () => {
  test("the feed is filtered by kind, category and words, with the total of what fits", async () => {
    const all = await everyPlace();
    expect(all).toHaveLength(LISTED + Object.keys(TEXTS).length + MANY + 4);
    const volumes = all.map(({ volume_24h }) => volume_24h);
    expect(volumes).toEqual(volumes.toSorted((a, b) => b - a));
    const filters: [string, (place: FeedJson["items"][number]) => boolean][] = [
      ["&kind=market", ({ kind }) => kind === "market"],
      ["&kind=event", ({ kind }) => kind === "event"],
      ["&category=sports", ({ category }) => category === "sports"],
      ["&category=sports&kind=event", ({ category, kind }) => category === "sports" && kind === "event"],
      ["&category=x", () => false],
      ["&q=many", ({ slug }) => slug.startsWith("many")],
      ["&q=many&kind=event", ({ slug, kind }) => slug === "many" && kind === "event"],
      ["&q=many&kind=market&category=of+many", ({ slug, kind }) => slug.startsWith("many") && kind === "market"],
      ["&q=nothing+of+it", () => false],
    ];
    for (const [query, fits] of filters) {
      const expected = slugs(all.filter(fits));
      expect(slugs(await everyPlace(query)), query).toEqual(expected);
      const page = await client.get<FeedJson>(`/feed?size=3&page=2${query}`);
      expect([slugs(page.items), page.total], query).toEqual([expected.slice(3, 6), expected.length]);
    }
  });

  test("the feed groups the markets of events in these, and sorts by what is new and what closes next", async () => {
    const all = await everyPlace();
    const groupedOf = (places: FeedJson["items"]): FeedJson["items"] => {
      const events = new Set(places.filter(({ kind }) => kind === "event").map(({ id }) => id));
      return places.filter(({ kind, event_id }) => kind === "event" || event_id === null || !events.has(event_id));
    };
    const grouped = groupedOf(all);
    expect(grouped.length).toBeLessThan(all.length);
    for (const filter of ["", "&category=sports", "&q=many", "&kind=market", "&kind=event", "&q=question"]) {
      expect(slugs(await everyPlace(`&grouped=true${filter}`))).toEqual(slugs(groupedOf(await everyPlace(filter))));
    }
    expect(slugs(await everyPlace("&grouped=false&sort=volume"))).toEqual(slugs(all));
    // An event closes with its first market.
    const markets = await everyMarket();
    const next = (place: FeedJson["items"][number]): number =>
      place.kind === "market"
        ? endOf(place)
        : Math.min(...markets.filter(({ event_id }) => event_id === place.id).map(endOf));
    for (const [filter, places] of [
      ["", all],
      ["&grouped=true", grouped],
      ["&category=sports", all.filter(({ category }) => category === "sports")],
    ] as const) {
      const created = (await everyPlace(`&sort=created_at${filter}`)).map(({ created_at }) => created_at);
      expect(created).toEqual(places.map(({ created_at }) => created_at).sort((a, b) => b - a));
      const closing = await everyPlace(`&sort=closes_at${filter}`);
      expect(closing.map(next)).toEqual(places.map(next).sort((a, b) => a - b));
    }
  });

  test("the feed has its categories listed, with the number of open markets", async () => {
    const markets = await everyMarket();
    const names = [...new Set(markets.map(({ category }) => category))].filter((each) => each !== null).sort();
    const open = names.map((name) => ({
      category: name,
      open: markets.filter(({ category }) => category === name).length,
    }));
    expect(await client.get("/categories")).toEqual({ items: open });
  });

  test("the feed has a sparkline of traded markets, for those who ask", async () => {
    const outcomesOf = async (query: string): Promise<MarketJson["outcomes"]> =>
      (await everyPlace(query)).flatMap(
        ({ outcomes, markets }) => outcomes ?? markets.flatMap((each) => each.outcomes),
      );
    for (const { last_price, sparkline } of await outcomesOf("&sparklines=true"))
      expect(sparkline).toEqual(last_price === null ? [] : [last_price]);
    for (const { sparkline } of await outcomesOf("&sparklines=false")) expect(sparkline).toBeUndefined();
  });

  test.for([
    "page=0",
    "size=101",
    "size=0",
    "kind=other",
    "kind=",
    "sort=best",
    "grouped=yes",
    "sparklines=",
    "cursor=x",
    "page=1&page=2",
  ])("the feed rejects %s", async (query) => {
    expect((await client.request("GET", `/feed?${query}`)).code).toBe(40000);
  });
});

test("after a restart, lists, search, events and feed reflect the markets' status", async () => {
  const before = await everyMarket();
  const feedBefore = slugs(await everyPlace("&kind=market&category=science"));
  disconnect();
  await server.stop();
  const all = before.map(({ id, slug, event_id }) => ({ id, slug, event: event_id }));
  const ofFirst = all.filter(({ event }) => event === before.find(({ slug }) => slug === "listed-0")!.event_id);
  withDatabase(server.dataDir, (db) => {
    db.exec("UPDATE markets SET status = 3 WHERE event_id = (SELECT id FROM events WHERE slug = 'third')");
    db.exec("UPDATE markets SET status = 2 WHERE slug = 'french'");
    db.exec("UPDATE markets SET status = 6 WHERE slug = 'many-0'");
    db.exec("UPDATE markets SET status = 0 WHERE slug = 'many-1'");
    db.exec("UPDATE markets SET status = 3 WHERE slug IN ('many-128', 'many-129')");
  });
  server = await server.restart();
  connect();
  expect(ofFirst.length).toBeGreaterThan(0);
  const now = await everyMarket();
  const after = new Map(now.map((market) => [market.slug, market]));
  for (const market of before) {
    const found = after.get(market.slug);
    if (found !== undefined) expect(found).toEqual(market);
  }
  expect(slugs(await client.all("/markets?status=halted"))).toEqual(["french"]);
  expect(slugs(await client.all("/markets?status=proposed&sort=volume"))).toEqual(["many-1"]);
  expect(slugs(await client.all("/markets?status=rejected&sort=closes_at"))).toEqual(["many-0"]);
  const third = await client.get<EventJson>("/events/third");
  const closed = await client.all<MarketJson>("/markets?status=closed");
  expect(closed.filter(({ event_id }) => event_id === third.id).reverse()).toEqual(third.markets);
  expect(slugs(await search("cafe"))).toEqual(["decomposed"]);
  expect(slugs(await search("cafe", "/markets?status=halted"))).toEqual(["french"]);
  // Of many markets the open ones are shown, and neither proposals nor what was refused.
  const many = await client.get<EventJson>("/events/many");
  expect(many.market_count).toBe(MANY - 2);
  const open = slugsFromEnd("many", 128).reverse();
  expect(slugs(many.markets)).toEqual(open.slice(-MAX_EVENT_MARKETS));
  // The feed has what is open, in the same order.
  const shown = slugs(await everyPlace("&kind=market&category=science"));
  expect(shown).toEqual(feedBefore.filter((slug) => after.has(slug)));
  const feed = await everyPlace();
  expect(slugs(feed.filter(({ kind }) => kind === "event")).sort()).toEqual(["first", "many", "second"]);
  expect(feed).toHaveLength(now.length + 3);
});
