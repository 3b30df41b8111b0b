/** Deposits: credits a user once per reference, and lists all credits. */
import { useState } from "preact/hooks";
import { dateTime, money } from "../../format.ts";
import { search, setSearch } from "../../router.ts";
import { request, user as self } from "../../session.ts";
import type { DepositResponse, OperatorDeposit, OperatorUser, Page } from "../../types.ts";
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
        <h2 id="desk-deposits">Credited deposits</h2>
        <UserFilter userId={userId} onChange={(value) => setSearch({ user_id: value })} />
        <PagedList pages={pages}>
          {(items) => (
            <Table
              caption="Deposits"
              rows={items}
              keyOf={({ id }) => id}
              empty="No deposits yet."
              columns={[
                { title: "ID", show: ({ id }) => id },
                { title: "User", show: ({ user_id }) => (user_id === null ? "house" : <UserLink id={user_id} />) },
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
  const [payment, setPayment] = useState<Payment | null>(null);
  return (
    <section class="panel" aria-labelledby="desk-credit">
      <h2 id="desk-credit">Credit a user</h2>
      {found === null || found.id === self.value?.id ? (
        <>
          {found !== null && <Notice kind="warn">This is your account: another operator must credit it.</Notice>}
          <UserSearch label="User" onFound={setFound} />
        </>
      ) : (
        <PaymentForm
          act="Credit…"
          hint="The payment's reference in your records. Each reference is credited only once."
          other={
            <button type="button" onClick={() => setFound(null)}>
              Change user
            </button>
          }
          onSubmit={setPayment}
        >
          <Facts
            facts={[
              ["User", <UserLink key="user" id={found.id} email={found.email} />],
              ["Balance", `${money(found.balance.total)} USDC`],
              ...(found.suspended_at === null ? [] : [["Status", "suspended"] as const]),
            ]}
          />
        </PaymentForm>
      )}
      {payment !== null && found !== null && (
        <DecisionDialog
          title="Credit user"
          confirm={`Credit ${money(payment.amount)} USDC`}
          noteHint={null}
          act={async () => {
            const text = await credit(found, payment);
            setFound(null);
            return text;
          }}
          onClose={() => setPayment(null)}
          onDone={onDone}
        >
          <Facts facts={[["User", found.email], ...paymentFacts(payment)]} />
          <p>
            The user can trade with it immediately. A deposit can't be reversed here. Under the two-person rule, this
            counts as the first or second approval.
          </p>
        </DecisionDialog>
      )}
    </section>
  );
}

/** Credits a deposit. @returns a message about the result: the reference may have been credited before */
async function credit({ id, email }: OperatorUser, { amount, reference }: Payment): Promise<string> {
  const before = await request<Page<OperatorDeposit>>("GET", "/admin/deposits", { query: { limit: 1 } });
  const body = { user_id: id, amount, reference };
  const deposit = await request<DepositResponse>("POST", "/admin/deposits", { body });
  if (deposit.id === null) return "Approval recorded: another operator must repeat the action.";
  const isOld = deposit.id <= (before.items[0]?.id ?? 0);
  if (isOld) return `This reference was already credited, ${dateTime(deposit.created_at)}: nothing was added.`;
  return `Credited ${money(deposit.amount)} USDC to ${email}.`;
}
