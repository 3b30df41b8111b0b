/** Forgets the oldest entry of a map or set that holds `most`, so that one more fits. They keep the order of insertion. */
export function evictOldest<K>(
  held: { size: number; keys(): Iterable<K>; delete(key: K): boolean },
  most: number,
): void {
  if (held.size < most) return;
  for (const oldest of held.keys()) {
    held.delete(oldest);
    return;
  }
}
