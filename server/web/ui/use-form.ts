/** Forms that say what is wrong beside the fields before anything is sent. */
import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { focusFirstProblem } from "./validation.ts";

interface FormState<P> {
  readonly form: RefObject<HTMLFormElement | null>;
  /** What is wrong by field, once somebody tried to send it; null where nothing is. */
  readonly shown: P;
  /** The form's onSubmit: sends where nothing is wrong, and goes to the first field that is otherwise. */
  readonly submit: (send: () => void) => (event: Event) => void;
  /** Nothing was tried yet: after the form was emptied. */
  readonly restart: () => void;
}

/** @param problems by field, null where there is none */
export function useForm<P extends Readonly<Record<string, string | null>>>(problems: P): FormState<P> {
  const form = useRef<HTMLFormElement>(null);
  const [isTried, setTried] = useState(false);
  const none = Object.fromEntries(Object.keys(problems).map((name) => [name, null])) as P;
  const submit = (send: () => void) => (event: Event) => {
    event.preventDefault();
    setTried(true);
    if (Object.values(problems).every((problem) => problem === null)) send();
    else focusFirstProblem(form.current!);
  };
  return { form, shown: isTried ? problems : none, submit, restart: () => setTried(false) };
}

const EMAIL = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/;

/** What is wrong with an e-mail address as it was typed, null where nothing is. */
export function emailProblem(text: string): string | null {
  if (text.trim() === "") return "Enter your e-mail address.";
  return EMAIL.test(text.trim()) ? null : "This is no e-mail address, such as name@example.com.";
}
