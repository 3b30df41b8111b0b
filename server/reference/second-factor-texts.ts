/** The documentation of second factors. */
import type { Static } from "typebox";
import type { NoteOnly } from "../http/text-schemas.ts";
import type * as F from "../sign-in/second-factor-schemas.ts";
import type { OperationTexts } from "./operation-text.ts";
import * as example from "./samples.ts";

const CHALLENGE = "pm_chl_3N7pWexampleexample";
const RECOVERY_CODES = ["MZXW-6YTB-OJRG-K5DF", "GEZD-GNBV-GY3T-QOJQ"];
const FACTOR = {
  id: 7,
  kind: "totp",
  name: "Phone",
  created_at: example.THEN,
  last_used_at: null,
} satisfies Static<typeof F.SecondFactor>;

export const SECOND_FACTOR_TEXTS: OperationTexts = {
  "POST /auth/login/second-factor": {
    id: "finishSignIn",
    tag: "Sign-in",
    description:
      "A challenge is valid for one sign-in and 5 minutes; a new password ends it. Each code works once. After ten wrong " +
      "codes within an hour, the account's codes get 42900 until fewer than ten fall within the last hour; passkeys keep working.",
    errors: [401, 409],
    body: { challenge: CHALLENGE, code: "287082" } satisfies Static<typeof F.SecondStep>,
    response: { access_token: example.ACCESS_TOKEN, refresh_token: example.REFRESH_TOKEN, user: example.user },
  },
  "GET /me/second-factors": {
    id: "listSecondFactors",
    tag: "Account",
    response: {
      items: [FACTOR],
      next_cursor: null,
      recovery_codes_left: 10,
      required: false,
      session: true,
      passkeys: null,
      proof: ["password", "code"],
    } satisfies Static<typeof F.SecondFactors>,
  },
  "POST /me/second-factors/proof": {
    id: "proveOwner",
    tag: "Account",
    description:
      "Required before a change of second factors. A password is enough if the session's sign-in used a second factor, or if " +
      "the account has none. Users with neither password nor factor sign in again instead. Ten wrong attempts within an hour are 42900.",
    errors: [409],
    body: { password: example.PASSWORD } satisfies Static<typeof F.OwnerProof>,
    response: null,
  },
  "POST /me/second-factors": {
    id: "addSecondFactor",
    tag: "Account",
    description: "At most two authenticator apps and ten passkeys. Discards another pending enrolment of the caller.",
    errors: [409],
    body: { kind: "totp", name: "Phone" } satisfies Static<typeof F.NewSecondFactor>,
    response: {
      id: 7,
      kind: "totp",
      name: "Phone",
      status: "pending",
      secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
      uri: "otpauth://totp/Prediction%20Exchange:maker%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Prediction%20Exchange",
      options: null,
      expires_at: example.THEN,
    } satisfies Static<typeof F.Enrolment>,
  },
  "POST /me/second-factors/:id/confirm": {
    id: "confirmSecondFactor",
    tag: "Account",
    errors: [404, 409],
    params: { id: 7 },
    body: { code: "287082" } satisfies Static<typeof F.Confirmation>,
    response: { factor: FACTOR, recovery_codes: RECOVERY_CODES } satisfies Static<typeof F.Confirmed>,
  },
  "POST /me/second-factors/recovery-codes": {
    id: "renewRecoveryCodes",
    tag: "Account",
    errors: [409],
    response: { recovery_codes: RECOVERY_CODES } satisfies Static<typeof F.RenewedCodes>,
  },
  "DELETE /me/second-factors/:id": {
    id: "removeSecondFactor",
    tag: "Account",
    description: "Operators who must have a second factor can't remove their last one: add another first.",
    errors: [404, 409],
    params: { id: 7 },
    response: null,
  },
  "POST /admin/users/:id/second-factors/reset": {
    id: "resetSecondFactors",
    tag: "Operators",
    description: "Always takes two operators, or one operator and the server's shell; neither may be the user.",
    errors: [409],
    params: { id: 3 },
    body: { note: "Lost the phone; identity checked by video." } satisfies Static<typeof NoteOnly>,
    response: {
      done: false,
      approval: {
        ...example.approval,
        action: "second_factor.reset",
        subject: 3,
        details: { email: example.user.email, factors: [7] },
      },
    } satisfies Static<typeof F.FactorReset>,
  },
};
