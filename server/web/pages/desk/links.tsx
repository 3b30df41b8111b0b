/** Links to a user and a market at the desk. */
import { href } from "../../router.ts";

export function UserLink({ id, email }: { id: number; email?: string }) {
  return <a href={href(`/desk/users?user=${id}`)}>{email ?? `user ${id}`}</a>;
}

export function MarketLink({ id, text }: { id: number; text?: string }) {
  return <a href={href(`/desk/markets?market=${id}`)}>{text ?? `market ${id}`}</a>;
}
