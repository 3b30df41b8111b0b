/** A list of names and values. */
import { Fragment } from "preact";
import type { Children } from "../../ui/use-data.ts";

/** Renders names beside values. */
export function Facts({ facts }: { facts: readonly (readonly [string, Children])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
