/** Boxes compare their settings by fingerprints, and name those that differ. */
import { expect, test } from "vitest";
import { Seal } from "../../server/replication/seal.ts";
import { differing, printSettings } from "../../server/replication/setting-prints.ts";

const seal = new Seal("secret".repeat(6), "exchange");
const OWN = { MERGE_FEE: "0", SMTP_URL: "smtp://me:password@mail.example.com", SMS_WEBHOOK_URL: "" };
const own = printSettings(OWN, seal);

test("the names of the settings that differ, sorted", () => {
  expect(differing(own, printSettings(OWN, seal))).toEqual([]);
  const other = { MERGE_FEE: "5", SMTP_URL: "smtp://me:other@mail.example.com", SMS_WEBHOOK_URL: "" };
  expect(differing(own, printSettings(other, seal))).toEqual(["MERGE_FEE", "SMTP_URL"]);
  expect(differing(own, printSettings({ ...OWN, SMS_WEBHOOK_URL: "https://sms.example.com" }, seal))).toEqual([
    "SMS_WEBHOOK_URL",
  ]);
});

test("a setting that one of them doesn't know belongs to another version", () => {
  expect(differing(own, printSettings({ MERGE_FEE: "0", LATER: "1" }, seal))).toEqual([]);
  for (const other of [{}, undefined, null, 7, [own]]) expect(differing(own, other)).toEqual([]);
});

test("with another secret that is all", () => {
  const other = new Seal("another secret of thirty-two characters", "exchange");
  expect(differing(own, printSettings({ ...OWN, MERGE_FEE: "5" }, other))).toEqual(["STANDBY_SECRET"]);
});

test("equal values of two settings have different fingerprints, and no value is in them", () => {
  const { a, b } = printSettings({ a: "1", b: "1" }, seal);
  expect(a).not.toBe(b);
  expect(JSON.stringify(own)).not.toContain("password");
});
