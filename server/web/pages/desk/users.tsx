/** Users by email, tier, role and suspension; a single user if the address names one. */
import { date } from "../../dates.ts";
import { href, navigate, search, setSearch } from "../../router.ts";
import type { OperatorUser } from "../../types.ts";
import { Money } from "../../ui/amounts.tsx";
import { Select } from "../../ui/fields.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { Table } from "../../ui/table.tsx";
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
  const filters = {
    kyc_tier: query.get("kyc_tier") ?? "",
    role: query.get("role") ?? "",
    suspended: query.get("suspended") ?? "",
  };
  const pages = usePages<OperatorUser>("/admin/users", filters);
  return (
    <>
      <Heading>Users</Heading>
      <div class="filters">
        <UserSearch label="Find user" onFound={({ id }) => navigate(`/desk/users?user=${id}`)} />
        <Select
          label="KYC tier"
          value={filters.kyc_tier}
          options={TIERS}
          onChange={(value) => setSearch({ kyc_tier: value })}
        />
        <Select label="Role" value={filters.role} options={ROLES} onChange={(value) => setSearch({ role: value })} />
        <Select
          label="Suspended"
          value={filters.suspended}
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
            empty={pages.more === null ? "No results" : "No results among the newest users. Show more."}
            columns={[
              { title: "ID", show: ({ id }) => id },
              { title: "Email", show: ({ id, email }) => <UserLink id={id} email={email} /> },
              { title: "Tier", isNumber: true, show: ({ kyc_tier }) => kyc_tier },
              { title: "Status", show: (each) => <UserState user={each} /> },
              {
                title: "Balance, USDC",
                isNumber: true,
                show: ({ balance }) => <Money isExact micro={balance.total} />,
              },
              { title: "Created", show: ({ created_at }) => date(created_at) },
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
