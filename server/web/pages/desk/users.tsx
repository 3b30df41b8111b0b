/** Users: found by address, tier, role and suspension; one of them where the address names it. */
import { date } from "../../format.ts";
import { href, navigate, search, setSearch } from "../../router.ts";
import type { OperatorUser } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Select } from "../../ui/fields.tsx";
import { Table } from "../../ui/table.tsx";
import { usePages } from "../../ui/use-data.ts";
import { Heading } from "./heading.tsx";
import { UserLink } from "./links.tsx";
import { PagedList } from "./paged-list.tsx";
import { UserDesk } from "./user.tsx";
import { UserSearch } from "./user-search.tsx";
import { UserState } from "./user-status.tsx";

const TIERS = [
  ["", "All"],
  ["0", "0"],
  ["1", "1"],
  ["2", "2"],
] as const;

const ROLES = [
  ["", "All"],
  ["user", "Users"],
  ["operator", "Operators"],
] as const;

const SUSPENDED = [
  ["", "All"],
  ["true", "Suspended"],
  ["false", "Not suspended"],
] as const;

export function Users() {
  const user = search.value.get("user");
  return user === null ? <UserList /> : <UserDesk key={user} id={user} />;
}

function UserList() {
  const query = search.value;
  const asked = {
    kyc_tier: query.get("kyc_tier") ?? "",
    role: query.get("role") ?? "",
    suspended: query.get("suspended") ?? "",
  };
  const pages = usePages<OperatorUser>("/admin/users", asked);
  return (
    <>
      <Heading>Users</Heading>
      <div class="filters">
        <UserSearch label="One user" onFound={({ id }) => navigate(`/desk/users?user=${id}`)} />
        <Select
          label="KYC tier"
          value={asked.kyc_tier}
          options={TIERS}
          onChange={(value) => setSearch({ kyc_tier: value })}
        />
        <Select label="Role" value={asked.role} options={ROLES} onChange={(value) => setSearch({ role: value })} />
        <Select
          label="Suspended"
          value={asked.suspended}
          options={SUSPENDED}
          onChange={(value) => setSearch({ suspended: value })}
        />
      </div>
      <PagedList pages={pages}>
        {(items) => (
          <Table
            caption="Users"
            rows={items}
            keyOf={({ id }) => id}
            empty={pages.more === null ? "Nobody fits." : "Nobody among the newest users fits. Look further."}
            columns={[
              { title: "No.", show: ({ id }) => id },
              { title: "E-mail", show: ({ id, email }) => <UserLink id={id} email={email} /> },
              { title: "Tier", isNumber: true, show: ({ kyc_tier }) => kyc_tier },
              { title: "State", show: (each) => <UserState user={each} /> },
              { title: "Balance, USDC", isNumber: true, show: ({ balance }) => <Money micro={balance.total} /> },
              { title: "Since", show: ({ created_at }) => date(created_at) },
              {
                title: "Log",
                show: ({ id, email }) => (
                  <a href={href(`/desk/audit?user_id=${id}`)} aria-label={`Audit log of ${email}`}>
                    Audit
                  </a>
                ),
              },
            ]}
          />
        )}
      </PagedList>
    </>
  );
}
