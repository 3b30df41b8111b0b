/** The user's KYC tier and identity application. */

import { countryName } from "../../countries.ts";
import { dateTime } from "../../dates.ts";
import { request, signedInUser } from "../../session.ts";
import type { IdentityApplication } from "../../types.ts";
import { Badge } from "../../ui/badge.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { Tiers } from "../../ui/tiers.tsx";
import { type Fetched, useFetch } from "../../ui/use-data.ts";
import { documentName, IdentityForm } from "./identity-form.tsx";
import { Panel } from "./panel.tsx";

export function IdentityPanel() {
  const { kyc_tier } = signedInUser();
  const loaded = useFetch<{ application: IdentityApplication | null }>(
    async (signal) => ({ application: await request<IdentityApplication | null>("GET", "/me/identity", { signal }) }),
    String(kyc_tier),
  );
  return (
    <Panel
      id="identity"
      title="Verification"
      badge={<Badge text={`Tier ${kyc_tier}`} tone={kyc_tier === 0 ? "warn" : "good"} />}
    >
      <Tiers tier={kyc_tier} />
      {kyc_tier === 0 && <p>Verify your email and phone number first. Then you can apply for tier 2.</p>}
      {kyc_tier > 0 && <IdentityState loaded={loaded} />}
    </Panel>
  );
}

function IdentityState({ loaded }: { loaded: Fetched<{ application: IdentityApplication | null }> }) {
  const { data, error, reload, set } = loaded;
  if (error !== null) return <ErrorNotice error={error} retry={reload} />;
  if (data === null) return <Loading />;
  const { application } = data;
  const isTier2 = signedInUser().kyc_tier >= 2;
  const isRejected = application?.status === "refused";
  return (
    <>
      {application !== null && <Application application={application} />}
      {!isTier2 && (application === null || isRejected) && (
        <IdentityForm isAgain={isRejected} onSubmitted={(submitted) => set(() => ({ application: submitted }))} />
      )}
    </>
  );
}

const DECISIONS = {
  pending: ["Pending review", "warn"],
  approved: ["Approved", "good"],
  refused: ["Rejected", "bad"],
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
        <Badge text={text} tone={tone} /> {documentName(document_type)}, {countryName(country)}, submitted{" "}
        {dateTime(created_at)}
        {decided_at !== null && `, decided ${dateTime(decided_at)}`}
      </p>
      {status === "pending" && <p class="faint">An operator is reviewing it. We'll email you the decision.</p>}
      {note !== null && (
        <p>
          Operator's note: <q class="break">{note}</q>
        </p>
      )}
    </div>
  );
}
