/**
 * The shapes of requests and responses about accounts: registration, sign-in, sessions, access tokens, identity, and the
 * approvals that operators give each other.
 */
import Type from "typebox";
import { MAX_EMAIL_LENGTH } from "../http/limits.ts";
import { about, closed, Id, money, names, nullable, Time } from "../http/schemas.ts";
import { MAX_PASSWORD_LENGTH, MAX_RETURN_TO_LENGTH, MAX_TOKEN_LENGTH, MIN_PASSWORD_LENGTH } from "./limits.ts";
import { SCOPES } from "./types.ts";

export const Scopes = Type.Array(names(SCOPES), {
  minItems: 1,
  maxItems: SCOPES.length,
  description: "what the token may do",
});

/** ASCII, so that upper and lower case have one meaning; one mailbox, as mail programs understand it. */
export const Email = Type.String({
  pattern:
    "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$",
  maxLength: MAX_EMAIL_LENGTH,
  description: "e-mail address; upper and lower case are the same",
});

const NewPassword = Type.String({
  minLength: MIN_PASSWORD_LENGTH,
  maxLength: MAX_PASSWORD_LENGTH,
  description: "hard to guess: one that is common or made of the address is refused",
});

/** One that exists may have been made under other rules. */
const GivenPassword = Type.String({ minLength: 1, maxLength: 1_024 });

const MailedToken = Type.String({ minLength: 1, maxLength: 200, description: "of the mailed link" });

const Country = Type.String({ pattern: "^[A-Z]{2}$", description: "ISO 3166-1 alpha-2" });

const DOCUMENT_TYPES = ["passport", "id_card", "driving_license", "residence_permit"] as const;

export const APPLICATION_STATUSES = ["pending", "approved", "refused"] as const;

export const ROLES_OF_USERS = ["user", "operator"] as const;

export const Credentials = closed({
  email: Email,
  password: GivenPassword,
  cookie: Type.Optional(Type.Boolean({ description: "true: the refresh token comes in an HttpOnly cookie" })),
});

export const Registration = closed({ email: Email, password: NewPassword });

export const EmailOnly = closed({ email: Email });

export const EmailVerification = closed({
  token: MailedToken,
  password: Type.Optional(GivenPassword),
});

export const PasswordReset = closed({ token: MailedToken, password: NewPassword });

export const PasswordChange = closed({ current: GivenPassword, new: NewPassword });

export const RefreshToken = closed({
  refresh_token: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_TOKEN_LENGTH, description: "missing: that of the cookie" }),
  ),
});

const jurisdiction = { jurisdiction: Type.Optional(Country) };

export const JurisdictionQuery = closed(jurisdiction);

/** A path of the same host whichever way a browser reads it: of `//host` and `/\host` it makes another host. */
const PagePath = Type.String({
  maxLength: MAX_RETURN_TO_LENGTH,
  pattern: "^/(?![/\\\\])[^\\p{Cc}]*$",
  description: "path on the web page where the user goes after the sign-in; without it the callback answers JSON",
});

export const SocialStartQuery = closed({ ...jurisdiction, return_to: Type.Optional(PagePath) });

/** What a provider adds is its own matter. */
export const CallbackQuery = Type.Object(
  {
    code: Type.Optional(Type.String()),
    state: Type.Optional(Type.String()),
    error: Type.Optional(Type.String()),
  },
  { additionalProperties: Type.String() },
);

export const PhoneNumber = closed({ phone: Type.String({ minLength: 1, maxLength: 32, description: "E.164" }) });

export const PhoneCode = closed({
  code: Type.String({ pattern: "^\\d{6}$", description: "six digits, of the message" }),
});

export const IdentityDocument = closed({
  document_type: names(DOCUMENT_TYPES),
  document_number: Type.String({ minLength: 1, maxLength: 64, pattern: "^[A-Za-z0-9 ./-]+$" }),
  country: Country,
});

const Name = Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\p{Cc}\\p{Cs}]*$" });

export const NewPat = closed({
  name: Name,
  scopes: Scopes,
  expires_at: Type.Optional(about(nullable(Time), "ms since the Unix epoch; never where it is missing or null")),
  allowed_ips: Type.Optional(
    nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        minItems: 1,
        maxItems: 20,
        description: "IP addresses and CIDR ranges that the token may be used from",
      }),
    ),
  ),
});

export const DailyActivity = closed({
  used: money("notional of this UTC day's buy fills and of live buys, and 1 USDC per set split today"),
  limit: money("what used may come to"),
});

export const user = {
  id: Id,
  email: Type.String(),
  email_verified: Type.Boolean(),
  phone: nullable(Type.String()),
  phone_verified: Type.Boolean(),
  kyc_tier: Type.Integer({ minimum: 0, maximum: 2, description: "1: may trade; 2: may withdraw" }),
  role: names(ROLES_OF_USERS),
  daily_activity: DailyActivity,
  created_at: Time,
};

export const User = closed(user);

/** As whoever asks may see it. */
export const Account = closed({ ...user, email: nullable(Type.String()) });

const tokens = {
  access_token: Type.String(),
  refresh_token: nullable(Type.String({ description: "null where it is in the cookie" })),
};

export const Tokens = closed(tokens);

export const SignIn = closed({ ...tokens, user: User });

export const SocialProviders = closed({
  providers: Type.Array(Type.String()),
  jurisdictions: Type.Array(Country, { description: "those in which more are offered than everywhere" }),
});

export const IdentityApplication = closed({
  id: Id,
  document_type: names(DOCUMENT_TYPES),
  country: Type.String(),
  status: names(APPLICATION_STATUSES),
  note: nullable(Type.String({ description: "what the operator noted" })),
  created_at: Time,
  decided_at: nullable(Time),
});

const pat = {
  id: Id,
  name: Type.String(),
  scopes: Scopes,
  prefix: Type.String({ description: "how the token begins" }),
  allowed_ips: nullable(Type.Array(Type.String())),
  created_at: Time,
  last_used_at: nullable(Time),
  expires_at: nullable(Time),
};

export const Pat = closed(pat);

export const CreatedPat = closed({ ...pat, token: Type.String({ description: "shown once" }) });

export const Session = closed({
  id: Id,
  method: Type.String({ description: "password, or social: and the provider" }),
  current: Type.Boolean({ description: "the one that asks" }),
  second_factor: Type.Boolean({ description: "the sign-in took a second factor" }),
  user_agent: nullable(Type.String()),
  address: nullable(Type.String()),
  created_at: Time,
  last_used_at: Time,
  expires_at: Time,
});

export const Approval = closed({
  id: Id,
  action: Type.String(),
  subject: Type.Integer({ minimum: 0, description: "id of what is acted on; 0: the house" }),
  details: Type.Object({}, { additionalProperties: true, description: "all that the second must ask for too" }),
  approved_by: Type.String(),
  created_at: Time,
});
