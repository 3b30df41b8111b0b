/** The shapes of second factors: the second step of a sign-in, enrolment, lists, resets. */

import Type, { type TSchema } from "typebox";
import { RECOVERY_CODES } from "../accounts/limits.ts";
import { Approval, SignIn } from "../accounts/schemas.ts";
import { FACTOR_KINDS, PROOF_METHODS } from "../accounts/types.ts";
import { closed, Id, names, nullable, Time } from "../http/schemas.ts";
import { OWNER_PROOF_METHODS } from "./second-factor-settings.ts";

const Challenge = Type.String({ minLength: 1, maxLength: 200, description: "from the first step" });
const Code = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "six digits from an authenticator app, or a recovery code; spaces and dashes are ignored",
});
const Base64Url = Type.String({ minLength: 1, maxLength: 16_384, pattern: "^[A-Za-z0-9_-]+$" });
/** Browsers may add members to their responses. */
const fromBrowser = (response: Record<string, TSchema>, description: string) =>
  Type.Object(
    { id: Base64Url, rawId: Base64Url, type: Type.String(), response: Type.Object(response) },
    { description },
  );
const Assertion = fromBrowser(
  { clientDataJSON: Base64Url, authenticatorData: Base64Url, signature: Base64Url },
  "AuthenticationResponseJSON (WebAuthn level 3) for the options from the first step",
);
const Registration = fromBrowser(
  { clientDataJSON: Base64Url, attestationObject: Base64Url },
  "RegistrationResponseJSON (WebAuthn level 3) for the options from the first step",
);
const Name = Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\p{Cc}\\p{Cs}]*$" });
const Password = Type.String({ minLength: 1, maxLength: 1_024 });

export const SecondStep = closed({
  challenge: Challenge,
  code: Type.Optional(Code),
  passkey: Type.Optional(Assertion),
  cookie: Type.Optional(Type.Boolean({ description: "true: an HttpOnly cookie holds the refresh token" })),
});
export const OwnerProof = closed({ password: Type.Optional(Password), code: Type.Optional(Code) });
export const NewSecondFactor = closed({ kind: names(FACTOR_KINDS), name: Type.Optional(Name) });
export const Confirmation = closed({ code: Type.Optional(Code), passkey: Type.Optional(Registration) });

const PasskeyOptions = (what: string) =>
  nullable(Type.Object({ challenge: Type.String() }, { description: `${what} (WebAuthn level 3); null otherwise` }));
export const SignInChallenge = closed({
  challenge: Type.String({ description: "for one call of POST /auth/login/second-factor" }),
  methods: Type.Array(names(PROOF_METHODS), { description: "accepted proofs of the second step" }),
  passkey: PasskeyOptions("PublicKeyCredentialRequestOptionsJSON if the account has a passkey"),
  expires_at: Time,
});
/** Tokens, or a challenge if the account has a second factor. */
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
  required: Type.Boolean({ description: "the caller is an operator, and operators must sign in with a second factor" }),
  session: Type.Boolean({ description: "the sign-in of this session used a second factor" }),
  passkeys: nullable(Type.String({ description: "why the exchange offers no passkeys; null if it does" })),
  proof: nullable(
    Type.Array(names(OWNER_PROOF_METHODS), {
      description: "proofs that POST .../proof accepts before a change; null: none is needed now; empty: sign in again",
    }),
  ),
});
const RecoveryCodes = Type.Array(Type.String(), { description: "each works once; shown only once" });
export const RenewedCodes = closed({ recovery_codes: RecoveryCodes });
export const Enrolment = closed({
  id: Id,
  kind: names(FACTOR_KINDS),
  name: Type.String(),
  status: names(["pending"]),
  secret: nullable(Type.String({ description: "of a TOTP, in base 32; shown only once" })),
  uri: nullable(Type.String({ description: "otpauth: URI of a TOTP, for a QR code" })),
  options: PasskeyOptions("PublicKeyCredentialCreationOptionsJSON of a passkey"),
  expires_at: Time,
});
export const Confirmed = closed({
  factor: SecondFactor,
  recovery_codes: nullable(Type.Array(Type.String(), { description: "with the first factor; shown only once" })),
});
export const FactorReset = closed({
  done: Type.Boolean({ description: "false: waiting for another operator" }),
  approval: nullable(Approval),
});
