/** The shapes of second factors: enrolment, what is shown, and lists of them. */

import Type, { type TSchema } from "typebox";
import { closed, Id, names, nullable, Time } from "../http/schemas.ts";
import { RECOVERY_CODES } from "./limits.ts";
import { Approval, SignIn } from "./schemas.ts";
import { OWNER_PROOF_METHODS } from "./second-factor-settings.ts";
import { FACTOR_KINDS, PROOF_METHODS } from "./types.ts";

const Challenge = Type.String({ minLength: 1, maxLength: 200, description: "of the first step" });
const Code = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "six digits of an authenticator app, or a recovery code; spaces and dashes don't count",
});
const Base64Url = Type.String({ minLength: 1, maxLength: 16_384, pattern: "^[A-Za-z0-9_-]+$" });
/** Browsers may add members to what they answer. */
const fromBrowser = (response: Record<string, TSchema>, description: string) =>
  Type.Object(
    { id: Base64Url, rawId: Base64Url, type: Type.String(), response: Type.Object(response) },
    { description },
  );
const Assertion = fromBrowser(
  { clientDataJSON: Base64Url, authenticatorData: Base64Url, signature: Base64Url },
  "AuthenticationResponseJSON (WebAuthn level 3) for the options of the first step",
);
const Registration = fromBrowser(
  { clientDataJSON: Base64Url, attestationObject: Base64Url },
  "RegistrationResponseJSON (WebAuthn level 3) for the options of the first step",
);
const Name = Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\p{Cc}\\p{Cs}]*$" });
const Password = Type.String({ minLength: 1, maxLength: 1_024 });

export const SecondStep = closed({
  challenge: Challenge,
  code: Type.Optional(Code),
  passkey: Type.Optional(Assertion),
  cookie: Type.Optional(Type.Boolean({ description: "true: the refresh token comes in an HttpOnly cookie" })),
});
export const OwnerProof = closed({ password: Type.Optional(Password), code: Type.Optional(Code) });
export const NewSecondFactor = closed({ kind: names(FACTOR_KINDS), name: Type.Optional(Name) });
export const Confirmation = closed({ code: Type.Optional(Code), passkey: Type.Optional(Registration) });

const PasskeyOptions = (what: string) =>
  nullable(Type.Object({ challenge: Type.String() }, { description: `${what} (WebAuthn level 3); null otherwise` }));
export const SignInChallenge = closed({
  challenge: Type.String({ description: "for POST /auth/login/second-factor, once" }),
  methods: Type.Array(names(PROOF_METHODS), { description: "what the second step takes" }),
  passkey: PasskeyOptions("PublicKeyCredentialRequestOptionsJSON where there is a passkey"),
  expires_at: Time,
});
/** Tokens, or where the account has a second factor the challenge for it. */
export const FirstStep = Type.Union([SignIn, SignInChallenge]);

const factor = {
  id: Id,
  kind: names(FACTOR_KINDS),
  name: Type.String(),
  created_at: Time,
  last_used_at: nullable(Time),
};
export const SecondFactor = closed(factor);
export const SecondFactors = closed({
  items: Type.Array(SecondFactor),
  next_cursor: Type.Null(),
  recovery_codes_left: Type.Integer({ minimum: 0, maximum: RECOVERY_CODES }),
  required: Type.Boolean({ description: "operators must sign in with one here, and the caller is an operator" }),
  session: Type.Boolean({ description: "this session was made with a second factor" }),
  passkeys: nullable(Type.String({ description: "why there can be no passkeys here; null where there can" })),
  proof: nullable(
    Type.Array(names(OWNER_PROOF_METHODS), {
      description: "what POST .../proof takes before a change; null: nothing is needed now; empty: sign in again",
    }),
  ),
});
const RecoveryCodes = Type.Array(Type.String(), { description: "each good for once; shown this once" });
export const RenewedCodes = closed({ recovery_codes: RecoveryCodes });
export const Enrolment = closed({
  id: Id,
  kind: names(FACTOR_KINDS),
  name: Type.String(),
  status: names(["pending"]),
  secret: nullable(Type.String({ description: "of a TOTP, in base 32; shown this once" })),
  uri: nullable(Type.String({ description: "otpauth: URI of a TOTP, for a QR code" })),
  options: PasskeyOptions("PublicKeyCredentialCreationOptionsJSON of a passkey"),
  expires_at: Time,
});
export const Confirmed = closed({
  factor: SecondFactor,
  recovery_codes: nullable(Type.Array(Type.String(), { description: "with the first factor; shown this once" })),
});
export const FactorReset = closed({
  done: Type.Boolean({ description: "false: it waits for another operator" }),
  approval: nullable(Approval),
});
