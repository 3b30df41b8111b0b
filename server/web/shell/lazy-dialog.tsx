/** Dialogs that any part of the page can open. They load when they are first opened. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { errorMessage } from "../error-messages.ts";
import { toast } from "../ui/toast.tsx";
import { usePart } from "../ui/use-part.ts";

type Content = ComponentType<{ onClose: () => void }>;

const DIALOGS = {
  settings: () => import("../dialogs/trading-settings.tsx").then(({ TradingSettings }): Content => TradingSettings),
  keys: () => import("../dialogs/key-list.tsx").then(({ KeyList }): Content => KeyList),
} as const;

type Name = keyof typeof DIALOGS;

const shown = signal<Name | null>(null);

export function showDialog(name: Name): void {
  shown.value = name;
}

const close = (): void => {
  shown.value = null;
};

export function LazyDialog() {
  const name = shown.value;
  const { part: Content, error } = usePart(name === null ? null : DIALOGS[name]);
  useEffect(() => {
    if (error === null) return;
    close();
    toast(errorMessage(error), true);
  }, [error]);
  return Content === null ? null : <Content onClose={close} />;
}
