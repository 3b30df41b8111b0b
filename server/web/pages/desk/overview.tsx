/** Pending work, solvency and health of the exchange. */
import { useCallback } from "preact/hooks";
import { call } from "../../api.ts";
import { dateTime } from "../../dates.ts";
import { base, href } from "../../router.ts";
import type { Solvency } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Badge } from "../../ui/badge.tsx";
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import { useFetch } from "../../ui/use-data.ts";
import { usePolled } from "../../ui/use-fresh.ts";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import {
  countText,
  type PendingCounts,
  pendingCounts,
  pendingCountsError,
  refreshPendingCounts,
} from "./pending-counts.ts";

const CARDS: readonly (readonly [keyof PendingCounts, string, string])[] = [
  ["proposals", "Proposals to review", "/desk/proposals"],
  ["applications", "Identity applications", "/desk/identity"],
  ["withdrawals", "Withdrawals to pay", "/desk/withdrawals"],
  ["approvals", "Second approvals", "/desk/approvals"],
  ["resolutions", "Markets to resolve", "/desk/markets?status=closed"],
];

const INTERVAL_MS = 10_000;

export function Overview() {
  const solvency = useFetch((signal) => call<Solvency>("GET", "/solvency", { signal }), "solvency");
  const health = useFetch(readHealth, "health");
  const reload = useCallback(() => {
    void refreshPendingCounts();
    solvency.reload();
    health.reload();
  }, [solvency.reload, health.reload]);
  usePolled(reload, INTERVAL_MS);
  return (
    <>
      <Heading>Overview</Heading>
      <section aria-labelledby="desk-pending" class="stack">
        <h2 id="desk-pending">Pending</h2>
        <PendingCards />
      </section>
      <div class="two-panels">
        <section class="panel" aria-labelledby="desk-solvency">
          <h2 id="desk-solvency">Solvency</h2>
          <ErrorNotice error={solvency.error} retry={solvency.reload} />
          {solvency.data === null ? solvency.error === null && <Loading /> : <Sums solvency={solvency.data} />}
        </section>
        <section class="panel" aria-labelledby="desk-health">
          <h2 id="desk-health">Health</h2>
          <ErrorNotice error={health.error} retry={health.reload} />
          {health.data === null ? health.error === null && <Loading /> : <Health status={health.data} />}
          <p>
            <a href={`${base}metrics`} target="_blank" rel="noreferrer">
              Metrics
            </a>{" "}
            <span class="faint">in Prometheus format</span>
          </p>
        </section>
      </div>
    </>
  );
}

function PendingCards() {
  const counts = pendingCounts.value;
  if (counts === null) {
    const error = pendingCountsError.value;
    return error === null ? <Loading /> : <ErrorNotice error={error} retry={() => void refreshPendingCounts()} />;
  }
  return (
    <ul class="counts">
      {CARDS.map(([name, title, path]) => (
        <li key={name}>
          <a class="panel" href={href(path)}>
            <strong class="number" translate={false}>
              {countText(counts[name])}
            </strong>
            <span>{title}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Sums({ solvency }: { solvency: Solvency }) {
  const { deposits, withdrawals, users_total, collateral, house, balanced, sequence, at } = solvency;
  return (
    <>
      <p>
        {balanced ? (
          <Badge text="Balanced" tone="good" />
        ) : (
          <Badge text="NOT balanced: halt trading and run the verification" tone="bad" />
        )}
        {house < 0 && (
          <>
            {" "}
            <Badge text="House balance negative" tone="bad" />
          </>
        )}
      </p>
      <Facts
        facts={[
          ["Deposits", <Money isExact key="d" micro={deposits} />],
          ["− Withdrawals", <Money isExact key="w" micro={withdrawals} />],
          ["= User balances", <Money isExact key="u" micro={users_total} />],
          ["+ Market collateral", <Money isExact key="c" micro={collateral} />],
          ["+ House", <Money isExact key="h" micro={house} />],
        ]}
      />
      <p class="faint">
        In USDC, as of transaction {sequence}, {dateTime(at)}.
      </p>
    </>
  );
}

/** Reads GET /readyz, which is outside the API and its envelope: "ok", or the reason why the exchange doesn't trade. */
async function readHealth(signal: AbortSignal): Promise<string> {
  const response = await fetch(`${base}readyz`, { signal });
  return ((await response.json()) as { status: string }).status;
}

function Health({ status }: { status: string }) {
  return (
    <p class="row">
      {status === "ok" ? <Badge text="Operational" tone="good" /> : <Badge text={`Not ready: ${status}`} tone="bad" />}
    </p>
  );
}
