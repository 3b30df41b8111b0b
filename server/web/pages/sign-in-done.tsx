/** The return address of a sign-in at an identity provider: picks up the session from the cookie. */
import { useEffect, useState } from "preact/hooks";
import { href, navigate, search } from "../router.ts";
import { completeProviderSignIn } from "../session.ts";
import { useAction } from "../ui/action.ts";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { pathAfterSignIn, returnPath, storedReturnPath, storeReturnPath } from "./return-path.ts";

export default function SignInDone() {
  const [isMissing, setMissing] = useState(false);
  const { run, error } = useAction(async () => {
    const found = await completeProviderSignIn();
    if (found === null) {
      setMissing(true);
      return;
    }
    const to = returnPath(storedReturnPath() ?? search.peek().get("to"));
    storeReturnPath(null);
    navigate(pathAfterSignIn(found, to), true);
  });
  useEffect(() => {
    document.title = "Signing in · Prediction Exchange";
    void run();
  }, []);
  if (error !== null) return <ErrorNotice error={error} retry={() => void run()} />;
  if (!isMissing) return <Loading what="Signing in" />;
  return (
    <section class="narrow">
      <h1>Sign-in failed</h1>
      <p role="alert">Your browser didn't store the session. Allow cookies for this site and try again.</p>
      <p>
        <a class="button primary" href={href("/sign-in")}>
          Sign in
        </a>
      </p>
    </section>
  );
}
