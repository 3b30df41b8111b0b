/**
 * Refresh tokens that were spent seconds ago: a browser that reloads, or has two tabs, while a refresh is under way comes
 * again with the cookie just spent, without anybody having stolen it. For a few seconds the last spent secret of a
 * session stands for the token that came after it, which stays as it is so long, and is forgotten then. In memory only: nothing is rotated here.
 */

import { BoundedMap } from "../util/bounded-map.ts";
import type { Session } from "./credentials.ts";
import { MAX_RECENT_ROTATIONS, REFRESH_GRACE_MS } from "./limits.ts";
import { isHashOf } from "./token-hash.ts";

export interface Rotation {
  /** SHA-256 of the secret that was spent. */
  readonly spentHash: string;
  /** The token that is good now. */
  readonly refreshToken: string;
  /** Resolves when the rotation is durable: before that nobody may be told of it. */
  readonly durable: Promise<unknown>;
  /** ms */
  readonly at: number;
}

export class RefreshGrace {
  /** The last of each session, oldest first. */
  private readonly rotations = new BoundedMap<Session, Rotation>(MAX_RECENT_ROTATIONS);

  add(session: Session, rotation: Rotation): void {
    this.rotations.renew(session, rotation);
    const forget = (): void => {
      if (this.rotations.get(session) === rotation) this.rotations.delete(session);
    };
    setTimeout(forget, REFRESH_GRACE_MS).unref();
  }

  /**
   * The rotation that spent or made this secret of the session a moment ago; null where there was none. What it made isn't
   * spent again meanwhile: of a crowd of requests the last could come with a secret that was spent two rotations ago.
   * @param now ms
   */
  find(session: Session, secret: string, now: number): Rotation | null {
    const rotation = this.rotations.get(session);
    if (rotation === undefined || now - rotation.at >= REFRESH_GRACE_MS) return null;
    const isOfRotation = [rotation.spentHash, session.row.refreshHash].some((hash) => isHashOf(hash, secret));
    return isOfRotation ? rotation : null;
  }

  forget(session: Session): void {
    this.rotations.delete(session);
  }
}
