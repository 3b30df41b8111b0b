/**
 * Passkeys (WebAuthn level 3): the options for the browser, and the verification of its responses. Knows no sessions and
 * stores nothing. A passkey belongs to the host of PUBLIC_URL, which browsers must consider secure: https, or localhost.
 * An IP address cannot have passkeys.
 *
 * The first use loads the library: that takes a quarter of a second, which a start without passkeys avoids.
 */
import { randomBytes } from "node:crypto";
import { isIP } from "node:net";
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import type { PasskeyRow, SecondFactorRow } from "../../engine/log/rows.ts";
import { PENDING_FACTOR_MS, SIGN_IN_CHALLENGE_MS } from "../accounts/limits.ts";
import type { User } from "../accounts/types.ts";
import { badRequest } from "../errors.ts";

const RP_NAME = "Prediction Exchange";
/** COSE: ES256, Ed25519, RS256. */
const ALGORITHMS = [-7, -8, -257];
const CHALLENGE_BYTES = 32;
/** The user's PIN, finger or face, so that a stolen key is useless. */
const USER_VERIFICATION = "required";

/** A passkey as the database stores it. */
export type NewPasskey = Pick<
  PasskeyRow,
  "rpId" | "credentialId" | "publicKey" | "counter" | "transports" | "userHandle"
>;

interface Descriptor {
  readonly type: "public-key";
  readonly id: string;
  readonly transports: string[];
}

/** PublicKeyCredentialCreationOptionsJSON of WebAuthn level 3. */
export interface CreationOptions {
  readonly rp: { readonly id: string; readonly name: string };
  readonly user: { readonly id: string; readonly name: string; readonly displayName: string };
  readonly challenge: string;
  readonly pubKeyCredParams: { readonly type: "public-key"; readonly alg: number }[];
  readonly timeout: number;
  readonly attestation: string;
  readonly excludeCredentials: Descriptor[];
  readonly authenticatorSelection: { readonly residentKey: string; readonly userVerification: string };
}

/** PublicKeyCredentialRequestOptionsJSON of WebAuthn level 3. */
export interface RequestOptions {
  readonly rpId: string;
  readonly challenge: string;
  readonly timeout: number;
  readonly userVerification: string;
  readonly allowCredentials: Descriptor[];
}

/** 256 random bits in base64url. */
export const newPasskeySecret = (): string => randomBytes(CHALLENGE_BYTES).toString("base64url");

export class Passkeys {
  private readonly publicUrl: () => string;

  constructor(publicUrl: () => string) {
    this.publicUrl = publicUrl;
  }

  /** Why this exchange cannot use passkeys; null when it can. */
  get rejection(): string | null {
    const { hostname, protocol } = new URL(this.publicUrl());
    if (isIP(hostname.replace(/^\[|\]$/g, "")) !== 0) {
      return `passkeys need a host name, but the PUBLIC_URL of this exchange is the address ${hostname}: use a name, such as http://localhost`;
    }
    const isLocal = hostname === "localhost" || hostname.endsWith(".localhost");
    return protocol === "https:" || isLocal
      ? null
      : "passkeys need https, which the PUBLIC_URL of this exchange does not use";
  }

  private get rpId(): string {
    return new URL(this.publicUrl()).hostname;
  }

  /** True for a passkey that was created for the current host. */
  isUsable(row: SecondFactorRow): row is PasskeyRow {
    return row.kind === "passkey" && this.rejection === null && row.rpId === this.rpId;
  }

  /** The JSON for `navigator.credentials.create`. @param own the user's factors */
  creationOptions(
    { email }: User,
    userHandle: string,
    challenge: string,
    own: readonly SecondFactorRow[],
  ): CreationOptions {
    return {
      rp: { id: this.rpId, name: RP_NAME },
      user: { id: userHandle, name: email, displayName: email },
      challenge,
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: "public-key", alg })),
      timeout: PENDING_FACTOR_MS,
      attestation: "none",
      excludeCredentials: this.describe(own),
      authenticatorSelection: { residentKey: "preferred", userVerification: USER_VERIFICATION },
    };
  }

  /** The JSON for `navigator.credentials.get`; null when none of the factors is a usable passkey. */
  requestOptions(challenge: string, own: readonly SecondFactorRow[]): RequestOptions | null {
    const allowCredentials = this.describe(own);
    if (allowCredentials.length === 0) return null;
    const { rpId } = this;
    return { rpId, challenge, timeout: SIGN_IN_CHALLENGE_MS, userVerification: USER_VERIFICATION, allowCredentials };
  }

  private describe(own: readonly SecondFactorRow[]): Descriptor[] {
    return own
      .filter((row): row is PasskeyRow => this.isUsable(row))
      .map(({ credentialId, transports }) => {
        return { type: "public-key", id: credentialId, transports: transports?.split(" ") ?? [] };
      });
  }

  /** Verifies the passkey that a browser created for the challenge. @throws ApiError 40000 when it is not valid */
  async register(response: object, challenge: string, userHandle: string): Promise<NewPasskey> {
    const { verifyRegistrationResponse } = await import("@simplewebauthn/server");
    const { rpId } = this;
    const made = await verifyRegistrationResponse({
      response: response as RegistrationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: new URL(this.publicUrl()).origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    }).catch(() => null);
    if (made === null || !made.verified) {
      throw badRequest("passkey: not valid for this site and this request, or created without PIN or biometrics");
    }
    const { id: credentialId, publicKey, counter, transports = [] } = made.registrationInfo.credential;
    const known = transports.filter((each) => /^[a-z-]{1,20}$/.test(each)).slice(0, 8);
    return {
      rpId,
      credentialId,
      publicKey: Buffer.from(publicKey).toString("base64url"),
      counter,
      transports: known.length === 0 ? null : known.join(" "),
      userHandle,
    };
  }

  /**
   * The passkey's new counter if the browser's response is valid and names no other account, else null. A counter that does not rise, unless the
   * passkey has none, means a cloned authenticator: the response is not valid (WebAuthn, section 6.1.1).
   */
  async verify(row: PasskeyRow, response: object, challenge: string): Promise<number | null> {
    if (!isOwnHandle(row, response)) return null;
    const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
    const found = await verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: new URL(this.publicUrl()).origin,
      expectedRPID: row.rpId,
      requireUserVerification: true,
      credential: {
        id: row.credentialId,
        publicKey: new Uint8Array(Buffer.from(row.publicKey, "base64url")),
        counter: row.counter,
      },
    }).catch(() => null);
    return found?.verified === true ? found.authenticationInfo.newCounter : null;
  }
}

/** An authenticator may leave the handle out where the request lists its passkeys (WebAuthn, section 7.2, step 6). */
function isOwnHandle({ userHandle, userId }: PasskeyRow, response: object): boolean {
  const { response: signed } = response as { response?: { userHandle?: unknown } | null };
  const given = signed?.userHandle ?? null;
  return given === null || given === (userHandle ?? Buffer.from(String(userId)).toString("base64url"));
}
