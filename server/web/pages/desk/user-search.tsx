/** Finds a user by email, id or deposit reference, and filters lists by user. */
import { useState } from "preact/hooks";
import { userOfReference } from "../../../wallet/deposit-reference.ts";
import { ApiError } from "../../api.ts";
import { request } from "../../session.ts";
import type { OperatorUser, Page } from "../../types.ts";
import { useAction } from "../../ui/action.ts";
import { Field } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { UserLink } from "./links.tsx";

/** Finds a user by email, id, or the reference of their payments. @throws ApiError */
async function findUser(text: string): Promise<OperatorUser | null> {
  const id = /^\d+$/.test(text) ? text : userOfReference(text);
  if (id !== null) {
    try {
      return await request<OperatorUser>("GET", `/admin/users/${id}`);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }
  const { items } = await request<Page<OperatorUser>>("GET", "/admin/users", { query: { email: text } });
  return items[0] ?? null;
}

/** A search field that reports the user it finds. */
export function UserSearch({ label, onFound }: { label: string; onFound: (user: OperatorUser) => void }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async () => {
    const found = await findUser(text.trim());
    if (found === null) setProblem("No user found.");
    else {
      setText("");
      onFound(found);
    }
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    const isEmpty = text.trim() === "";
    setProblem(isEmpty ? "Enter an email, a user ID or a deposit reference." : null);
    if (!isEmpty) void run();
  };
  return (
    <search>
      <form class="user-search" noValidate onSubmit={submit}>
        <Field
          label={label}
          value={text}
          onInput={setText}
          problem={problem}
          hint="Email, user ID or deposit reference"
        />
        <button type="submit" disabled={isBusy}>
          Find
        </button>
        <ErrorNotice error={error} />
      </form>
    </search>
  );
}

/** Filters a list by user. */
export function UserFilter({ userId, onChange }: { userId: string; onChange: (userId: string | null) => void }) {
  if (userId === "") return <UserSearch label="Filter by user" onFound={({ id }) => onChange(String(id))} />;
  return (
    <p class="row">
      <span>
        Filtered by <UserLink id={Number(userId)} />.
      </span>
      <button type="button" class="small" onClick={() => onChange(null)}>
        Clear filter
      </button>
    </p>
  );
}
