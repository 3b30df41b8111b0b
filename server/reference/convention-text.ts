/** The introduction of both API documents: conventions and error codes. */

export const LICENSE = { name: "Apache-2.0", identifier: "Apache-2.0" } as const;

export const CONVENTIONS = `
- **Money** is in integer micro-USDC (1 USDC = 1 000 000), **prices** in basis points of 1 USDC per share (1..9999), **quantities**
  in whole shares: one share at \`price\` costs \`price * 100\` micro-USDC. **Times** are integer milliseconds since the Unix epoch.
- **Ids** are positive integers; outcome ids are unique across all markets. In paths, a market or an event can also be named by
  its slug.
- **Names** are snake_case, enumerations lower-case words, except \`side\`: 1 buys, 2 sells. A response field without a value
  is null, never missing. Responses may gain new fields; the exchange rejects unknown fields in requests.
  Of a key that an object has twice, the last value counts.
`.trim();

export const ERROR_TABLE = `
| HTTP | code | When |
|---|---|---|
| 400, 413 | 40000 | invalid or missing parameter (\`msg\` names the field and the bound), or a body that is too large |
| 401 | 40100 | missing, unknown, malformed, revoked or logged-out token; wrong password |
| 401 | 2002 | the token has expired: refresh it |
| 403 | 40300 | KYC tier too low, scope missing, or action not permitted |
| 404 | 4040 | no such resource or path, or another user's order |
| 405 | 40500 | known path, wrong method (\`Allow\`) |
| 409 | 40900 | the name is in use, or the current state doesn't allow the request |
| 422 | 42201, 42202, 42203, 42204 | insufficient balance; insufficient shares; market not open for trading; the account already has its maximum number of live orders |
| 429 | 42900 | rate limit exceeded (\`Retry-After\`) |
| 429 | 42901 | the request would exceed the daily activity limit; \`Retry-After\` counts to 00:00 UTC, \`msg\` states the used amount, the limit and what the order would add |
| 500 | 50000 | internal error, or no response in time: the request may have taken effect, so check before you retry (\`trace_id\`) |
| 503 | 50300 | overloaded, starting, stopping or stopped: the request had no effect (\`Retry-After\`, \`trace_id\`) |
`.trim();
