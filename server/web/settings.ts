/** How the user wants to trade in this browser: the slippage of market orders, which orders ask first, and keys. */
import { type Signal, signal } from "@preact/signals";
import { kept } from "./browser.ts";

/** How far beyond the best price a market order may fill, BPS: 2¢. */
const DEFAULT_SLIPPAGE_BPS = 200;
export const MAX_SLIPPAGE_BPS = 5_000;

const KEYS = { slippage: "slippage", asksAlways: "ask-always", asksWhenFar: "ask-when-far", hasKeys: "keys" } as const;

function keptSlippage(): number {
  const text = kept.get(KEYS.slippage);
  const bps = text === null ? Number.NaN : Number(text);
  return Number.isInteger(bps) && bps >= 0 && bps <= MAX_SLIPPAGE_BPS ? bps : DEFAULT_SLIPPAGE_BPS;
}

const slippageBps = signal(keptSlippage());
/** The user confirms each order. */
const asksAlways = signal(kept.get(KEYS.asksAlways) === "yes");
/** The user confirms an order whose price is far beyond the market's. */
const asksWhenFar = signal(kept.get(KEYS.asksWhenFar) !== "no");
/** Single letters act where no field has the focus. */
const hasKeys = signal(kept.get(KEYS.hasKeys) !== "no");

/** Signals, for components to read. */
export const settings = { slippageBps, asksAlways, asksWhenFar, hasKeys } as const;

/** @param bps 0 to MAX_SLIPPAGE_BPS */
export function setSlippage(bps: number): void {
  slippageBps.value = bps;
  kept.set(KEYS.slippage, String(bps));
}

type Choice = Exclude<keyof typeof KEYS, "slippage">;

export function setChoice(name: Choice, isOn: boolean): void {
  const choice: Signal<boolean> = settings[name];
  choice.value = isOn;
  kept.set(KEYS[name], isOn ? "yes" : "no");
}
