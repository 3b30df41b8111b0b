/**
 * Keeps the page right where other programs change its text: translations and extensions put elements in place of text
 * nodes, and what is rendered into a node that is no longer in the page is never seen. Each such element stands in for its
 * text until the text changes; then the text comes back, and may be translated anew. What can't be put right is said in a
 * banner outside of the page's own elements. Hooks into the renderer, so it starts before the first rendering.
 */
import { options, type VNode } from "preact";

/** A node of the renderer, by the names that its packages use among themselves (@preact/signals does too). */
interface Rendered {
  /** A function for a component, the name of an element, null for a text. */
  readonly type: unknown;
  /** Of a text: the text itself. */
  readonly props: unknown;
  readonly __: Rendered | null;
  __e: Node | null;
  readonly __c: { base?: Node | null } | null;
}

interface Replaced {
  readonly text: Text;
  /** Further nodes that came in its place. */
  readonly others: readonly ChildNode[];
}

/** Another program that keeps changing what is put right would never stop. */
const MAX_REPAIRS = 50;

/** By text node: what rendered it last. */
const owners = new WeakMap<Text, Rendered>();
/** Elements that the page rendered. */
const own = new WeakSet<Node>();
/** Nodes that the page took away itself. */
const removed = new WeakSet<Node>();
/** By the node of another program that stands in for a text. */
const standIns = new WeakMap<Node, Replaced>();
let repairs = 0;
let banner: HTMLElement | null = null;

/** @param root of everything that the page renders */
export function startForeignChanges(root: Node): void {
  const { diffed, unmount } = options;
  options.diffed = (vnode) => {
    afterRendering(vnode as unknown as Rendered);
    diffed?.(vnode);
  };
  options.unmount = (vnode: VNode) => {
    beforeRemoval(vnode as unknown as Rendered);
    unmount?.(vnode);
  };
  const observer = new MutationObserver((records) => {
    for (const record of records) {
      if (record.type === "characterData") keepNumber(record.target as Text);
      else for (const node of record.removedNodes) afterForeignRemoval(node as ChildNode, record);
    }
  });
  observer.observe(root, { childList: true, characterData: true, subtree: true });
  window.addEventListener("error", ({ error, filename }) => {
    if (error !== null && filename.startsWith(window.location.origin)) sayBroken();
  });
}

// ---------------------------------------------------------------- the renderer's side

function afterRendering(vnode: Rendered): void {
  const dom = vnode.__e;
  if (dom === null || typeof vnode.type === "function") return;
  if (typeof vnode.type === "string") {
    own.add(dom);
    return;
  }
  const replaced = standIns.get(dom);
  const text = replaced?.text ?? (dom as Text);
  owners.set(text, vnode);
  if (replaced === undefined || text.data === vnode.props) return;
  text.data = String(vnode.props);
  for (const other of replaced.others) other.remove();
  (dom as ChildNode).replaceWith(text);
  pointTo(vnode, text);
}

function beforeRemoval({ __e: dom, type }: Rendered): void {
  if (dom === null || typeof type === "function") return;
  removed.add(dom);
  for (const other of standIns.get(dom)?.others ?? []) other.remove();
}

/** Makes the renderer remove, move and insert beside another node. */
function pointTo(vnode: Rendered, node: Node): void {
  const before = vnode.__e;
  vnode.__e = node;
  // Components whose first node it was.
  for (let at = vnode.__; at !== null && typeof at.type === "function" && at.__e === before; at = at.__) {
    at.__e = node;
    if (at.__c !== null) at.__c.base = node;
  }
}

// ---------------------------------------------------------------- the other program's side

/** A node was removed, or moved: by the page itself, or by another program. */
function afterForeignRemoval(node: ChildNode, record: MutationRecord): void {
  const text = standIns.get(node)?.text ?? (node instanceof Text ? node : null);
  if (text === null) {
    if (own.has(node) && !removed.has(node) && !node.isConnected) sayBroken();
    return;
  }
  const owner = owners.get(text);
  // The page takes a text out of what stood in for it.
  if (!own.has(record.target)) return;
  if (owner === undefined || owner.__e !== node || node.parentNode === record.target) return;
  // The other program has put the original back.
  if (text !== node && text.isConnected) return pointTo(owner, text);
  const [first, ...others] = substitutesFor(node, record);
  if (first === undefined) return putBack(text, owner, record);
  standIns.set(first, { text, others });
  pointTo(owner, first);
}

/** What has come in the place of a node. */
function substitutesFor(
  node: ChildNode,
  { target, addedNodes, previousSibling, nextSibling }: MutationRecord,
): ChildNode[] {
  // Wrapped: the node itself is in a new element.
  for (let at: Node | null = node; at !== null; at = at.parentNode) {
    if (at !== node && at.parentNode === target) return isForeign(at) ? [at as ChildNode] : [];
  }
  const added = [...addedNodes].filter(isForeign);
  if (added.length > 0) return added as ChildNode[];
  // Added before the node was removed.
  const beside = [previousSibling, nextSibling].find((each) => each instanceof Element && isForeign(each));
  return beside === undefined ? [] : [beside as ChildNode];
}

function isForeign(node: Node): boolean {
  return node.isConnected && !own.has(node) && !(node instanceof Text && owners.has(node));
}

/** The text is gone, or merged into one beside it: both are shown again. */
function putBack(text: Text, owner: Rendered, { target, nextSibling }: MutationRecord): void {
  if (!mayRepair() || !target.isConnected) return;
  for (const each of target.childNodes) if (each instanceof Text) setText(each);
  target.insertBefore(text, nextSibling?.parentNode === target ? nextSibling : null);
  pointTo(owner, text);
}

/** A number, price or name that isn't to be translated was changed in its place. */
function keepNumber(text: Text): void {
  if (isChanged(text) && text.parentElement?.closest("[translate=no]") && mayRepair()) setText(text);
}

function isChanged(text: Text): boolean {
  const owner = owners.get(text);
  return owner !== undefined && owner.__e === text && text.data !== String(owner.props);
}

function setText(text: Text): void {
  if (isChanged(text)) text.data = String(owners.get(text)?.props);
}

function mayRepair(): boolean {
  if (++repairs <= MAX_REPAIRS) return true;
  sayBroken();
  return false;
}

/** Tells the user that the page may show old values from here on. */
function sayBroken(): void {
  if (banner !== null) return;
  banner = document.createElement("div");
  banner.className = "broken";
  banner.setAttribute("role", "alert");
  const reload = document.createElement("button");
  reload.textContent = "Reload";
  reload.addEventListener("click", () => window.location.reload());
  banner.append(
    "This page can't show changes any more: another program, such as a translation, has changed it, or it failed. What you see may be out of date. ",
    reload,
  );
  document.body.append(banner);
}
