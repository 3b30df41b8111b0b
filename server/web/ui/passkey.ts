/** Creates and uses passkeys. Loads the WebAuthn library on first use. */

/** A passkey ceremony failed; the message is for the user. */
export class PasskeyProblem extends Error {}

/** @param options PublicKeyCredentialRequestOptionsJSON @throws PasskeyProblem */
export async function usePasskey(options: object): Promise<object> {
  const { startAuthentication } = await import("@simplewebauthn/browser");
  type Options = Parameters<typeof startAuthentication>[0]["optionsJSON"];
  return startAuthentication({ optionsJSON: options as Options }).catch(explain("used"));
}

/** @param options PublicKeyCredentialCreationOptionsJSON @throws PasskeyProblem */
export async function createPasskey(options: object): Promise<object> {
  const { startRegistration } = await import("@simplewebauthn/browser");
  type Options = Parameters<typeof startRegistration>[0]["optionsJSON"];
  return startRegistration({ optionsJSON: options as Options }).catch(explain("created"));
}

/** Browsers give no further detail, so that no site learns which passkeys a user has. */
const explain =
  (done: string) =>
  (error: unknown): never => {
    const { name } = error as Error;
    if (name === "InvalidStateError") throw new PasskeyProblem("This device already has a passkey for your account.");
    if (name === "NotSupportedError" || name === "SecurityError") {
      throw new PasskeyProblem("Passkeys aren't supported in this browser or at this address.");
    }
    throw new PasskeyProblem(`The passkey wasn't ${done}: canceled, timed out, or not on this device.`);
  };
