/** Typed arrays that grow with the ids that index them. */

type Grown = Float64Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

/** Returns the array if it contains `index`, else a copy at least twice as long, padded with `fill`. */
export function withIndex<T extends Grown>(array: T, index: number, fill = 0): T {
  if (index < array.length) return array;
  const larger = new (array.constructor as new (length: number) => T)(Math.max(index + 1, array.length * 2));
  larger.set(array);
  if (fill !== 0) larger.fill(fill, array.length);
  return larger;
}
