/**
 * An authenticator in software, which can claim what no browser would: another origin, no PIN, a counter that falls. ES256, attestation "none" (WebAuthn level 3, sections 6.1 and 6.5).
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** False claims. */
export interface Twist {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  readonly type?: string;
  /** False: the user was not verified by a PIN. */
  readonly isVerified?: boolean;
  readonly counter?: number;
  /** The account that the passkey claims to be of, base64url. */
  readonly userHandle?: string;
  /** The claimed id. */
  readonly id?: string;
}

const sha256 = (data: string | Uint8Array): Buffer => createHash("sha256").update(data).digest();
const FLAGS = { present: 1, verified: 4, attested: 64 };

/** CBOR (RFC 8949) of byte and text strings below 64 KiB. */
const head = (major: number, length: number): Buffer =>
  length < 24
    ? Buffer.from([(major << 5) | length])
    : Buffer.from(length < 256 ? [(major << 5) | 24, length] : [(major << 5) | 25, length >> 8, length & 255]);
const bytesOf = (data: Uint8Array): Buffer => Buffer.concat([head(2, data.length), data]);
const textOf = (text: string): Buffer => Buffer.concat([head(3, text.length), Buffer.from(text)]);

export class SoftPasskey {
  readonly id: string;
  private readonly origin: string;
  private readonly privateKey: KeyObject;
  private readonly publicKey: KeyObject;
  private counter = 0;

  constructor(origin: string, id = randomBytes(32).toString("base64url")) {
    this.id = id;
    this.origin = origin;
    const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.privateKey = pair.privateKey;
    this.publicKey = pair.publicKey;
  }

  /** RegistrationResponseJSON. */
  register(challenge: string, twist: Twist = {}): object {
    const id = Buffer.from(twist.id ?? this.id, "base64url");
    const length = Buffer.from([id.length >> 8, id.length & 255]);
    const attested = Buffer.concat([Buffer.alloc(16), length, id, this.coseKey()]);
    const data = Buffer.concat([this.authenticatorData(FLAGS.attested, twist), attested]);
    const object = [head(5, 3), textOf("fmt"), textOf("none"), textOf("attStmt"), head(5, 0), textOf("authData")];
    const response = {
      clientDataJSON: this.clientData("webauthn.create", challenge, twist).toString("base64url"),
      attestationObject: Buffer.concat([...object, bytesOf(data)]).toString("base64url"),
      transports: ["internal"],
    };
    return this.answer(response, twist);
  }

  /** AuthenticationResponseJSON. */
  assert(challenge: string, twist: Twist = {}): object {
    this.counter = twist.counter ?? this.counter + 1;
    const data = this.authenticatorData(0, twist);
    const client = this.clientData("webauthn.get", challenge, twist);
    const signature = sign("sha256", Buffer.concat([data, sha256(client)]), this.privateKey);
    const response = {
      clientDataJSON: client.toString("base64url"),
      authenticatorData: data.toString("base64url"),
      signature: signature.toString("base64url"),
      ...(twist.userHandle === undefined ? {} : { userHandle: twist.userHandle }),
    };
    return this.answer(response, twist);
  }

  private answer(response: object, { id = this.id }: Twist): object {
    return { id, rawId: id, type: "public-key", clientExtensionResults: {}, response };
  }

  private clientData(type: string, challenge: string, twist: Twist): Buffer {
    const data = { type: twist.type ?? type, challenge: twist.challenge ?? challenge, crossOrigin: false };
    return Buffer.from(JSON.stringify({ ...data, origin: twist.origin ?? this.origin }));
  }

  private authenticatorData(flags: number, { rpId, isVerified = true }: Twist): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter);
    const all = flags | FLAGS.present | (isVerified ? FLAGS.verified : 0);
    return Buffer.concat([sha256(rpId ?? new URL(this.origin).hostname), Buffer.from([all]), counter]);
  }

  /** COSE_Key of the P-256 key: {1: 2, 3: -7, -1: 1, -2: x, -3: y}. */
  private coseKey(): Buffer {
    const { x, y } = this.publicKey.export({ format: "jwk" });
    const part = (text: string): Buffer => bytesOf(Buffer.from(text, "base64url"));
    const fixed = Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01]);
    return Buffer.concat([fixed, Buffer.from([0x21]), part(x!), Buffer.from([0x22]), part(y!)]);
  }
}
