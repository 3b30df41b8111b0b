/** The caller's money: balance, every change of it, deposits and withdrawals. */
import { useEffect, useState } from "preact/hooks";
import "./portfolio.css";
import "./wallet.css";
import { MAX_ADDRESS_LENGTH, MAX_PAYMENT_MICRO } from "../../../engine/limits.ts";
import { evmAddressFault } from "../../wallet/evm-address.ts";
import { balance } from "../account-state.ts";
import { ApiError, type Query } from "../api.ts";
import { explain } from "../error-messages.ts";
import { dateTime, money, readMoney, signedMoney, words } from "../format.ts";
import { useRetryKey } from "../idempotency-key.ts";
import { marketName, outcomeName, useMarkets } from "../market-cache.ts";
import { href, search, setSearch } from "../router.ts";
import { request, requestRaw, user } from "../session.ts";
import type { Deposit, Limits, Transaction, Withdrawal } from "../types.ts";
import { Money } from "../ui/amounts.tsx";
import { Badge } from "../ui/badge.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Field, Select } from "../ui/fields.tsx";
import { ErrorNotice, Loading, Notice } from "../ui/notices.tsx";
import { type Column, More, Table } from "../ui/table.tsx";
import { useSections } from "../ui/tabs.tsx";
import { toast } from "../ui/toast.tsx";
import { type Pages, useAction, useLoaded, usePages } from "../ui/use-data.ts";

const SECTIONS = [
  ["transactions", "Transactions"],
  ["deposits", "Deposits"],
  ["withdrawals", "Withdrawals"],
] as const;

export default function WalletPage() {
  useEffect(() => {
    document.title = "Wallet";
  }, []);
  const { section, tabs } = useSections("/wallet", "Parts of the wallet", SECTIONS);
  return (
    <>
      <h1>Wallet</h1>
      <Funds />
      {tabs}
      {section === "transactions" && <Transactions />}
      {section === "deposits" && <Deposits />}
      {section === "withdrawals" && <Withdrawals />}
    </>
  );
}

const RELOAD_MS = 5_000;

function Funds() {
  const limits = useLoaded<Limits>((signal) => request("GET", "/me/limits", { signal }), "limits");
  // What changes the balance changes the activity; a bot's orders do so many times a second.
  useEffect(() => {
    let seen = balance.peek();
    const timer = setInterval(() => {
      if (balance.peek() !== seen) limits.reload();
      seen = balance.peek();
    }, RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
  if (balance.value === null) return <Loading what="Loading your balance" />;
  const { available, held, total } = balance.value;
  const activity = limits.data?.daily_activity ?? null;
  return (
    <dl class="totals">
      <div>
        <dt>Available</dt>
        <dd class="large">
          {money(available)} <small>USDC</small>
        </dd>
      </div>
      <div>
        <dt>Held by orders and withdrawals</dt>
        <dd>{money(held)}</dd>
      </div>
      <div>
        <dt>Total</dt>
        <dd>{money(total)}</dd>
      </div>
      <div>
        <dt>Daily activity, of {activity === null ? "–" : money(activity.limit)}</dt>
        <dd>
          {activity === null ? "–" : money(activity.used)}
          {activity !== null && activity.limit > 0 && (
            <meter class="used" min={0} max={activity.limit} value={activity.used} aria-hidden="true" />
          )}
          <small class="below faint">Purchases, splits and open buys; resets at 00:00 UTC.</small>
        </dd>
      </div>
    </dl>
  );
}

// ---------------------------------------------------------------- transactions

const TYPES = [
  ["", "All"],
  ["trade", "Trades"],
  ["fee", "Fees"],
  ["rebate", "Rebates"],
  ["deposit", "Deposits"],
  ["withdrawal", "Withdrawals"],
  ["split", "Splits"],
  ["merge", "Merges"],
  ["settlement", "Settlements"],
] as const;

/** Where a day of the person's own zone begins, ms; null where the text is no day. */
function dayStart(text: string, later = 0): number | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  return match === null ? null : new Date(Number(match[1]), Number(match[2]) - 1, Number(match[3]) + later).getTime();
}

function Transactions() {
  const params = search.value;
  const type = TYPES.find(([name]) => name === params.get("type"))?.[0] ?? "";
  const [from, to] = [params.get("from") ?? "", params.get("to") ?? ""];
  const [fromMs, endMs] = [dayStart(from), dayStart(to, 1)];
  const isBackward = fromMs !== null && endMs !== null && fromMs >= endMs;
  const query: Query = { type, from: fromMs, to: endMs === null ? null : endMs - 1 };
  const { items, error, more, reload } = usePages<Transaction>(isBackward ? null : "/wallet/transactions", query);
  const total = balance.value?.total;
  const [shownTotal, setShownTotal] = useState(total);
  useEffect(() => setShownTotal(total), [items]);
  const markets = useMarkets((items ?? []).map(({ market_id }) => market_id).filter((id) => id !== null));
  const columns: Column<Transaction>[] = [
    { title: "Time", show: ({ created_at }) => dateTime(created_at) },
    { title: "Type", show: (row) => words(row.type as string) },
    {
      title: "For",
      show: ({ market_id, outcome_id, order_id }) => {
        if (market_id === null) return "–";
        const market = markets.get(market_id);
        return (
          <span class="order-name">
            <a href={href(`/markets/${market?.slug ?? market_id}`)}>{marketName(market, market_id)}</a>
            <small class="faint">
              {outcome_id !== null && outcomeName(market, outcome_id)}
              {order_id !== null && ` order ${order_id}`}
            </small>
          </span>
        );
      },
    },
    {
      title: "Amount",
      isNumber: true,
      show: ({ amount }) => <span class={amount > 0 ? "up" : ""}>{signedMoney(amount)}</span>,
    },
    { title: "Balance after", isNumber: true, show: ({ balance_after }) => <Money micro={balance_after} /> },
  ];
  return (
    <section class="panel" aria-labelledby="transactions-title">
      <div class="section-head">
        <h2 id="transactions-title">Transactions</h2>
        <Download query={query} isOff={isBackward} />
      </div>
      <div class="transaction-filters">
        <Select label="Type" value={type} options={TYPES} onChange={(name) => setSearch({ type: name })} />
        <Field label="From" type="date" value={from} onInput={(text) => setSearch({ from: text })} />
        <Field
          label="To"
          type="date"
          value={to}
          onInput={(text) => setSearch({ to: text })}
          problem={isBackward ? "This is before the beginning." : null}
        />
      </div>
      {items !== null && shownTotal !== total && (
        <Notice>
          There are newer transactions.{" "}
          <button type="button" class="small" onClick={reload}>
            Show them
          </button>
        </Notice>
      )}
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && !isBackward && <Loading />}
      {items !== null && (
        <Table
          caption="Changes of your balance"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty={
            type === "" && from === "" && to === "" ? "Nothing happened yet." : "Nothing of that kind in that time."
          }
        />
      )}
      <More more={more} />
    </section>
  );
}

/** The whole of what the filters say, as a file. */
function Download({ query, isOff }: { query: Query; isOff: boolean }) {
  const [isCut, setCut] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setCut(false);
    const response = await requestRaw("GET", "/wallet/transactions", { query, accept: "text/csv" });
    let file: Blob;
    try {
      file = await response.blob();
    } catch {
      // It ends without its last part where the exchange couldn't finish it.
      setCut(true);
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = "transactions.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
  return (
    <>
      <button type="button" class="small" disabled={isBusy || isOff} onClick={() => void run()}>
        {isBusy ? "Downloading…" : "Download CSV"}
      </button>
      {isCut && (
        <p class="notice bad" role="alert">
          The file was cut short and isn't kept. Try again, or choose a shorter time.
        </p>
      )}
      <ErrorNotice error={error} />
    </>
  );
}

// ---------------------------------------------------------------- deposits

function Deposits() {
  const { items, error, more, reload } = usePages<Deposit>("/wallet/deposits");
  const columns: Column<Deposit>[] = [
    { title: "Time", show: ({ created_at }) => dateTime(created_at) },
    { title: "Reference", show: ({ reference }) => <span class="mono long">{reference}</span> },
    { title: "Amount", isNumber: true, show: ({ amount }) => <Money micro={amount} /> },
  ];
  return (
    <section class="panel" aria-labelledby="deposits-title">
      <h2 id="deposits-title">Deposits</h2>
      <p class="hint">
        The exchange's operators credit what you pay in; it is available at once, and shown here with the payment's
        reference. Tell them your user id: <b>{user.value?.id}</b>.
      </p>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="Your deposits"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty="Nothing was paid in yet."
        />
      )}
      <More more={more} />
    </section>
  );
}

// ---------------------------------------------------------------- withdrawals

const STATUS_TONES: Readonly<Record<string, "" | "good" | "bad" | "warn">> = {
  pending: "warn",
  paid: "good",
  refused: "bad",
};

function Withdrawals() {
  const list = usePages<Withdrawal>("/wallet/withdrawals");
  return (
    <>
      <section class="panel withdraw" aria-labelledby="withdraw-title">
        <h2 id="withdraw-title">Withdraw</h2>
        {user.value !== null && user.value.kyc_tier < 2 ? (
          <Notice>
            Withdrawals need a verified identity (tier 2); your account has tier {user.value.kyc_tier}.{" "}
            <a href={href("/account")}>
              {user.value.kyc_tier === 0 ? "Verify your phone first" : "Verify your identity"}
            </a>
          </Notice>
        ) : (
          <WithdrawForm onDone={list.reload} />
        )}
      </section>
      <WithdrawalList list={list} />
    </>
  );
}

/** What can be told here; what else the exchange pays to, it says itself. */
function addressFault(address: string): string | null {
  if (!/^[!-~]+$/.test(address)) return "An address has letters, digits and signs, and no spaces.";
  const fault = /^0x/i.test(address) ? evmAddressFault(address) : null;
  return fault && `${fault[0]!.toUpperCase()}${fault.slice(1)}.`;
}

function WithdrawForm({ onDone }: { onDone: () => void }) {
  const [amountText, setAmount] = useState("");
  const [address, setAddress] = useState("");
  const [hasTried, setTried] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const available = balance.value?.available ?? 0;
  const amount = readMoney(amountText);
  const amountProblem =
    amountText === ""
      ? hasTried
        ? "Type an amount."
        : null
      : amount === null || amount === 0
        ? "An amount of USDC, with six decimals at most."
        : amount > available
          ? `Your available balance is ${money(available)} USDC.`
          : amount > MAX_PAYMENT_MICRO
            ? `At most ${money(MAX_PAYMENT_MICRO)} USDC at a time.`
            : null;
  const addressProblem =
    address === "" ? (hasTried ? "Type where it is to be paid to." : null) : addressFault(address.trim());
  const isReady = amount !== null && amountProblem === null && address !== "" && addressProblem === null;
  const retryKey = useRetryKey();
  const { run, isBusy, error, clear } = useAction(async () => {
    const body = { amount, address: address.trim() };
    try {
      await retryKey.send(body, (idempotencyKey) => request("POST", "/wallet/withdrawals", { body, idempotencyKey }));
    } catch (thrown) {
      // It may have been made: the list tells.
      if (!(thrown instanceof ApiError) || thrown.status === 0 || thrown.status >= 500) onDone();
      throw thrown;
    }
    toast(`A withdrawal of ${money(amount!)} USDC was asked for.`);
    setAmount("");
    setTried(false);
    setAsked(false);
    onDone();
  });
  return (
    <>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          clear();
          if (isReady) setAsked(true);
        }}
      >
        <Field
          label="Amount"
          unit="USDC"
          inputMode="decimal"
          autoComplete="off"
          value={amountText}
          onInput={setAmount}
          problem={amountProblem}
          hint={
            <>
              {money(available)} available.{" "}
              <button type="button" class="link" onClick={() => setAmount(money(available).replaceAll(",", ""))}>
                All
              </button>
            </>
          }
        />
        <Field
          label="Address"
          autoComplete="off"
          maxLength={MAX_ADDRESS_LENGTH}
          value={address}
          onInput={setAddress}
          problem={addressProblem}
          hint="Where it is to be paid to. Check it: what was paid can't be called back."
        />
        <button type="submit" class="primary">
          Withdraw
        </button>
      </form>
      {isAsked && isReady && (
        <Dialog title="Ask for this withdrawal?" onClose={() => setAsked(false)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void run();
            }}
          >
            <p>
              <b>{money(amount)} USDC</b> to <span class="mono long">{address.trim()}</span>
            </p>
            <p class="hint">
              The amount is held at once and can't be traded with. An operator pays it; until then you can cancel it.
            </p>
            <ErrorNotice error={error} />
            <div class="row">
              <button type="submit" class="primary" disabled={isBusy}>
                {isBusy ? "Asking…" : "Withdraw"}
              </button>
              <button type="button" onClick={() => setAsked(false)}>
                Back
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}

function WithdrawalList({ list }: { list: Pages<Withdrawal> }) {
  const { items, error, more, reload, set } = list;
  const columns: Column<Withdrawal>[] = [
    { title: "Asked for", show: ({ created_at }) => dateTime(created_at) },
    { title: "Amount", isNumber: true, show: ({ amount }) => <Money micro={amount} /> },
    { title: "Address", show: ({ address }) => <span class="mono long">{address}</span> },
    {
      title: "State",
      show: ({ status, decided_at, reference, note }) => (
        <span>
          <Badge text={words(status as string)} tone={STATUS_TONES[status as string] ?? ""} />
          {decided_at !== null && <small class="below faint">{dateTime(decided_at)}</small>}
          {reference !== null && <small class="below faint long">{reference}</small>}
          {note !== null && <small class="below">{note}</small>}
        </span>
      ),
    },
    {
      title: "Change",
      isNumber: true,
      show: (withdrawal) =>
        withdrawal.status === "pending" ? (
          <CancelWithdrawal
            withdrawal={withdrawal}
            onDone={(changed) => set((before) => before.map((each) => (each.id === changed.id ? changed : each)))}
            onRefused={reload}
          />
        ) : (
          "–"
        ),
    },
  ];
  return (
    <section class="panel" aria-labelledby="withdrawals-title">
      <div class="section-head">
        <h2 id="withdrawals-title" tabIndex={-1}>
          Your withdrawals
        </h2>
        <button type="button" class="small" onClick={reload}>
          Look again
        </button>
      </div>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="Your withdrawals"
          columns={columns}
          rows={items}
          keyOf={({ id }) => id}
          empty="You have asked for no withdrawal yet."
        />
      )}
      <More more={more} />
    </section>
  );
}

function CancelWithdrawal({
  withdrawal,
  onDone,
  onRefused,
}: {
  withdrawal: Withdrawal;
  onDone: (changed: Withdrawal) => void;
  onRefused: () => void;
}) {
  const { run, isBusy } = useAction(async () => {
    try {
      onDone(await request<Withdrawal>("DELETE", `/wallet/withdrawals/${withdrawal.id}`));
      toast(`${money(withdrawal.amount)} USDC are available again.`);
      document.getElementById("withdrawals-title")?.focus();
    } catch (error) {
      toast(explain(error), true);
      onRefused();
    }
  });
  return (
    <button
      type="button"
      class="small danger"
      disabled={isBusy}
      aria-label={`Cancel the withdrawal of ${money(withdrawal.amount)} USDC`}
      onClick={() => void run()}
    >
      {isBusy ? "Canceling" : "Cancel"}
    </button>
  );
}
