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
  description: "what the token permits",
});

/** True if registration takes the address. */
export const isEmail = (text: string): boolean => text.length <= MAX_EMAIL_LENGTH && EMAIL.test(text);

/** ASCII, so that case folding is unambiguous; a single mailbox, as mail programs parse it. */
const EMAIL_PATTERN =
  "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$";
const EMAIL = new RegExp(EMAIL_PATTERN);
export const Email = Type.String({
  pattern: EMAIL_PATTERN,
  maxLength: MAX_EMAIL_LENGTH,
  description: "email address; case-insensitive",
});

const NewPassword = Type.String({
  minLength: MIN_PASSWORD_LENGTH,
  maxLength: MAX_PASSWORD_LENGTH,
  description: "hard to guess: the server rejects common passwords and ones derived from the address",
});

/** An existing password may be older than today's rules. */
const GivenPassword = Type.String({ minLength: 1, maxLength: 1_024 });

const MailedToken = Type.String({ minLength: 1, maxLength: 200, description: "from the mailed link" });

const Country = Type.String({ pattern: "^[A-Z]{2}$", description: "ISO 3166-1 alpha-2" });

const DOCUMENT_TYPES = ["passport", "id_card", "driving_license", "residence_permit"] as const;

export const APPLICATION_STATUSES = ["pending", "approved", "refused"] as const;

export const ROLES_OF_USERS = ["user", "operator"] as const;

export const Credentials = closed({
  email: Email,
  password: GivenPassword,
  cookie: Type.Optional(Type.Boolean({ description: "true: an HttpOnly cookie holds the refresh token" })),
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
    Type.String({ minLength: 1, maxLength: MAX_TOKEN_LENGTH, description: "if missing, the cookie's" }),
  ),
});

const jurisdiction = { jurisdiction: Type.Optional(Country) };

export const JurisdictionQuery = closed(jurisdiction);

/** A path on the same host however a browser parses it: browsers read `//host` and `/\host` as another host. */
const PagePath = Type.String({
  maxLength: MAX_RETURN_TO_LENGTH,
  pattern: "^/(?![/\\\\])[^\\p{Cc}]*$",
  description: "path on the web page to return to after the sign-in; without it, the callback responds with JSON",
});

export const SocialStartQuery = closed({ ...jurisdiction, return_to: Type.Optional(PagePath) });

/** Providers may add parameters of their own. */
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
  code: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "six digits from the message; spaces and dashes are ignored",
  }),
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
  expires_at: Type.Optional(
    about(nullable(Time), "ms since the Unix epoch; if missing or null, the token never expires"),
  ),
  allowed_ips: Type.Optional(
    nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        minItems: 1,
        maxItems: 20,
        description: "IP addresses and CIDR ranges from which the token works",
      }),
    ),
  ),
});

export const DailyActivity = closed({
  used: money("notional of the UTC day's buy fills and of live buys, plus 1 USDC per set split today"),
  limit: money("maximum of used"),
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

/** The account as the token may see it: a third party sees neither email nor phone. */
export const Account = closed({ ...user, email: nullable(Type.String()) });

const tokens = {
  access_token: Type.String(),
  refresh_token: nullable(Type.String({ description: "null if the cookie holds it" })),
};

export const Tokens = closed(tokens);

export const SignIn = closed({ ...tokens, user: User });

export const SocialProviders = closed({
  providers: Type.Array(Type.String()),
  jurisdictions: Type.Array(Country, { description: "those with additional providers" }),
});

export const IdentityApplication = closed({
  id: Id,
  document_type: names(DOCUMENT_TYPES),
  country: Type.String(),
  status: names(APPLICATION_STATUSES),
  note: nullable(Type.String({ description: "the operator's note" })),
  created_at: Time,
  decided_at: nullable(Time),
});

const pat = {
  id: Id,
  name: Type.String(),
  scopes: Scopes,
  prefix: Type.String({ description: "the first characters of the token" }),
  allowed_ips: nullable(Type.Array(Type.String())),
  created_at: Time,
  last_used_at: nullable(Time),
  expires_at: nullable(Time),
};

export const Pat = closed(pat);

export const CreatedPat = closed({ ...pat, token: Type.String({ description: "shown once" }) });

export const Session = closed({
  id: Id,
  method: Type.String({ description: "password, or social:PROVIDER" }),
  current: Type.Boolean({ description: "the session of this request" }),
  second_factor: Type.Boolean({ description: "the sign-in used a second factor" }),
  user_agent: nullable(Type.String()),
  address: nullable(Type.String()),
  created_at: Time,
  last_used_at: Time,
  expires_at: Time,
});

export const Approval = closed({
  id: Id,
  action: Type.String(),
  subject: Type.Integer({ minimum: 0, description: "id of the object of the action; 0: the house" }),
  details: Type.Object(
    {},
    { additionalProperties: true, description: "the details that the second request must repeat" },
  ),
  approved_by: Type.String(),
  created_at: Time,
});
