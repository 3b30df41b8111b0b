/**
 * From which addresses accounts signed in lately: what tells an owner from the strangers who try passwords. Holds a few
 * addresses of each account, of no more accounts than its bound; past it one that signed in long ago goes.
 * Knows addresses as limits count them: an IPv4 address, or the /64 of an IPv6 address. Reads no clock, and does no I/O:
 * the rows of sessions, ended ones too, bring it back after a restart.
 */

import { BoundedMap } from "../util/bounded-map.ts";
import { KNOWN_ADDRESS_MS, MAX_KNOWN_ADDRESS_USERS, MAX_KNOWN_ADDRESSES_PER_USER } from "./limits.ts";

interface SignIn {
  readonly client: string;
  /** ms: the last one from there. */
  readonly at: number;
}

/** A large Map stops the thread for tens of ms each time that it copies itself; a piece of 4,096 users doesn't. */
const PIECES = 64;

/** By user, who signed in longest ago first; each one's addresses likewise. */
type Piece = BoundedMap<number, readonly SignIn[]>;

export class KnownAddresses {
  /** Each with the users whose ids end alike: ids come in turn, and so the pieces fill evenly. */
  private readonly pieces = Array.from(
    { length: PIECES },
    (): Piece => new BoundedMap(MAX_KNOWN_ADDRESS_USERS / PIECES),
  );

  /** The account signed in. @param client "" where the address is unknown @param now ms, no less than at calls before */
  note(userId: number, client: string, now: number): void {
    if (client === "") return;
    const piece = this.pieceOf(userId);
    const others = (piece.get(userId) ?? []).filter((each) => each.client !== client);
    piece.renew(userId, [...others.slice(1 - MAX_KNOWN_ADDRESSES_PER_USER), { client, at: now }]);
  }

  /** Whether the account signed in from there during the last 30 days. */
  has(userId: number, client: string, now: number): boolean {
    const found = this.pieceOf(userId)
      .get(userId)
      ?.find((each) => each.client === client);
    return found !== undefined && now - found.at < KNOWN_ADDRESS_MS;
  }

  /** The account is gone. */
  forget(userId: number): void {
    this.pieceOf(userId).delete(userId);
  }

  forgetExpired(now: number): void {
    for (const piece of this.pieces) {
      for (const [userId, signIns] of piece) {
        if (now - signIns.at(-1)!.at < KNOWN_ADDRESS_MS) break;
        piece.delete(userId);
      }
    }
  }

  private pieceOf(userId: number): Piece {
    return this.pieces[userId % PIECES]!;
  }
}
