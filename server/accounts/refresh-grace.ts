/**
 * Grace period for refresh tokens that were rotated seconds ago: a browser that reloads during a refresh, or has two tabs,
 * sends the old cookie again although nobody stole it. For a few seconds, the last rotated secret of a session stands for
 * its successor, which does not rotate again meanwhile. In memory only; rotates nothing itself.
 */

import { BoundedMap } from "../util/bounded-map.ts";
import type { Session } from "./credentials.ts";
import { MAX_RECENT_ROTATIONS, REFRESH_GRACE_MS } from "./limits.ts";
import { isHashOf } from "./token-hash.ts";

export interface Rotation {
  /** SHA-256 of the secret that was rotated out. */
  readonly spentHash: string;
  /** The token that is valid now. */
  readonly refreshToken: string;
  /** Resolves once the rotation is durable: no response may contain the new token before. */
  readonly durable: Promise<unknown>;
  /** ms */
  readonly at: number;
}

export class RefreshGrace {
  /** The last rotation of each session, oldest first. */
  private readonly rotations = new BoundedMap<Session, Rotation>(MAX_RECENT_ROTATIONS);

  add(session: Session, rotation: Rotation): void {
    this.rotations.renew(session, rotation);
    const forget = (): void => {
      if (this.rotations.get(session) === rotation) this.rotations.delete(session);
    };
    setTimeout(forget, REFRESH_GRACE_MS).unref();
  }

  /**
   * The recent rotation that replaced or created this secret of the session; null if there is none. The new secret does
   * not rotate again meanwhile: otherwise the last of many parallel requests could bring a secret two rotations old.
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
