/** First approvals under the two-person rule, whose second is awaited. */
import { useState } from "preact/hooks";
import { dateTime, money, percent, words } from "../../format.ts";
import { href } from "../../router.ts";
import type { Approval } from "../../types.ts";
import { type Children, usePages } from "../../ui/data.ts";
import { Table } from "../../ui/parts.tsx";
import { ApprovalSign, Heading, List, MarketLink, TakeBackDialog } from "./parts.tsx";

const TITLES: Readonly<Record<string, string>> = {
  "withdrawal.pay": "Pay a withdrawal",
  "market.resolve": "End a market",
  "house.withdraw": "Take money out of the house",
};

export function Approvals() {
  const pages = usePages<Approval>("/admin/approvals");
  const [opened, setOpened] = useState<Approval | null>(null);
  return (
    <>
      <Heading>Approvals</Heading>
      <p>
        Under the two-person rule another operator must ask for exactly the same. Open what it is about to give the
        second approval there.
      </p>
      <List pages={pages}>
        {(items) => (
          <Table
            caption="First approvals"
            rows={items}
            keyOf={({ id }) => id}
            empty="No second approval is awaited."
            columns={[
              { title: "What", show: ({ action }) => TITLES[action] ?? action },
              { title: "Of", show: subjectOf },
              { title: "With", show: detailsOf },
              { title: "First approval", show: (approval) => <ApprovalSign approval={approval} /> },
              { title: "Since", show: ({ created_at }) => dateTime(created_at) },
              {
                title: "Decision",
                show: (approval) => (
                  <button
                    type="button"
                    class="small danger"
                    aria-label={`Take back approval ${approval.id}`}
                    onClick={() => setOpened(approval)}
                  >
                    Take back
                  </button>
                ),
              },
            ]}
          />
        )}
      </List>
      {opened !== null && <TakeBackDialog approval={opened} onClose={() => setOpened(null)} onDone={pages.reload} />}
    </>
  );
}

function subjectOf({ action, subject }: Approval): Children {
  if (action === "market.resolve") return <MarketLink id={subject} />;
  if (action === "withdrawal.pay") return <a href={href("/desk/withdrawals")}>withdrawal {subject}</a>;
  if (action === "house.withdraw") return <a href={href("/desk/house")}>the house</a>;
  return subject;
}

/** All that the second must ask for too. */
function detailsOf({ details }: Approval): Children {
  return (
    <ul class="details">
      {Object.entries(details).map(([name, value]) => (
        <li key={name}>
          {words(name)}: {valueText(name, value)}
        </li>
      ))}
    </ul>
  );
}

function valueText(name: string, value: unknown): string {
  if (value === null) return "none";
  if (name === "amount" && typeof value === "number") return `${money(value)} USDC`;
  if (name === "payouts" && Array.isArray(value)) return value.map((bps) => percent(Number(bps))).join(", ");
  return String(value);
}
