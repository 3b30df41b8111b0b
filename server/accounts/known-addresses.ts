/**
 * The addresses from which accounts signed in recently: they distinguish an owner from strangers who guess passwords.
 * Keeps a few addresses per account for a bounded number of accounts, and evicts the account that signed in longest ago.
 * Addresses are as rate limits count them: an IPv4 address, or the /64 of an IPv6 address. Reads no clock and does no
 * I/O: the session rows, ended ones included, restore it after a restart.
 */

import { BoundedMap } from "../util/bounded-map.ts";
import { KNOWN_ADDRESS_MS, MAX_KNOWN_ADDRESS_USERS, MAX_KNOWN_ADDRESSES_PER_USER } from "./limits.ts";

interface SignIn {
  readonly client: string;
  /** ms: the latest sign-in from there. */
  readonly at: number;
}

/** Growing one large Map stops the thread for tens of ms; a shard of 4,096 users does not. */
const SHARDS = 64;

/** By user, the one that signed in longest ago first; each user's addresses likewise. */
type Shard = BoundedMap<number, readonly SignIn[]>;

export class KnownAddresses {
  /** By user id modulo the number of shards: ids are consecutive, so the shards fill evenly. */
  private readonly shards = Array.from(
    { length: SHARDS },
    (): Shard => new BoundedMap(MAX_KNOWN_ADDRESS_USERS / SHARDS),
  );

  /** Records a sign-in. @param client "" when the address is unknown @param now ms, never less than in earlier calls */
  note(userId: number, client: string, now: number): void {
    if (client === "") return;
    const shard = this.shardOf(userId);
    const others = (shard.get(userId) ?? []).filter((each) => each.client !== client);
    shard.renew(userId, [...others.slice(1 - MAX_KNOWN_ADDRESSES_PER_USER), { client, at: now }]);
  }

  /** True if the account signed in from there during the last 30 days. */
  has(userId: number, client: string, now: number): boolean {
    const found = this.shardOf(userId)
      .get(userId)
      ?.find((each) => each.client === client);
    return found !== undefined && now - found.at < KNOWN_ADDRESS_MS;
  }

  /** The account was deleted. */
  forget(userId: number): void {
    this.shardOf(userId).delete(userId);
  }

  forgetExpired(now: number): void {
    for (const shard of this.shards) {
      for (const [userId, signIns] of shard) {
        const latest = signIns.at(-1);
        if (latest !== undefined && now - latest.at < KNOWN_ADDRESS_MS) break;
        shard.delete(userId);
      }
    }
  }

  private shardOf(userId: number): Shard {
    return this.shards[userId % SHARDS]!;
  }
}
