/** The environment and the seed file: every wrong value is rejected with a line that names the variable. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readConfig } from "../../server/bootstrap/config.ts";
import { Environment, misspelled } from "../../server/bootstrap/environment.ts";
import { readSeed } from "../../server/bootstrap/seed.ts";
import { ConfigError } from "../../server/errors.ts";
import { DEFAULT_RATE_LIMITS } from "../../server/http/rate-limiter.ts";

const folder = mkdtempSync(join(tmpdir(), "exchange-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" || content instanceof Uint8Array ? content : JSON.stringify(content));
  return path;
}

test("without any variable, the documented defaults apply", () => {
  const config = readConfig({});
  expect(config).toMatchObject({
    network: true,
    host: "127.0.0.1",
    port: 8080,
    publicUrl: "http://127.0.0.1:8080",
    durability: "full",
    rateLimits: DEFAULT_RATE_LIMITS,
    trustedProxies: [],
    seedFile: null,
    mergeFeeBps: 0,
    smtpUrl: null,
    mailFrom: "Prediction Exchange <no-reply@localhost>",
    smsWebhookUrl: null,
    socialProviders: [],
    accessTtlMs: 900_000,
    refreshTtlMs: 2_592_000_000,
    logLevel: "info",
    tls: null,
    operatorsNeedSecondFactor: false,
  });
  expect(config.dataDir).toBe(join(process.cwd(), "data"));
  expect(config.engineThreads).toBeGreaterThanOrEqual(1);
  const empty = { HOST: "", PORT: "", DATA_DIR: "", ENGINE_THREADS: "", DURABILITY: "", SEED_FILE: "", TLS_CERT: "" };
  expect(readConfig(empty)).toEqual(config);
});

test("the public URL has an IPv6 host in brackets, and may end with or without a slash", () => {
  expect(readConfig({ HOST: "::1", PORT: "1" }).publicUrl).toBe("http://[::1]:1");
  expect(readConfig({ PUBLIC_URL: "https://example.com//" }).publicUrl).toBe("https://example.com");
  expect(readConfig({ PUBLIC_URL: "HTTPS://Exchange.Example.com:443" }).publicUrl).toBe("https://exchange.example.com");
  expect(readConfig({ PUBLIC_URL: "http://EXAMPLE.com:8080/Trade/" }).publicUrl).toBe("http://example.com:8080/Trade");
  expect(() => readConfig({ PUBLIC_URL: "https://me:x@example.com" })).toThrow(/^PUBLIC_URL must have no user name$/);
});

test("operators need a second factor unless the exchange listens on the loopback interface only, or a variable decides", () => {
  const needed = (env: NodeJS.ProcessEnv): boolean => readConfig(env).operatorsNeedSecondFactor;
  for (const HOST of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) {
    expect([HOST, needed({ HOST })]).toEqual([HOST, false]);
    expect(needed({ HOST, REQUIRE_OPERATOR_SECOND_FACTOR: "on" })).toBe(true);
  }
  // Only an address of the loopback network counts, as a name may look like one.
  for (const HOST of [
    "0.0.0.0",
    "::",
    "192.0.2.1",
    "127.example.com",
    "exchange.example.com",
    "localhost.example.com",
  ]) {
    expect([HOST, needed({ HOST })]).toEqual([HOST, true]);
    expect(needed({ HOST, REQUIRE_OPERATOR_SECOND_FACTOR: "off" })).toBe(false);
  }
});

test("mails come from the public URL's host if it has a name, or from MAIL_FROM", () => {
  const from = (env: NodeJS.ProcessEnv): string => readConfig(env).mailFrom;
  expect(from({ PUBLIC_URL: "https://trade.example.com/x" })).toBe("Prediction Exchange <no-reply@trade.example.com>");
  expect(from({ PUBLIC_URL: "https://192.0.2.1" })).toBe("Prediction Exchange <no-reply@localhost>");
  expect(from({ MAIL_FROM: "Desk <desk@example.com>" })).toBe("Desk <desk@example.com>");
});

test("no message repeats a secret", () => {
  for (const [name, value] of [
    ["SMTP_URL", "http://user:hunter2@mail.example.com"],
    ["SMS_WEBHOOK_URL", "ftp://example.com/?key=hunter2"],
    ["SOCIAL_PROVIDERS", '{"google":{"client_secret":"hunter2"}}'],
  ] as const) {
    expect(() => readConfig({ [name]: value })).toThrow(/^(?!.*hunter2)/);
    expect(() => readConfig({ [name]: value })).toThrow(name);
  }
});

describe("a wrong value names its variable", () => {
  const wrong: Record<string, readonly string[]> = {
    HOST: ["256.0.0.1", "a b"],
    PORT: ["http", "65536", "-1", "80.5", "0x50", " 80"],
    PUBLIC_URL: ["exchange", "//x", "ftp://x", "http://x/?a=1", "http://x/#a"],
    SMTP_URL: ["mail.example.com", "http://mail.example.com", "smtp://mail.example.com/?logger=true"],
    SMS_WEBHOOK_URL: ["sms", "smtp://x", "https://user:password@example.com/"],
    SOCIAL_PROVIDERS: ["google", "[]", '{"google":{}}', '{"google":{"issuer":"http://example.com"}}'],
    ACCESS_TOKEN_TTL: ["0", "-1", "1.5", "86401", "15m"],
    REFRESH_TOKEN_TTL: ["0", "31536001", "30d"],
    NETWORK: ["no", "OFF", "0"],
    ENGINE_THREADS: ["0", "65", "two", "1.5"],
    DURABILITY: ["FULL", "none"],
    REQUIRE_OPERATOR_SECOND_FACTOR: ["true", "ON", "1"],
    RATE_LIMITS: ["maybe", "[]", "null", "1", "{", "true"],
    TRUSTED_PROXIES: ["proxy", "10.0.0.0/33", "::/129", "10.0.0.1,", ",", "10.0.0.1 10.0.0.2", "fe80::1%eth0"],
    LOG_LEVEL: ["loud"],
    MAIL_INTERVAL: ["-1", "1.5", "86401", "1m"],
    MERGE_FEE: ["-1", "1.5", "1001", "1 %"],
    SEED_FILE: ["/nowhere/seed.json"],
    DEPOSIT_INSTRUCTIONS: [
      "/nowhere/pay.txt",
      ...["", " \n", "x".repeat(4_001), "a\u0000b", "Reference: {ref}"].map((text, i) => file(`pay-${i}.txt`, text)),
      file("pay-latin-1.txt", Buffer.from([0x7a, 0xe4, 0x68])),
    ],
    TWO_PERSON_RULE: ["deposit", "withdrawals,terms,", "all", "deposits;terms", "Terms"],
    WITHDRAWAL_ADDRESS: ["(", "[a-", "\\", "(a+)+", "([a-z]|[a-f])*x", "x".repeat(1_001)],
    TLS_CERT: ["/nowhere/cert.pem", file("cert.pem", "")],
    TLS_KEY: ["/nowhere/key.pem", file("key.pem", "")],
  };
  const cases = Object.entries(wrong).flatMap(([name, values]) => values.map((value) => [name, value] as const));
  test.for(cases)("a wrong value names its variable: %s=%s", ([name, value]) => {
    expect(() => readConfig({ [name]: value })).toThrow(ConfigError);
    expect(() => readConfig({ [name]: value })).toThrow(name);
  });
});

describe("what env files leave around a value", () => {
  /** A valid value of each variable. */
  const valid: Record<string, string> = {
    ...{ NETWORK: "on", HOST: "127.0.0.1", PORT: "8080", PUBLIC_URL: "https://example.com", DATA_DIR: "/data" },
    ...{ TLS_CERT: file("c.pem", ""), TLS_KEY: file("k.pem", ""), TRUSTED_PROXIES: "10.0.0.1", ENGINE_THREADS: "1" },
    ...{
      DURABILITY: "full",
      LOG_DAYS: "7",
      HISTORY: "on",
      HISTORY_DAYS: "0",
      SEED_FILE: file("seed.json", {}),
      LOG_LEVEL: "info",
      RATE_LIMITS: "on",
    },
    ...{ MAX_SOCKETS_PER_ADDRESS: "5", MERGE_FEE: "0", WITHDRAWAL_ADDRESS: "evm", TWO_PERSON_RULE: "terms" },
    ...{ MAIL_INTERVAL: "60", DEPOSIT_INSTRUCTIONS: file("pay.txt", "Pay here.") },
    ...{ REQUIRE_OPERATOR_SECOND_FACTOR: "on", ACCESS_TOKEN_TTL: "900", REFRESH_TOKEN_TTL: "900" },
    ...{ SOCIAL_PROVIDERS: "{}", SMTP_URL: "smtp://mail.example.com", MAIL_FROM: "Desk <desk@example.com>" },
    SMS_WEBHOOK_URL: "https://sms.example.com",
    ...{
      STANDBY_NATS: "nats://10.0.0.1",
      STANDBY_NATS_CREDS: file("box.creds", ""),
      STANDBY_NATS_CA: file("ca.pem", ""),
    },
    ...{ STANDBY_NATS_CERT: file("box.pem", ""), STANDBY_NATS_KEY: file("box.key", ""), STANDBY_NAME: "exchange" },
    ...{
      STANDBY_BOX: "a",
      STANDBY_URL: "https://a.example.com",
      STANDBY_ACK: "stream",
      STANDBY_LOST: "wait",
      STANDBY_TAKEOVER: "manual",
      STANDBY_SECRET: "x".repeat(32),
      STANDBY_REPLICAS: "3",
      STANDBY_MONITOR: "http://10.0.0.1:8222",
    },
  };
  const wrappings: readonly ((value: string) => string)[] = [
    ...[(value: string) => `"${value}"`, (value: string) => `'${value}'`, (value: string) => `\u201c${value}\u201d`],
    ...[(value: string) => `${value}\r`, (value: string) => `${value}\n`, (value: string) => ` ${value}`],
    ...[(value: string) => `${value} `, (value: string) => `\t${value}`, (value: string) => `${value}\u00a0`],
    ...[(value: string) => `\ufeff${value}`, (value: string) => `"${value}`, (value: string) => `"${value}"\r`],
  ];

  test("every variable is covered by what env files leave around a value", () => {
    expect(Object.keys(valid).sort()).toEqual(Object.keys(Environment.properties).sort());
  });

  test.each(Object.entries(valid))("%s around a value is rejected with it, by name", (name, value) => {
    for (const wrap of wrappings) {
      const text = new RegExp(`^${name} must be one line without quotes or white space around it`);
      expect(() => readConfig({ [name]: wrap(value) })).toThrow(ConfigError);
      expect(() => readConfig({ [name]: wrap(value) })).toThrow(text);
    }
  });

  test("a value may have quotes inside: a sender's quoted name, JSON over several lines", () => {
    const from = '"Exchange, Inc." <desk@example.com>';
    expect(readConfig({ MAIL_FROM: from }).mailFrom).toBe(from);
    expect(readConfig({ RATE_LIMITS: '{\n  "user": 5\n}' }).rateLimits).toMatchObject({ user: 5 });
    expect(() => readConfig({ HOST: "a\nb" })).toThrow(/^HOST must be one line/);
  });

  test("no message about a variable repeats a secret", () => {
    for (const name of ["SMTP_URL", "SMS_WEBHOOK_URL", "SOCIAL_PROVIDERS"]) {
      expect(() => readConfig({ [name]: '"hunter2"' })).toThrow(/^(?!.*hunter2)/);
    }
  });
});

test("a name that is nearly ours is found, and others aren't", () => {
  const found = (...names: string[]): unknown[] =>
    misspelled(Object.fromEntries(names.map((name) => [name, "x"]))).map(({ name, meant }) => [name, meant]);
  expect(found("TWO_PERSON_RULES", "TRUSTED_PROXY", "DATADIR", "PUBLIC_ULR", "PORTS", "two_person_rule")).toEqual([
    ["TWO_PERSON_RULES", "TWO_PERSON_RULE"],
    ["TRUSTED_PROXY", "TRUSTED_PROXIES"],
    ["DATADIR", "DATA_DIR"],
    ["PUBLIC_ULR", "PUBLIC_URL"],
    ["PORTS", "PORT"],
    ["two_person_rule", "TWO_PERSON_RULE"],
  ]);
  expect(found("EXCHANGE_PORT", "EXCHANGE_THING", "PREDICTION_EXCHANGE_DATA_DIR")).toEqual([
    ["EXCHANGE_PORT", "PORT"],
    ["EXCHANGE_THING", null],
    ["PREDICTION_EXCHANGE_DATA_DIR", "DATA_DIR"],
  ]);
  const usual = ["HOME", "PATH", "PWD", "TERM", "HOSTNAME", "HOSTTYPE", "LOGNAME", "NODE_ENV", "NODE_OPTIONS", "SHELL"];
  expect(found(...usual, "TZ", "LANG", "MAIL", "USER", "TMPDIR", "npm_config_cache", "INVOCATION_ID")).toEqual([]);
  expect(found(...Object.keys(Environment.properties))).toEqual([]);
});

test("rate limits are switched off, or overridden one by one", () => {
  expect(readConfig({ RATE_LIMITS: "off" }).rateLimits).toBeNull();
  expect(readConfig({ RATE_LIMITS: "{}" }).rateLimits).toEqual(DEFAULT_RATE_LIMITS);
  const all = {
    user: 1,
    address: 2,
    order_user: 3,
    order_address: 4,
    auth_identifier: 5,
    refresh_address: 1e9,
    registration_address: 7,
  };
  expect(readConfig({ RATE_LIMITS: JSON.stringify(all) }).rateLimits).toEqual({
    user: 1,
    address: 2,
    orderUser: 3,
    orderAddress: 4,
    authIdentifier: 5,
    refreshAddress: 1e9,
    registrationAddress: 7,
  });
  expect(readConfig({ RATE_LIMITS: '{"order_user":300}' }).rateLimits).toEqual({
    ...DEFAULT_RATE_LIMITS,
    orderUser: 300,
  });
});

test.for([
  ["0", "order_user"],
  ["-1", "order_user"],
  ["1.5", "user"],
  ["1000000001", "address"],
  ['"30"', "refresh_address"],
  ["null", "auth_identifier"],
  ["1", "orderUser"],
  ["1", "orders"],
  ["1", "constructor"],
  ["1", "__proto__"],
] as const)("RATE_LIMITS with the value %s names its key %s", ([value, key]) => {
  const read = (): unknown => readConfig({ RATE_LIMITS: `{"${key}":${value}}` });
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(new RegExp(`^RATE_LIMITS: "?${key}"? `));
});

test("trusted proxies are a list of addresses and ranges", () => {
  expect(readConfig({ TRUSTED_PROXIES: "" }).trustedProxies).toEqual([]);
  const { trustedProxies } = readConfig({ TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8,2001:db8::/32 , ::1" });
  expect(trustedProxies).toEqual(["127.0.0.1", "10.0.0.0/8", "2001:db8::/32", "::1"]);
});

describe("a wrong seed names the variable and the field", () => {
  const market = { slug: "a", question: "?", outcomes: ["x", "y"] };
  const user = { email: "a@b.c" };
  const pat = { name: "x", scopes: ["orders:write"], token: "t" };
  const cases: [unknown, RegExp][] = [
    ["{", /JSON/],
    ["[]", /body/],
    [{ user: [] }, /user: unknown field/],
    [{ users: [{}] }, /users.0.email: required/],
    [{ users: [{ email: "nobody" }] }, /users.0.email/],
    [{ users: [{ ...user, deposit: -1 }] }, /users.0.deposit/],
    [{ users: [{ ...user, deposit: 0.5 }] }, /users.0.deposit/],
    [{ users: [{ ...user, kyc_tier: 3 }] }, /users.0.kyc_tier/],
    [{ users: [{ ...user, role: "king" }] }, /users.0.role/],
    [{ users: [{ ...user, terms: { trading_fee: 1_001 } }] }, /users.0.terms.trading_fee/],
    [{ users: [{ ...user, terms: { max_live_orders: 200_001 } }] }, /users.0.terms.max_live_orders/],
    [{ users: [{ ...user, terms: { fee: 1 } }] }, /users.0.terms.fee: unknown field/],
    [{ users: [{ ...user, pats: [{ ...pat, scopes: ["all"] }] }] }, /users.0.pats.0.scopes/],
    [{ users: [{ ...user, pats: [{ ...pat, token: "" }] }] }, /users.0.pats.0.token/],
    [{ markets: [{ ...market, outcomes: ["x"] }] }, /markets.0.outcomes/],
    [{ markets: [{ ...market, outcomes: Array(33).fill("x") }] }, /markets.0.outcomes/],
    [{ markets: [{ ...market, slug: "12" }] }, /markets.0.slug/],
    [{ markets: [{ ...market, slug: "a/b" }] }, /markets.0.slug/],
    [{ markets: [{ ...market, closes_at: "soon" }] }, /markets.0.closes_at/],
    [{ events: [{ slug: "a" }] }, /events.0.title: required/],
  ];
  test.for(cases)("a wrong seed names the variable and the field: %j", ([seed, message]) => {
    const path = file("seed.json", seed);
    expect(() => readSeed(path)).toThrow(ConfigError);
    expect(() => readSeed(path)).toThrow(new RegExp(`^SEED_FILE: .*${message.source}`));
  });

  test("a seed in Latin-1, and a variable, are refused before a name is changed for good", () => {
    const path = file("latin.json", {});
    writeFileSync(path, JSON.stringify({ events: [{ slug: "ne", title: "N\u00e9" }] }), "latin1");
    expect(() => readSeed(path)).toThrow(/^SEED_FILE: .*latin.json: must be text in UTF-8$/);
    expect(() => readConfig({ MAIL_FROM: "N\ufffd <a@example.com>" })).toThrow("MAIL_FROM must be text in UTF-8");
  });
});

test("TWO_PERSON_RULE accepts any of its names, WITHDRAWAL_ADDRESS the word for EVM addresses or an expression", () => {
  expect([...readConfig({}).twoPersonRule]).toEqual([]);
  const all = "withdrawals, resolutions,deposits,terms";
  expect([...readConfig({ TWO_PERSON_RULE: all }).twoPersonRule].sort()).toEqual(all.split(/, ?/).sort());
  expect([...readConfig({ TWO_PERSON_RULE: "terms" }).twoPersonRule]).toEqual(["terms"]);
  const takes = (rule: string, address: string): boolean => {
    try {
      readConfig({ WITHDRAWAL_ADDRESS: rule }).withdrawalAddress.check(address);
      return true;
    } catch (error) {
      expect((error as Error).message).toMatch(/^address: /);
      return false;
    }
  };
  // Vectors of EIP-55: all capitals, all lower case, mixed.
  const evm = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
  ];
  for (const rule of ["", "evm"]) {
    for (const address of evm) expect([address, takes(rule, address)]).toEqual([address, true]);
    for (const address of [
      "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
      "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
      "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
      "0X52908400098527886E0F7030069857D2E4169EE7",
      "0xde709f2102306220921060314715629080e2fb7",
      "0xde709f2102306220921060314715629080e2fb777",
      "0xge709f2102306220921060314715629080e2fb77",
      "0xde709f2102306220921060314715629080e2fb77\n",
      "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
      "",
    ]) {
      expect([address, takes(rule, address)]).toEqual([address, false]);
    }
  }
  // The whole address must match, even if the expression has alternatives.
  expect(["bc1q0", "tb1q0", "xbc1q0", "bc1q0!"].map((each) => takes("bc1[a-z0-9]+|tb1[a-z0-9]+", each))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  // An expression that is slow on an address unlike the probes at the start is stopped, and rejects the address.
  const slow = "k(?:[jk]|j)+(?:j|[jk])+w";
  const began = performance.now();
  expect(takes(slow, `k${"j".repeat(120)}`)).toBe(false);
  expect(performance.now() - began).toBeLessThan(5_000);
});
