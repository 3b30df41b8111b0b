/**
 * Fingerprints of the settings that both boxes must have alike, for beats: a box that takes over with other ones would trade
 * differently. They tell nothing to whom has no secret. Pure.
 */
import { isObject } from "../util/is-object.ts";
import type { Seal } from "./seal.ts";

const LETTERS = 8;
/** Boxes with other secrets have nothing else to compare. */
const SECRET = "STANDBY_SECRET";

/** By the setting's name. */
export type SettingPrints = Readonly<Record<string, string>>;

/** @param settings values by name */
export function printSettings(settings: Readonly<Record<string, string>>, seal: Seal): SettingPrints {
  const print = (name: string, value: string): [string, string] => [
    name,
    seal.sign(`${name} ${value}`).slice(0, LETTERS),
  ];
  return Object.fromEntries(
    [...Object.entries(settings), [SECRET, ""] as const].map(([name, value]) => print(name, value)),
  );
}

/**
 * The names of the settings that differ. One that only one of the boxes has isn't compared: the other is of another version.
 * @param other what a beat has there, of whatever version
 */
export function differing(own: SettingPrints, other: unknown): string[] {
  if (!isObject(other)) return [];
  const names = Object.keys(own).filter((name) => Object.hasOwn(other, name) && own[name] !== other[name]);
  return names.includes(SECRET) ? [SECRET] : names.sort();
}
