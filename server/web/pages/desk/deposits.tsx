/** What came in for users: credited once for each reference. */
import { useState } from "preact/hooks";
import { dateTime, money } from "../../format.ts";
import { search, setSearch } from "../../router.ts";
import { request, user as self } from "../../session.ts";
import type { NewDepositAnswer, OperatorDeposit, OperatorUser, Page } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Notice } from "../../ui/notices.tsx";
import { Table } from "../../ui/table.tsx";
import { usePages } from "../../ui/use-data.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { type Payment, PaymentForm, paymentFacts } from "./payment-form.tsx";
import { UserFilter, UserSearch } from "./user-search.tsx";

export function Deposits() {
  const userId = search.value.get("user_id") ?? "";
  const pages = usePages<OperatorDeposit>("/admin/deposits", { user_id: userId });
  return (
    <>
      <Heading>Deposits</Heading>
      <Credit onDone={pages.reload} />
      <section class="stack" aria-labelledby="desk-deposits">
        <h2 id="desk-deposits">What was credited</h2>
        <UserFilter userId={userId} onChange={(value) => setSearch({ user_id: value })} />
        <PagedList pages={pages}>
          {(items) => (
            <Table
              caption="Deposits"
              rows={items}
              keyOf={({ id }) => id}
              empty="Nothing was credited yet."
              columns={[
                { title: "No.", show: ({ id }) => id },
                { title: "To", show: ({ user_id }) => (user_id === null ? "the house" : <UserLink id={user_id} />) },
                { title: "Amount, USDC", isNumber: true, show: ({ amount }) => <Money micro={amount} /> },
                { title: "Reference", show: ({ reference }) => <span class="mono wide">{reference}</span> },
                { title: "Credited", show: ({ created_at }) => dateTime(created_at) },
              ]}
            />
          )}
        </PagedList>
      </section>
    </>
  );
}

function Credit({ onDone }: { onDone: () => void }) {
  const [found, setFound] = useState<OperatorUser | null>(null);
  const [asked, setAsked] = useState<Payment | null>(null);
  return (
    <section class="panel" aria-labelledby="desk-credit">
      <h2 id="desk-credit">Credit a user</h2>
      {found === null || found.id === self.value?.id ? (
        <>
          {found !== null && <Notice kind="warn">This is you: another operator must credit your account.</Notice>}
          <UserSearch label="User" onFound={setFound} />
        </>
      ) : (
        <PaymentForm
          act="Credit…"
          hint="What the payment is known by elsewhere. The same reference counts once, whoever sends it again."
          other={
            <button type="button" onClick={() => setFound(null)}>
              Another user
            </button>
          }
          onAsk={setAsked}
        >
          <Facts
            facts={[
              ["User", <UserLink key="user" id={found.id} email={found.email} />],
              ["Balance", `${money(found.balance.total)} USDC`],
              ...(found.suspended_at === null ? [] : [["State", "suspended"] as const]),
            ]}
          />
        </PaymentForm>
      )}
      {asked !== null && found !== null && (
        <DecisionDialog
          title="Credit the user"
          confirm={`Credit ${money(asked.amount)} USDC`}
          noteHint={null}
          act={async () => {
            const text = await credit(found, asked);
            setFound(null);
            return text;
          }}
          onClose={() => setAsked(null)}
          onDone={onDone}
        >
          <Facts facts={[["User", found.email], ...paymentFacts(asked)]} />
          <p>
            The user can trade with it at once. A deposit can't be taken back here. Where two operators must agree, this
            is the first approval, or the second.
          </p>
        </DecisionDialog>
      )}
    </section>
  );
}

/** @returns what happened, in words: the reference may have been credited before */
async function credit({ id, email }: OperatorUser, { amount, reference }: Payment): Promise<string> {
  const before = await request<Page<OperatorDeposit>>("GET", "/admin/deposits", { query: { limit: 1 } });
  const body = { user_id: id, amount, reference };
  const made = await request<NewDepositAnswer>("POST", "/admin/deposits", { body });
  if (made.id === null) return "Your approval is kept: another operator must ask for the same.";
  const isOld = made.id <= (before.items[0]?.id ?? 0);
  if (isOld) return `This reference was credited before, ${dateTime(made.created_at)}: nothing was added.`;
  return `${money(made.amount)} USDC are credited to ${email}.`;
}
