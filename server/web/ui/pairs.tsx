/** Names at the left and values at the right, a line each. */
import type { Children } from "./use-data.ts";

export function Pairs({ pairs }: { pairs: readonly (readonly [name: string, value: Children])[] }) {
  return (
    <dl class="pairs" translate={false}>
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
