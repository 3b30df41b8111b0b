/** Where a sign-in at an identity provider comes back to: the session is in the cookie, and is taken up. */
import { useEffect, useState } from "preact/hooks";
import { href, navigate, search } from "../router.ts";
import { completeProviderSignIn } from "../session.ts";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { useAction } from "../ui/use-data.ts";
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
  if (!isMissing) return <Loading what="Signing you in" />;
  return (
    <section class="narrow">
      <h1>You are not signed in</h1>
      <p role="alert">
        Your browser kept no session for this page. Cookies must be allowed for this site; then try again.
      </p>
      <p>
        <a class="button primary" href={href("/sign-in")}>
          Sign in
        </a>
      </p>
    </section>
  );
}
