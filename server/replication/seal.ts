/**
 * What only boxes with the same STANDBY_SECRET can say to each other and read: signatures and sealed contents. Pure but for
 * randomness; reads no clock.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Another box sealed or signed it with another secret, or somebody changed it. */
export class WrongSecret extends Error {}

export class Seal {
  private readonly signing: Buffer;
  private readonly sealing: Buffer;

  /** @param name of the exchange: another one with the same secret has other keys */
  constructor(secret: string, name: string) {
    const derive = (use: string): Buffer => Buffer.from(hkdfSync("sha256", secret, name, use, KEY_BYTES));
    this.signing = derive("sign");
    this.sealing = derive("seal");
  }

  /** Base64url. */
  sign(text: string): string {
    return createHmac("sha256", this.signing).update(text).digest("base64url");
  }

  isSigned(text: string, signature: string): boolean {
    const [own, given] = [Buffer.from(this.sign(text)), Buffer.from(signature)];
    return own.length === given.length && timingSafeEqual(own, given);
  }

  /** @param context what it belongs to: opened only together with it */
  close(content: Buffer, context: string): Buffer {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.sealing, iv).setAAD(Buffer.from(context));
    return Buffer.concat([iv, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws WrongSecret */
  open(sealed: Uint8Array, context: string): Buffer {
    const bytes = Buffer.from(sealed);
    if (bytes.length < IV_BYTES + TAG_BYTES) throw new WrongSecret("the response is too short");
    const end = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(ALGORITHM, this.sealing, bytes.subarray(0, IV_BYTES));
    decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(end));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, end)), decipher.final()]);
    } catch {
      throw new WrongSecret("the boxes have different STANDBY_SECRETs");
    }
  }
}
