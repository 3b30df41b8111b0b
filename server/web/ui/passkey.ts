/** Passkeys in the browser. What speaks to the device is loaded when somebody uses one. */

/** It wasn't made or used, in words for a person. */
export class PasskeyProblem extends Error {}

/** @param options PublicKeyCredentialRequestOptionsJSON @throws PasskeyProblem */
export async function usePasskey(options: object): Promise<object> {
  const { startAuthentication } = await import("@simplewebauthn/browser");
  type Options = Parameters<typeof startAuthentication>[0]["optionsJSON"];
  return startAuthentication({ optionsJSON: options as Options }).catch(explain("used"));
}

/** @param options PublicKeyCredentialCreationOptionsJSON @throws PasskeyProblem */
export async function makePasskey(options: object): Promise<object> {
  const { startRegistration } = await import("@simplewebauthn/browser");
  type Options = Parameters<typeof startRegistration>[0]["optionsJSON"];
  return startRegistration({ optionsJSON: options as Options }).catch(explain("made"));
}

/** Browsers don't tell more than this, so that no site learns which passkeys one has. */
const explain =
  (done: string) =>
  (error: unknown): never => {
    const { name } = error as Error;
    if (name === "InvalidStateError") throw new PasskeyProblem("This device has a passkey of your account already.");
    if (name === "NotSupportedError" || name === "SecurityError") {
      throw new PasskeyProblem("This browser, or this address of the exchange, knows no passkeys.");
    }
    throw new PasskeyProblem(`The passkey wasn't ${done}: it was canceled, it took too long, or there is none here.`);
  };
