/** The user's daily limit, fees and API rate limits. */

import { useState } from "preact/hooks";
import { money, percent } from "../../../util/format.ts";
import { exchangeTime } from "../../clock.ts";
import { request, signedInUser } from "../../session.ts";
import type { Limits } from "../../types.ts";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { Table } from "../../ui/table.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { useFresh, usePolled } from "../../ui/use-fresh.ts";
import { Panel } from "./panel.tsx";

type RateLimit = Limits["rate_limits"][number];

export function LimitsPanel() {
  const { data, error, reload } = useFetch<Limits>(
    (signal) => request("GET", "/me/limits", { signal }),
    String(signedInUser().kyc_tier),
  );
  useFresh(reload);
  return (
    <Panel id="limits" title="Limits and fees">
      <ErrorNotice error={error} retry={reload} />
      {data === null && error === null && <Loading />}
      {data !== null && (
        <>
          <Activity {...data.daily_activity} />
          <dl class="facts">
            <dt>Trading fee (paid by sellers)</dt>
            <dd class="number" translate={false}>
              {percent(data.fees.trading_fee)}
            </dd>
            <dt>Maker rebate</dt>
            <dd class="number" translate={false}>
              {percent(data.fees.maker_rebate)}
            </dd>
            <dt>Merge fee (per complete set)</dt>
            <dd class="number" translate={false}>
              {percent(data.fees.merge_fee)}
            </dd>
          </dl>
          <p class="faint">
            Orders placed with an access token earn a higher rebate. A match pays its rebates from its own fees: a match
            without a seller pays none.
          </p>
          <RateLimits limits={data.rate_limits} reload={reload} />
        </>
      )}
    </Panel>
  );
}

/** @param used today, micro-USDC @param limit micro-USDC */
function Activity({ used, limit }: { used: number; limit: number }) {
  if (limit === 0) return <p>Tier 0 can't trade.</p>;
  const tomorrow = new Date(exchangeTime());
  tomorrow.setUTCHours(24, 0, 0, 0);
  const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" }).format(tomorrow);
  return (
    <div class="stack small-gap">
      <div class="row between">
        <span id="activity">Daily activity</span>
        <span class="number" translate={false}>
          {money(used)} of {money(limit)} USDC
        </span>
      </div>
      <meter class="activity" aria-labelledby="activity" min={0} max={limit} value={Math.min(used, limit)} />
      <p class="faint">
        Today's buys and splits, plus open buy orders. Sells don't count. Resets at {time} (00:00 UTC).
      </p>
    </div>
  );
}

/** The limits change with each request of any program, so they are read again while they are shown. */
function Polling({ reload }: { reload: () => void }) {
  usePolled(reload, INTERVAL_MS);
  return null;
}
const INTERVAL_MS = 5_000;

const SCOPE_TEXT: Readonly<Record<string, string>> = {
  user: "user",
  address: "IP address",
  identifier: "email",
};

/** Lists the rate limits that were used, or all of them. */
function RateLimits({ limits, reload }: { limits: readonly RateLimit[]; reload: () => void }) {
  const [isShowingAll, setShowingAll] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const used = limits.filter(({ remaining, limit }) => remaining < limit);
  const rows = [...(isShowingAll ? limits : used)].sort((a, b) => a.remaining / a.limit - b.remaining / b.limit);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>API rate limits</summary>
      {isOpen && <Polling reload={reload} />}
      <div class="stack">
        <p>Requests per minute and route, most used first.</p>
        <div class="row">
          <button type="button" class="small" aria-pressed={isShowingAll} onClick={() => setShowingAll(!isShowingAll)}>
            Show all {limits.length}
          </button>
        </div>
        <Table
          caption="Rate limits"
          rows={rows}
          keyOf={({ route, scope }) => `${route} ${scope}`}
          empty="No requests in the last minute."
          columns={[
            { title: "Route", show: ({ route }) => <code class="break">{route}</code> },
            { title: "Counted per", show: ({ scope }) => SCOPE_TEXT[scope] ?? scope },
            { title: "Remaining", isNumber: true, show: ({ remaining, limit }) => `${remaining} of ${limit}` },
            { title: "Resets", isNumber: true, show: ({ reset }) => (reset === 0 ? "–" : `in ${reset} s`) },
          ]}
        />
      </div>
    </details>
  );
}
