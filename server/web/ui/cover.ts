/**
 * Lets a step back in the history close what lies over the page, as phones do it. It has one entry in the history, which
 * stays where it is closed otherwise: the next one takes it over, and a step back from it goes on by one more.
 */
import { cover as steps } from "../router.ts";

/** How to close what lies over the page, the topmost last. */
const covers: { readonly onBack: () => void }[] = [];
const isCoverNow = (): boolean => (history.state as { isCover?: boolean } | null)?.isCover === true;
/** The history's entry was made for a cover: this one, after a reload, or a later one. */
let isCoverEntry = isCoverNow();

function push(): void {
  history.pushState({ ...history.state, isCover: true }, "");
  isCoverEntry = true;
}

/** Returns the function to call once it is gone, however it was closed. */
export function coverPage(onBack: () => void): () => void {
  const cover = { onBack };
  covers.push(cover);
  if (!isCoverEntry) push();
  return () => {
    const at = covers.indexOf(cover);
    if (at >= 0) covers.splice(at, 1);
  };
}

steps.isLeft = () => {
  const isLeft = isCoverEntry;
  isCoverEntry = false;
  covers.length = 0;
  return isLeft;
};

steps.isStepBack = (address) => {
  const wasCoverEntry = isCoverEntry;
  isCoverEntry = isCoverNow();
  if (!wasCoverEntry || isCoverEntry) return false;
  // The address may have got another outcome, say, meanwhile.
  history.replaceState(history.state, "", address);
  const top = covers.pop();
  if (top === undefined) history.back();
  else {
    if (covers.length > 0) push();
    top.onBack();
  }
  return true;
};
