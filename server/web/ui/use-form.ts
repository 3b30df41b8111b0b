/** Form state: shows validation messages once the user has tried to submit, and blocks invalid submits. */
import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { focusFirstProblem } from "./validation.ts";

interface FormState<P> {
  readonly form: RefObject<HTMLFormElement | null>;
  /** Validation messages by field, all null before the first submit attempt. */
  readonly shown: P;
  /** Makes the form's onSubmit handler: calls `send` if the form is valid, else focuses the first invalid field. */
  readonly submit: (send: () => void) => (event: Event) => void;
  /** Hides the messages again, after the form was cleared. */
  readonly restart: () => void;
}

/** @param problems validation message by field, null if valid */
export function useForm<P extends Readonly<Record<string, string | null>>>(problems: P): FormState<P> {
  const form = useRef<HTMLFormElement>(null);
  const [isSubmitted, setSubmitted] = useState(false);
  const none = Object.fromEntries(Object.keys(problems).map((name) => [name, null])) as P;
  const submit = (send: () => void) => (event: Event) => {
    event.preventDefault();
    setSubmitted(true);
    if (Object.values(problems).every((problem) => problem === null)) send();
    else if (form.current !== null) focusFirstProblem(form.current);
  };
  return { form, shown: isSubmitted ? problems : none, submit, restart: () => setSubmitted(false) };
}

const EMAIL = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/;

/** Returns the validation message for an email address, null if it is valid. */
export function emailProblem(text: string): string | null {
  if (text.trim() === "") return "Enter your email address.";
  return EMAIL.test(text.trim()) ? null : "Enter a valid email address, such as name@example.com.";
}
