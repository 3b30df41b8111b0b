/** The account: address, phone, verification, limits and password. */
import { useState } from "preact/hooks";
import { ApiError, withQuery } from "../api.ts";
import { countries, countryName } from "../countries.ts";
import { explainField } from "../error-messages.ts";
import { dateTime, money, percent, words } from "../format.ts";
import { href } from "../router.ts";
import { request, user } from "../session.ts";
import type { IdentityApplication, Limits } from "../types.ts";
import { AccountFrame, focusHeading } from "../ui/account-layout.tsx";
import { Badge } from "../ui/badge.tsx";
import { Field, Select } from "../ui/fields.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { NewPasswordField, newPasswordProblem, PasswordField } from "../ui/password-field.tsx";
import { PhoneSteps } from "../ui/phone-verification.tsx";
import { MailAgain } from "../ui/resend-email.tsx";
import { Table } from "../ui/table.tsx";
import { Tiers } from "../ui/tiers.tsx";
import { toast } from "../ui/toast.tsx";
import { type Children, type Loaded, useAction, useLoaded } from "../ui/use-data.ts";
import { useChecked } from "../ui/use-form.ts";
import { useFreshUser } from "../ui/use-user-refresh.ts";
import "./account.css";

export default function Account() {
  useFreshUser();
  return (
    <AccountFrame path="/account">
      <div class="account">
        <div class="stack">
          <EmailPanel />
          <PhonePanel />
          <IdentityPanel />
        </div>
        <div class="stack">
          <LimitsPanel />
          <PasswordPanel />
        </div>
      </div>
    </AccountFrame>
  );
}

interface PanelProps {
  id: string;
  title: string;
  badge?: Children;
  children: Children;
}

function Panel({ id, title, badge, children }: PanelProps) {
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="row between">
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {badge}
      </div>
      {children}
    </section>
  );
}

const verified = (isVerified: boolean) => (
  <Badge text={isVerified ? "Verified" : "Not verified"} tone={isVerified ? "good" : "warn"} />
);

function EmailPanel() {
  const { email, email_verified, created_at, id } = user.value!;
  return (
    <Panel id="email" title="E-mail" badge={verified(email_verified)}>
      <p class="break">{email}</p>
      {!email_verified && (
        <>
          <p>Open the link that we sent there. It is good for 24 hours.</p>
          <MailAgain path="/auth/resend-verification" email={email} label="Send the link again" />
        </>
      )}
      <p class="faint">
        User {id}, since {dateTime(created_at)}
      </p>
    </Panel>
  );
}

function PhonePanel() {
  const { phone, phone_verified } = user.value!;
  const [isChanging, setChanging] = useState(false);
  const isAsking = !phone_verified || isChanging;
  return (
    <Panel id="phone" title="Phone" badge={verified(phone_verified)}>
      {phone_verified && phone !== null && <p class="number">{phone}</p>}
      {!phone_verified && <p>A verified number is what you need to trade, beside your verified e-mail address.</p>}
      {isChanging && <p>The number above counts until the new one is verified.</p>}
      {isAsking && (
        <PhoneSteps
          onVerified={() => {
            setChanging(false);
            focusHeading("phone");
          }}
        />
      )}
      {phone_verified && (
        <p>
          <button type="button" onClick={() => setChanging(!isChanging)}>
            {isChanging ? "Keep this number" : "Change the number"}
          </button>
        </p>
      )}
    </Panel>
  );
}

// ---------------------------------------------------------------- identity

const NOT_FOUND = 404;

function IdentityPanel() {
  const { kyc_tier } = user.value!;
  const loaded = useLoaded<{ application: IdentityApplication | null }>(async (signal) => {
    try {
      return { application: await request<IdentityApplication>("GET", "/me/identity", { signal }) };
    } catch (error) {
      if (error instanceof ApiError && error.status === NOT_FOUND) return { application: null };
      throw error;
    }
  }, String(kyc_tier));
  return (
    <Panel
      id="identity"
      title="Verification"
      badge={<Badge text={`Tier ${kyc_tier}`} tone={kyc_tier === 0 ? "warn" : "good"} />}
    >
      <Tiers tier={kyc_tier} />
      {kyc_tier === 0 && <p>Verify your e-mail address and phone number first; then you can apply for tier 2.</p>}
      {kyc_tier > 0 && <IdentityState loaded={loaded} />}
    </Panel>
  );
}

function IdentityState({ loaded }: { loaded: Loaded<{ application: IdentityApplication | null }> }) {
  const { data, error, reload, set } = loaded;
  if (error !== null) return <ErrorNotice error={error} retry={reload} />;
  if (data === null) return <Loading />;
  const { application } = data;
  const isTier2 = user.value!.kyc_tier >= 2;
  const isRefused = application?.status === "refused";
  return (
    <>
      {application !== null && <Application application={application} />}
      {!isTier2 && (application === null || isRefused) && (
        <IdentityForm isAgain={isRefused} onMade={(made) => set(() => ({ application: made }))} />
      )}
    </>
  );
}

const DECISIONS = {
  pending: ["Waiting for a decision", "warn"],
  approved: ["Approved", "good"],
  refused: ["Refused", "bad"],
} as const;

function Application({ application }: { application: IdentityApplication }) {
  const { document_type, country, status, note, created_at, decided_at } = application;
  const [text, tone] = DECISIONS[status as keyof typeof DECISIONS];
  return (
    <div class="stack small-gap">
      <h3 id="application" tabIndex={-1}>
        Your application
      </h3>
      <p>
        <Badge text={text} tone={tone} /> {documentName(document_type)} of {countryName(country)}, sent{" "}
        {dateTime(created_at)}
        {decided_at !== null && `, decided ${dateTime(decided_at)}`}
      </p>
      {status === "pending" && <p class="faint">An operator looks at it, and you get a mail about the decision.</p>}
      {note !== null && (
        <p>
          The operator's note: <q class="break">{note}</q>
        </p>
      )}
    </div>
  );
}

const DOCUMENTS = [
  ["passport", "Passport"],
  ["id_card", "Identity card"],
  ["driving_license", "Driving licence"],
  ["residence_permit", "Residence permit"],
] as const;

const documentName = (type: string): string => DOCUMENTS.find(([each]) => each === type)?.[1] ?? words(type);

const ALL_COUNTRIES = countries();

function IdentityForm({ isAgain, onMade }: { isAgain: boolean; onMade: (made: IdentityApplication) => void }) {
  const [type, setType] = useState<string>("passport");
  const [number, setNumber] = useState("");
  const [country, setCountry] = useState("");
  const trimmed = number.trim();
  const { form, shown, submit } = useChecked({
    number:
      trimmed === ""
        ? "Enter the number that is printed on the document."
        : /^[A-Za-z0-9 ./-]{1,64}$/.test(trimmed)
          ? null
          : "Letters, digits, spaces, dots, slashes and dashes only.",
    country: country === "" ? "Choose the country that issued it." : null,
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    const body = { document_type: type, document_number: trimmed, country };
    onMade(await request<IdentityApplication>("POST", "/me/identity", { body }));
    toast("Your application is sent.");
    focusHeading("application");
  });
  const told = explainField(error, "document_number");
  return (
    <form ref={form} noValidate aria-labelledby="apply" onSubmit={submit(() => void run())}>
      <h3 id="apply">{isAgain ? "Apply again for tier 2" : "Apply for tier 2"}</h3>
      <Select label="Document" value={type} options={DOCUMENTS} onChange={setType} />
      <Field
        label="Document number"
        autoComplete="off"
        maxLength={64}
        hint="Only operators who decide on applications see it."
        value={number}
        problem={shown.number ?? told}
        onInput={(text) => {
          setNumber(text);
          clear();
        }}
      />
      <div class="field">
        <Select
          label="Issued by"
          value={country}
          options={[["", "Choose a country"], ...ALL_COUNTRIES]}
          onChange={setCountry}
        />
        {shown.country !== null && (
          <div class="hint bad" role="alert">
            {shown.country}
          </div>
        )}
      </div>
      {told === null && <ErrorNotice error={error} />}
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Sending…" : "Send the application"}
      </button>
    </form>
  );
}

// ---------------------------------------------------------------- limits

type RateLimit = Limits["rate_limits"][number];

function LimitsPanel() {
  const { data, error, reload } = useLoaded<Limits>(
    (signal) => request("GET", "/me/limits", { signal }),
    String(user.value!.kyc_tier),
  );
  return (
    <Panel id="limits" title="Limits and fees">
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && (
        <>
          <Activity {...data.daily_activity} />
          <dl class="facts">
            <dt>Trading fee, paid by the seller</dt>
            <dd class="number">{percent(data.fees.trading_fee)}</dd>
            <dt>Rebate of a resting order that is filled</dt>
            <dd class="number">{percent(data.fees.maker_rebate)}</dd>
            <dt>Merge fee, of each complete set</dt>
            <dd class="number">{percent(data.fees.merge_fee)}</dd>
          </dl>
          <p class="faint">
            Orders that are placed with an access token have a higher rebate. The fees of a match pay its rebates: a
            match without a seller has none.
          </p>
          <RateLimits limits={data.rate_limits} reload={reload} />
        </>
      )}
    </Panel>
  );
}

/** @param used of the day, micro-USDC @param limit micro-USDC */
function Activity({ used, limit }: { used: number; limit: number }) {
  if (limit === 0) return <p>Nothing can be traded at tier 0.</p>;
  const tomorrow = new Date();
  tomorrow.setUTCHours(24, 0, 0, 0);
  const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" }).format(tomorrow);
  return (
    <div class="stack small-gap">
      <div class="row between">
        <span id="activity">Daily activity</span>
        <span class="number">
          {money(used)} of {money(limit)} USDC
        </span>
      </div>
      <meter class="activity" aria-labelledby="activity" min={0} max={limit} value={Math.min(used, limit)} />
      <p class="faint">
        What you bought or split today, and your open buy orders. Selling is free of it. It resets at {time} (00:00
        UTC).
      </p>
    </div>
  );
}

const WHOSE: Readonly<Record<string, string>> = {
  user: "you",
  address: "your network address",
  identifier: "your e-mail address",
};

/** Those of which something was used, or all. */
function RateLimits({ limits, reload }: { limits: readonly RateLimit[]; reload: () => void }) {
  const [isWhole, setWhole] = useState(false);
  const used = limits.filter(({ remaining, limit }) => remaining < limit);
  const rows = [...(isWhole ? limits : used)].sort((a, b) => a.remaining / a.limit - b.remaining / b.limit);
  return (
    <details>
      <summary>Rate limits of the API</summary>
      <div class="stack">
        <p>Each route has a limit of its own, of requests a minute. The most used come first.</p>
        <div class="row">
          <button type="button" class="small" onClick={reload}>
            Refresh
          </button>
          <button type="button" class="small" aria-pressed={isWhole} onClick={() => setWhole(!isWhole)}>
            Show all {limits.length}
          </button>
        </div>
        <Table
          caption="Rate limits"
          rows={rows}
          keyOf={({ route, scope }) => `${route} ${scope}`}
          empty="Nothing was used in the last minute."
          columns={[
            { title: "Route", show: ({ route }) => <code class="break">{route}</code> },
            { title: "Counted by", show: ({ scope }) => WHOSE[scope] ?? scope },
            { title: "Left", isNumber: true, show: ({ remaining, limit }) => `${remaining} of ${limit}` },
            { title: "Whole again", isNumber: true, show: ({ reset }) => (reset === 0 ? "–" : `in ${reset} s`) },
          ]}
        />
      </div>
    </details>
  );
}

// ---------------------------------------------------------------- password

function PasswordPanel() {
  const { email } = user.value!;
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const { form, shown, submit, restart } = useChecked({
    current: current === "" ? "Enter the password that you have now." : null,
    next: newPasswordProblem(next) ?? (next === current ? "This is the password that you have now." : null),
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    await request("POST", "/me/password", { body: { current, new: next } });
    setCurrent("");
    setNext("");
    restart();
    toast("Your password is changed, and your other sessions have ended.");
    focusHeading("password");
  });
  const isWrong = error instanceof ApiError && error.status === 403 && /current password/.test(error.message);
  const told = explainField(error, "new");
  return (
    <Panel id="password" title="Password">
      <form ref={form} noValidate aria-labelledby="password" onSubmit={submit(() => void run())}>
        <p>A new password ends your other sessions. Access tokens and connected apps stay.</p>
        <input
          type="text"
          class="hidden"
          autoComplete="username"
          value={email}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <PasswordField
          label="Current password"
          value={current}
          problem={shown.current ?? (isWrong ? "That isn't your current password." : null)}
          hint={
            <>
              Forgotten, or never set? <a href={href(withQuery("/forgot-password", { email }))}>Set one by mail</a>.
            </>
          }
          onInput={(text) => {
            setCurrent(text);
            clear();
          }}
        />
        <NewPasswordField
          label="New password"
          value={next}
          problem={shown.next ?? told}
          onInput={(text) => {
            setNext(text);
            clear();
          }}
        />
        {!isWrong && told === null && <ErrorNotice error={error} />}
        <div>
          <button type="submit" disabled={isBusy}>
            {isBusy ? "Changing it…" : "Change the password"}
          </button>
        </div>
      </form>
    </Panel>
  );
}
