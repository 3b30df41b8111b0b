/** Sign-ins at one or two providers without a server, and their rejections. */
import { expect } from "vitest";
import { ApiError } from "../../server/errors.ts";
import type { SocialProvider } from "../../server/sign-in/social-provider.ts";
import { SocialSignIn } from "../../server/sign-in/social-sign-in.ts";

export const redirectUri = (provider: string): string => `http://127.0.0.1/auth/social/${provider}/callback`;
export const NOW = 1_700_000_000_000;

type ProviderSettings = Pick<SocialProvider, "issuer" | "clientId" | "clientSecret">;

export function providerAt(at: ProviderSettings, name = "one", jurisdictions: string[] | null = null): SocialProvider {
  const { issuer, clientId, clientSecret } = at;
  return { name, issuer, clientId, clientSecret, jurisdictions, scope: "openid email" };
}

export function signInAt(...providers: SocialProvider[]): SocialSignIn {
  return new SocialSignIn({ providers, redirectUri });
}

/** The rejection. Neither the response nor the log may contain a secret. */
export async function rejection(promise: Promise<unknown>, secrets: readonly string[] = []): Promise<[number, string]> {
  const thrown: unknown = await promise.then(
    (value) => expect.fail(`not refused: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ApiError);
  const { kind, message, cause, retryAfter } = thrown as ApiError;
  expect(typeof cause === "string" || cause === undefined).toBe(true);
  for (const secret of secrets) expect(`${message} ${cause}`).not.toContain(secret);
  expect(retryAfter).toBe(kind.status === 503 ? 1 : null);
  return [kind.code, message];
}

export const UNKNOWN = [40100, "this browser has started no such sign-in in the last ten minutes"];
export const FAILED = [40100, "the sign-in with one failed"];
export const UNREACHABLE = [50300, "one cannot be reached"];
