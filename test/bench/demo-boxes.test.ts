/** The demo's bots with two boxes: they go on at the one that trades. */
import { expect, onTestFinished, test } from "vitest";
import { Api, Boxes } from "../../bench/demo/api.ts";
import { freePort } from "../../bench/support/free-port.ts";
import { TestServer } from "../support/server.ts";

const { signal } = new AbortController();

test("a request goes to the other box where one isn't there, and all bots stay with the one that is", async () => {
  const server = await TestServer.start();
  onTestFinished(() => server.kill());
  const gone = `http://127.0.0.1:${await freePort()}`;
  const boxes = new Boxes([gone, server.root]);
  const bots = [1, 2].map((n) => new Api(`bot-${n}`, boxes, null, signal));
  for (const bot of bots) expect((await bot.call("GET", "/markets")).code).toBe(0);
  expect(boxes.current).toBe(server.root);
  // One that heard later of the first box's end moves nobody back.
  boxes.leave(gone);
  expect(boxes.current).toBe(server.root);
  await server.stop();
});

test("with one box a request ends after a few tries", async () => {
  const bot = new Api("bot", new Boxes([`http://127.0.0.1:${await freePort()}`]), null, signal);
  expect(await bot.call("GET", "/markets")).toMatchObject({ code: -1, msg: "the connection broke" });
});
