/** The user's daily limit, fees and API rate limits. */
import { useState } from "preact/hooks";
import { money, percent } from "../../format.ts";
import { request, user } from "../../session.ts";
import type { Limits } from "../../types.ts";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { Table } from "../../ui/table.tsx";
import { useFetch } from "../../ui/use-data.ts";

import { Panel } from "./panel.tsx";

type RateLimit = Limits["rate_limits"][number];

export function LimitsPanel() {
  const { data, error, reload } = useFetch<Limits>(
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
