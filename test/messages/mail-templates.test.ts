/** The texts of mails and text messages. */
import { expect, test } from "vitest";
import {
  passwordChangedMail,
  passwordResetMail,
  phoneCodeText,
  verificationMail,
  withdrawalPaidMail,
} from "../../server/messages/mail-templates.ts";

const TO = "ada@mail.example";
const PHONE = "+447400123456";
const LINK = "https://exchange.example/?token=abc";
const MAILS = {
  verification: verificationMail(TO, LINK, 86_400_000),
  reset: passwordResetMail(TO, LINK, 3_600_000),
  changed: passwordChangedMail(TO),
};

test.for(Object.entries(MAILS))("%s: ASCII, of lines of at most 76 characters", ([, mail]) => {
  expect(mail.to).toBe(TO);
  expect(`${mail.subject}\n${mail.text}`).toMatch(/^[\n\x20-\x7e]*$/);
  for (const line of mail.text.split("\n")) expect(line.length).toBeLessThanOrEqual(76);
});

test("a link has a line of its own, with its lifetime and advice to a person who did not request it", () => {
  for (const mail of [MAILS.verification, MAILS.reset]) {
    expect(mail.text.split("\n").filter((line) => line.includes("http"))).toEqual([LINK]);
    expect(mail.text).toContain("If you did not");
  }
  expect(MAILS.verification.text).toContain("valid for 24 hours");
  expect(MAILS.reset.text).toContain("valid for 1 hour ");
  expect(MAILS.changed.text).toContain("If you did not");
});

test("amounts are written as on the page, exact to the micro-USDC", () => {
  const subjectOf = (micro: number): string => withdrawalPaidMail(TO, micro, "0x1").subject;
  expect(subjectOf(1_234_567_500_000)).toBe("Your withdrawal of 1,234,567.50 USDC was paid");
  expect(subjectOf(12_000_001)).toBe("Your withdrawal of 12.000001 USDC was paid");
});

test("a text message holds the code as digits", () => {
  const { to, body } = phoneCodeText(PHONE, "012345", 600_000);
  expect(to).toBe(PHONE);
  expect(body).toContain("code is 012345. It is valid for 10 minutes. Don't share it.");
  expect(body.match(/\d{6}/g)).toEqual(["012345"]);
  expect(body.length).toBeLessThanOrEqual(160);
});

test.for([
  [1_000, "1 second"],
  [90_000, "90 seconds"],
  [60_000, "1 minute"],
  [5_400_000, "90 minutes"],
  [172_800_000, "48 hours"],
  [2_500, "2 seconds"],
] as const)("%d ms is %s", ([ms, words]) => {
  expect(phoneCodeText(PHONE, "123456", ms).body).toContain(`valid for ${words}.`);
});
