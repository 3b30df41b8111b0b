/** How users pay money in: the operators' text, and references that name a user and reveal a mistyped one. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { depositReference, userOfReference } from "../../server/wallet/deposit-reference.ts";
import { expectEndsWell } from "../support/checks.ts";
import { temporaryFolder } from "../support/server.ts";
import { expectRefused } from "../support/trading.ts";
import { World } from "../support/world.ts";

interface Instructions {
  readonly reference: string;
  readonly instructions: string | null;
}

describe("a reference", () => {
  test("a deposit's reference is the standard's: its check digits are those of ISO 11649", () => {
    // PX is 25 33, RF is 27 15: 98 - (2533 1 2715 00 mod 97) is 14.
    expect(depositReference(1)).toBe("RF14PX1");
    expect(userOfReference(depositReference(20_418))).toBe(20_418);
    expect(userOfReference(" rf14 px1 ")).toBe(1);
  });

  test("a deposit's reference with one wrong or two swapped characters names nobody", () => {
    for (const id of [1, 42, 20_418, 999_999_999]) {
      const reference = depositReference(id);
      for (let at = 2; at < reference.length; at++) {
        for (const other of "0123456789ABX") {
          const wrong = reference.slice(0, at) + other + reference.slice(at + 1);
          if (wrong !== reference) expect(userOfReference(wrong)).toBe(null);
        }
        const [a = "", b = ""] = reference.slice(at, at + 2);
        const swapped = reference.slice(0, at) + b + a + reference.slice(at + 2);
        if (swapped !== reference) expect(userOfReference(swapped)).toBe(null);
      }
    }
    for (const text of ["", "RF", "PX1", "RF18539007547034", `${depositReference(1)}x`, "RF00PX0"]) {
      expect(userOfReference(text)).toBe(null);
    }
  });
});

describe("instructions", () => {
  let world: World;
  let plain: World;
  beforeAll(async () => {
    const file = join(temporaryFolder(), "pay.txt");
    writeFileSync(file, "Zahlen Sie hier ein:\r\n\r\nIBAN: DE02 1203\r\nZweck: {reference} ({reference})\r\n");
    const named = { reader: { scopes: [["portfolio:read"], ["orders:write"]] } };
    world = await World.start({ users: 2, named, markets: [], env: { DEPOSIT_INSTRUCTIONS: file } });
    plain = await World.start({ users: 1, markets: [] });
  });
  afterAll(async () => {
    await expectEndsWell(world);
    await expectEndsWell(plain);
  });

  test("deposit instructions are the operators' text with the caller's reference", async () => {
    const references = [];
    for (const client of [world.user(), world.user(), world.client("reader")]) {
      const { id } = await client.get<{ id: number }>("/me");
      const { reference, instructions } = await client.get<Instructions>("/wallet/deposit-instructions");
      expect(userOfReference(reference)).toBe(id);
      expect(instructions).toBe(`Zahlen Sie hier ein:\n\nIBAN: DE02 1203\nZweck: ${reference} (${reference})`);
      references.push(reference);
    }
    expect(new Set(references).size).toBe(3);
  });

  test("deposit instructions may be missing: the reference is there", async () => {
    const user = plain.user();
    const { id } = await user.get<{ id: number }>("/me");
    const given = await user.get<Instructions>("/wallet/deposit-instructions");
    expect(given).toEqual({ reference: depositReference(id), instructions: null });
  });

  test("deposit instructions need a token that may read the portfolio", async () => {
    const path = "/wallet/deposit-instructions";
    await expectRefused(world.client("reader", 1).request("GET", path), 403, 40300);
    await expectRefused(world.anonymous().request("GET", path), 401, 40100);
  });
});
