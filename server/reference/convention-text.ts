/** What both API documents say before anything else. */

export const LICENSE = { name: "Apache-2.0", identifier: "Apache-2.0" } as const;

export const CONVENTIONS = `
- **Money** is in integer micro-USDC (1 USDC = 1 000 000), **prices** in basis points of 1 USDC a share (1..9999), **quantities**
  in whole shares: one share at \`price\` costs \`price * 100\` micro-USDC. **Times** are integer milliseconds since the Unix epoch.
- **Ids** are positive integers; outcome ids are unique over all markets. Where a market or an event is named in a path its slug
  will do as well.
- **Names** are snake_case, enumerations lower-case words, except \`side\`: 1 buys, 2 sells. A field of an answer without a value
  is null, never missing. Answers may get new fields; unknown fields of a request are refused.
`.trim();

export const ERROR_TABLE = `
| HTTP | code | When |
|---|---|---|
| 400, 413 | 40000 | invalid or missing parameter (\`msg\` names the field and the bound), or a body that is too large |
| 401 | 40100 | no token, or one that is unknown, malformed, revoked or logged out; wrong password |
| 401 | 2002 | the token was genuine and has expired: refresh it |
| 403 | 40300 | KYC tier too low, scope missing, or not the caller's to do |
| 404 | 4040 | no such resource or path; another user's order too |
| 405 | 40500 | known path, other method (\`Allow\`) |
| 409 | 40900 | a name that is in use, or a state that doesn't allow it |
| 422 | 42201, 42202, 42203, 42204 | insufficient balance; insufficient shares; market not open for trading; the account already has its maximum number of live orders |
| 429 | 42900 | rate limit exceeded (\`Retry-After\`) |
| 429 | 42901 | the request would exceed the daily activity; \`Retry-After\` counts to 00:00 UTC, \`msg\` states what is used, the limit and what the order adds |
| 500 | 50000 | internal error, or no response in time: it may have been done, check before you retry (\`trace_id\`) |
| 503 | 50300 | overloaded, starting, stopping or stopped: the request had no effect (\`Retry-After\`, \`trace_id\`) |
`.trim();
