/** Deposits: credits a user once per reference, lists all credits, and takes one back. */
import { useState } from "preact/hooks";
import { exactMoney } from "../../../util/format.ts";
import { dateTime } from "../../dates.ts";
import { parseMoney } from "../../parse.ts";
import { required } from "../../required.ts";
import { search, setSearch } from "../../router.ts";
import { request, user as self } from "../../session.ts";
import type { DepositResponse, OperatorDeposit, OperatorUser, Page } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { AMOUNT, Field, NumberField } from "../../ui/fields.tsx";
import { Notice } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { Table } from "../../ui/table.tsx";
import { DecisionDialog } from "./decision-dialog.tsx";
import { Facts } from "./facts.tsx";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { amountProblem, type Payment, PaymentForm, paymentFacts, referenceProblem, WAITS } from "./payment-form.tsx";
import { UserFilter, UserSearch } from "./user-search.tsx";

export function Deposits() {
  const userId = search.value.get("user_id") ?? "";
  const pages = usePages<OperatorDeposit>("/admin/deposits", { user_id: userId });
  const [reversed, setReversed] = useState<OperatorDeposit | null>(null);
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
                { title: "Amount, USDC", isNumber: true, show: ({ amount }) => <Money isExact micro={amount} /> },
                { title: "Reference", show: (deposit) => <Reference deposit={deposit} /> },
                { title: "Time", show: ({ created_at }) => dateTime(created_at) },
                {
                  title: "Correction",
                  show: (deposit) =>
                    deposit.reverses === null &&
                    deposit.user_id !== self.value?.id && (
                      <button
                        type="button"
                        class="small danger"
                        aria-label={`Reverse deposit ${deposit.id}`}
                        onClick={() => setReversed(deposit)}
                      >
                        Reverse…
                      </button>
                    ),
                },
              ]}
            />
          )}
        </PagedList>
        {reversed !== null && (
          <ReverseDialog deposit={reversed} onClose={() => setReversed(null)} onDone={pages.reload} />
        )}
      </section>
    </>
  );
}

function Reference({ deposit: { reference, reverses } }: { deposit: OperatorDeposit }) {
  return (
    <>
      <span class="mono wide">{reference}</span>
      {reverses !== null && <small class="below faint">reverses deposit {reverses}</small>}
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
              ["Balance", `${exactMoney(found.balance.total)} USDC`],
              ...(found.suspended_at === null ? [] : [["Status", "suspended"] as const]),
            ]}
          />
        </PaymentForm>
      )}
      {payment !== null && found !== null && (
        <DecisionDialog
          title="Credit user"
          confirm={`Credit ${exactMoney(payment.amount)} USDC`}
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
            The user can trade with it immediately. A deposit to the wrong account can be reversed, as far as its money
            is still available. Under the two-person rule, this counts as the first or second approval.
          </p>
        </DecisionDialog>
      )}
    </section>
  );
}

/** Credits a deposit. @returns a message about the result: the reference may have been credited before */
async function credit({ id, email }: OperatorUser, { amount, reference }: Payment): Promise<string> {
  const newest = await newestDeposit();
  const body = { user_id: id, amount, reference };
  const deposit = await request<DepositResponse>("POST", "/admin/deposits", { body });
  if (deposit.id === null) return WAITS;
  if (deposit.id <= newest) return repeatText(deposit);
  return `Credited ${exactMoney(deposit.amount)} USDC to ${email}.`;
}

/** The id of the newest entry: a payment on record has none above it. */
async function newestDeposit(): Promise<number> {
  const { items } = await request<Page<OperatorDeposit>>("GET", "/admin/deposits", { query: { limit: 1 } });
  return items[0]?.id ?? 0;
}

const repeatText = ({ id, created_at }: DepositResponse): string =>
  `The reference was already used for entry ${id}, ${dateTime(created_at)}: nothing was changed.`;

/** Takes back a deposit to the wrong account, or a part of it. */
function ReverseDialog({
  deposit: { id, user_id, amount: credited, reference: original },
  onClose,
  onDone,
}: {
  deposit: OperatorDeposit;
  onClose: () => void;
  onDone: () => void;
}) {
  const [amount, setAmount] = useState(exactMoney(credited));
  const [reference, setReference] = useState("");
  const [isChecked, setChecked] = useState(false);
  const problems = { amount: amountProblem(amount), reference: referenceProblem(reference.trim()) };
  const shown = isChecked ? problems : { amount: null, reference: null };
  const check = (): boolean => {
    setChecked(true);
    return problems.amount === null && problems.reference === null;
  };
  const reverse = async (note: string | null): Promise<string> => {
    const newest = await newestDeposit();
    const micro = required(parseMoney(amount), "a valid amount");
    const body = { amount: micro, reference: reference.trim(), note };
    const reversal = await request<DepositResponse>("POST", `/admin/deposits/${id}/reverse`, { body });
    if (reversal.id === null) return WAITS;
    return reversal.id > newest ? `Took back ${exactMoney(micro)} USDC of deposit ${id}.` : repeatText(reversal);
  };
  return (
    <DecisionDialog
      title={`Reverse deposit ${id}`}
      confirm="Take back"
      isDangerous
      noteHint="For the audit log."
      check={check}
      act={reverse}
      onClose={onClose}
      onDone={onDone}
    >
      <Facts
        facts={[
          ["Account", user_id === null ? "the house" : <UserLink key="user" id={user_id} />],
          ...paymentFacts({ amount: credited, reference: original }),
        ]}
      />
      <p>
        Takes at most what is available: money in live orders, pending withdrawals and shares stays. Under the
        two-person rule, this counts as the first or second approval.
      </p>
      <NumberField label="Amount" unit="USDC" kind={AMOUNT} value={amount} onInput={setAmount} problem={shown.amount} />
      <Field
        label="Reference"
        value={reference}
        onInput={setReference}
        problem={shown.reference}
        hint="Of the correction in your records. Each reference counts only once."
      />
    </DecisionDialog>
  );
}
