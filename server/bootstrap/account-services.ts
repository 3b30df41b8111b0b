/**
 * Constructs what knows users and lets them in: signing keys and tokens, sessions, passwords, second factors, sign-in,
 * OAuth and social sign-in, identity checks. Opens the key files of the data folder.
 */
import { join } from "node:path";
import { loadSecondFactors } from "../../engine/projection/load/accounts.ts";
import { createAccessRevoker } from "../accounts/access-revocation.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { KycVerification } from "../accounts/kyc.ts";
import { UnverifiedAccounts } from "../accounts/unverified-accounts.ts";
import type { Logger } from "../logger.ts";
import { Notifier } from "../messages/notifier.ts";
import { OAuth } from "../oauth/oauth.ts";
import { Authenticator } from "../sign-in/authenticator.ts";
import { LastUse } from "../sign-in/last-use.ts";
import { Passkeys } from "../sign-in/passkeys.ts";
import { Passwords } from "../sign-in/passwords.ts";
import { Pats } from "../sign-in/pats.ts";
import { SECOND_FACTOR_KEYS, SecondFactorKeys } from "../sign-in/second-factor-keys.ts";
import { SecondFactorSettings } from "../sign-in/second-factor-settings.ts";
import { SecondFactorSignIn } from "../sign-in/second-factor-sign-in.ts";
import { SecondFactors } from "../sign-in/second-factors.ts";
import { Sessions } from "../sign-in/sessions.ts";
import { SignInService } from "../sign-in/sign-in.ts";
import { SigningKeys } from "../sign-in/signing-keys.ts";
import { SocialSignIn } from "../sign-in/social-sign-in.ts";
import { keyFolder } from "../util/data-folder.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import type { Config } from "./config.ts";
import type { ExchangeDatabase } from "./database.ts";
import type { PublicUrl } from "./listen.ts";

interface AccountOptions {
  readonly config: Config;
  readonly database: ExchangeDatabase;
  readonly accounts: Accounts;
  readonly writer: LogWriter;
  readonly publicUrl: PublicUrl;
  readonly startedAt: number;
  readonly logger: Logger;
  /** Gets the error that a thread of the pool `name` died of. */
  readonly onThreadLost: (name: string) => (error: Error) => void;
}

export type AccountServices = Awaited<ReturnType<typeof openAccountServices>>;

/** Creates missing key files. @throws Error where a key file can't be read or written */
export async function openAccountServices(options: AccountOptions) {
  const { config, accounts, writer, publicUrl, startedAt, logger } = options;
  const { accessTtlMs, refreshTtlMs } = config;
  const keys = await SigningKeys.open(keyFolder(config.dataDir), {
    issuer: publicUrl.site(),
    audience: publicUrl.api(),
    tokenTtlMs: accessTtlMs,
    now: startedAt,
  });
  const authenticator = new Authenticator(accounts, keys);
  const sessions = new Sessions({ accounts, authenticator, keys, writer, accessTtlMs, refreshTtlMs });
  const passwords = new Passwords(options.onThreadLost("password"));
  const notifier = new Notifier({
    smtpUrl: config.smtpUrl,
    smsWebhookUrl: config.smsWebhookUrl,
    outbox: join(config.dataDir, "outbox"),
    from: config.mailFrom,
    logger,
  });
  const secondFactors = await openSecondFactors({ ...options, sessions, passwords, notifier });
  const { secondStep } = secondFactors;
  const unverified = new UnverifiedAccounts(accounts, writer);
  const revokeAccess = createAccessRevoker({ accounts, sessions, writer });
  const auth = new SignInService({
    ...{ accounts, sessions, passwords, notifier, writer, unverified, logger, secondStep, revokeAccess },
    publicUrl: publicUrl.site,
  });
  const kyc = new KycVerification(accounts, writer, notifier);
  const pats = new Pats(accounts, writer);
  const oauth = new OAuth({
    ...{ accounts, authenticator, sessions, writer, accessTtlMs, refreshTtlMs },
    issuer: publicUrl.site,
  });
  const social = new SocialSignIn({
    providers: config.socialProviders,
    redirectUri: (provider) => `${publicUrl.api()}/auth/social/${provider}/callback`,
  });
  const lastUse = new LastUse(authenticator, writer);
  const signIn = { keys, authenticator, sessions, passwords, auth, oauth, social, unverified, revokeAccess };
  return { accounts, ...signIn, ...secondFactors, notifier, kyc, pats, lastUse };
}

type SecondFactorOptions = AccountOptions & {
  readonly sessions: Sessions;
  readonly passwords: Passwords;
  readonly notifier: Notifier;
};

async function openSecondFactors({ config, database, publicUrl, logger, startedAt, ...services }: SecondFactorOptions) {
  const { accounts, writer, sessions, passwords, notifier } = services;
  const passkeys = new Passkeys(publicUrl.site);
  const keys = await SecondFactorKeys.open(join(keyFolder(config.dataDir), SECOND_FACTOR_KEYS), startedAt);
  const factors = new SecondFactors({ writer, keys, passkeys }, loadSecondFactors(database.db));
  const unreadable = factors.countUnreadable();
  if (unreadable > 0)
    logger.error({ unreadable }, `${SECOND_FACTOR_KEYS} lacks the key of authenticator apps' secrets`);
  const secondStep = new SecondFactorSignIn({ factors, passkeys, writer, notifier });
  const factorSettings = new SecondFactorSettings({
    ...{ accounts, factors, passkeys, passwords, sessions, writer, notifier },
    isRequired: config.operatorsNeedSecondFactor,
  });
  return { passkeys, factors, secondStep, factorSettings };
}
