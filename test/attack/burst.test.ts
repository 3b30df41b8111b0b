/** A burst of thousands of messages, as after a signal or a pause of the gateway, is not limited as a flood. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { expectEndsWell } from "../support/checks.ts";
import { BUY, terms } from "../support/terms.ts";
import { World } from "../support/world.ts";

const ORDERS = 12_000;

let world: World;
beforeAll(async () => {
  world = await World.start({ users: 1, markets: [2] });
});
afterAll(() => expectEndsWell(world));

test("every order of a burst of thousands gets a response", async () => {
  const [user, market] = [world.user(), world.market()];
  const socket = new WebSocket(`ws://127.0.0.1:${world.server.port}/api/v1/ws?token=${user.token}`);
  await new Promise((resolve) => socket.once("open", resolve));
  let answers = 0;
  const over = new Promise<number>((resolve) => {
    socket.once("close", resolve);
    socket.on("message", (text) => {
      if (String(text).startsWith('{"id":') && ++answers === ORDERS) resolve(0);
    });
  });
  const data = terms(market, 0, BUY, 1, 1, { time_in_force: "ioc" });
  process.kill(world.server.pid, "SIGSTOP");
  for (let id = 1; id <= ORDERS; id++) socket.send(JSON.stringify({ op: "order.place", id, data }));
  process.kill(world.server.pid, "SIGCONT");
  expect({ closed: await over, answers }).toEqual({ closed: 0, answers: ORDERS });
  socket.terminate();
});
