/** MessagePack in the log and its archives: plain maps with names, so that any MessagePack library reads them. */
import { Packr } from "msgpackr/pack";

const packr = new Packr({ useRecords: false });

export const pack = (value: unknown): Buffer => packr.pack(value);

export const unpack = (bytes: Buffer): unknown => packr.unpack(bytes);
