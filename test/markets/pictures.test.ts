/** Operators' pictures of markets: what is taken, what is made of it, where it is served, and what outlives what. */
import { readFileSync } from "node:fs";
import { imageSize } from "image-size";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_PICTURE_BYTES, MAX_PICTURE_SIDE, MAX_STORED_PICTURE_BYTES } from "../../server/markets/limits.ts";
import { expectEndsWell } from "../support/checks.ts";
import type { Answer, Client, MarketJson } from "../support/client.ts";
import { PASSWORD, signIn } from "../support/identity.ts";
import { asOperator, auditOf, OPERATORS, settle, take } from "../support/markets.ts";
import { pictureFile } from "../support/pictures.ts";
import { expectRefused } from "../support/trading.ts";
import { World } from "../support/world.ts";

let world: World;
let operator: Client;

beforeAll(async () => {
  const named = { ...OPERATORS, trader: { password: PASSWORD } };
  world = await World.start({ users: 1, named, markets: Array.from({ length: 8 }, () => 2) });
  operator = await asOperator(world);
});
afterAll(async () => {
  operator.close();
  await expectEndsWell(world);
});

const change = ({ id }: { readonly id: number }, picture: unknown, client = operator): Promise<Answer<MarketJson>> =>
  client.request("PATCH", `/admin/markets/${id}`, { body: { picture } });

async function changed(market: { readonly id: number }, picture: string | null): Promise<MarketJson> {
  const { code, msg, data } = await change(market, picture);
  expect(code, msg).toBe(0);
  return data;
}

const pathOf = ({ id }: { readonly id: number }): Promise<string | null> =>
  world
    .anonymous()
    .get<MarketJson>(`/markets/${id}`)
    .then(({ picture }) => picture);

async function fetched(path: string): Promise<{ response: Response; bytes: Buffer }> {
  const response = await fetch(`http://127.0.0.1:${world.server.port}${path}`);
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

/** A PNG file that says it has this many pixels, and has hardly any. */
function claiming(width: number, height: number): string {
  const file = Buffer.from(pictureFile(), "base64");
  file.writeUInt32BE(width, 16);
  file.writeUInt32BE(height, 20);
  return file.toString("base64");
}

describe("a picture", () => {
  test("a picture is served as a small square, under a path that changes with it", async () => {
    const market = world.market();
    expect(await pathOf(market)).toBe(null);
    const { picture } = await changed(market, pictureFile());
    expect(picture).toMatch(new RegExp(`^/api/v1/markets/${market.id}/pictures/[0-9a-f]{32}$`));
    const { response, bytes } = await fetched(picture!);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("image/webp");
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(imageSize(bytes)).toMatchObject({ type: "webp", width: 96, height: 96 });
    expect(bytes.length).toBeLessThanOrEqual(MAX_STORED_PICTURE_BYTES);
    expect((await fetch(`http://127.0.0.1:${world.server.port}${picture}`, { method: "HEAD" })).status).toBe(200);

    // By the slug too, and the list has the path.
    const { items } = await world.anonymous().get<{ items: MarketJson[] }>("/markets");
    expect(items.find(({ id }) => id === market.id)).toMatchObject({ picture });
    expect((await changed(market, pictureFile())).picture).toBe(picture);
    const other = (await changed(market, pictureFile("icon-maskable-512.png"))).picture!;
    expect(other).not.toBe(picture);
    expect((await fetched(picture!)).response.status).toBe(404);
    expect((await fetched(other)).response.status).toBe(200);
    // The texts change without it.
    await operator.data("PATCH", `/admin/markets/${market.id}`, { description: "Another text." });
    expect(await pathOf(market)).toBe(other);
  });

  test("a picture can be a WebP or JPEG file; an oblong one is cut to the square in its middle", async () => {
    const market = world.market();
    const png = (await changed(market, pictureFile())).picture!;
    const { bytes } = await fetched(png);
    expect((await changed(market, bytes.toString("base64"))).picture).not.toBe(png);
    // 64 x 32 pixels: red, with a blue square of 32 in the middle.
    const oblong = readFileSync(new URL("oblong.jpg", import.meta.url), "base64");
    const cut = (await fetched((await changed(market, oblong)).picture!)).bytes;
    expect(imageSize(cut)).toMatchObject({ type: "webp", width: 96, height: 96 });
    const plain = readFileSync(new URL("blue.jpg", import.meta.url), "base64");
    // All that is left of it is blue: it takes hardly more bytes than a plain blue square.
    const blue = (await fetched((await changed(market, plain)).picture!)).bytes;
    expect(cut.length).toBeLessThan(blue.length + 20);
  });

  test("a picture can be removed", async () => {
    const market = world.market();
    const { picture } = await changed(market, pictureFile());
    expect((await changed(market, null)).picture).toBe(null);
    expect((await fetched(picture!)).response.status).toBe(404);
    expect((await changed(market, null)).picture).toBe(null);
  });

  test("a picture reaches followers of the market, and the audit log as a hash", async () => {
    const market = world.market();
    const socket = await world.socket(world.user());
    await socket.subscribe("markets", market.id);
    const { picture } = await changed(market, pictureFile());
    await socket.frame<MarketJson>("market.updated", (data) => data.picture === picture);
    await socket.close();
    expect(auditOf(world, market).at(-1)).toMatchObject({
      action: "market.describe",
      details: { picture: picture!.split("/").at(-1) },
    });
  });

  test("a picture doesn't keep a market from being halted meanwhile", async () => {
    const market = world.market();
    const [{ picture }, halted] = await Promise.all([changed(market, pictureFile()), take(operator, market, "halt")]);
    expect(picture).not.toBe(null);
    expect(halted.status).toBe("halted");
  });

  test("a picture outlives a restart", async () => {
    const market = world.market();
    const { picture } = await changed(market, pictureFile());
    const before = await fetched(picture!);
    await world.server.stop();
    world.server = await world.server.restart();
    operator.close();
    operator = await asOperator(world);
    expect(await pathOf(market)).toBe(picture);
    expect((await fetched(picture!)).bytes).toEqual(before.bytes);
  });
});

describe("refused, and nothing changes", () => {
  const WRONG: readonly (readonly [string, unknown])[] = [
    ["text", Buffer.from("a picture").toString("base64")],
    ["an SVG file", readFileSync(new URL("../../server/web/public/favicon.svg", import.meta.url), "base64")],
    ["a GIF file", "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"],
    ["half a file", Buffer.from(pictureFile(), "base64").subarray(0, 6_000).toString("base64")],
    ["a file whose picture would fill the memory", claiming(60_000, 60_000)],
    ["a side that is too long", claiming(MAX_PICTURE_SIDE + 1, 1)],
    ["no pixels", claiming(0, 0)],
    ["too many bytes", Buffer.alloc(MAX_PICTURE_BYTES + 3).toString("base64")],
    ["an address", "https://example.com/picture.png"],
    ["base64 with line breaks", `${pictureFile().slice(0, 76)}\n${pictureFile().slice(76)}`],
    ["nothing", ""],
    ["a number", 5],
  ];
  test.for(WRONG)("a picture is rejected, and nothing changes: %s", async ([, picture]) => {
    const market = world.markets[0]!;
    const before = await pathOf(market);
    await expectRefused(change(market, picture), 400, 40000, /picture/);
    expect(await pathOf(market)).toBe(before);
  });

  test("a picture is rejected for a market that has ended, from a stranger, and for hashes of no picture", async () => {
    const market = world.market();
    const trader = (await signIn(world.server, "trader@example.com")).client;
    await expectRefused(change(market, pictureFile(), trader), 403, 40300);
    trader.close();
    await settle(operator, market, null);
    await expectRefused(change(market, pictureFile()), 409, 40900);
    for (const hash of ["0".repeat(32), "null", "%00", "1"]) {
      const path = `/api/v1/markets/${market.id}/pictures/${hash}`;
      expect((await fetch(`http://127.0.0.1:${world.server.port}${path}`)).status).toBe(404);
    }
  });
});
