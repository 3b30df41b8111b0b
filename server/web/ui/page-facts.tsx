/** The figures at the right of a page's head. */

/** @param facts names and values; null: not shown */
export function PageFacts({ facts }: { facts: readonly (readonly [name: string, value: string | null])[] }) {
  return (
    <dl class="page-facts">
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd translate={false}>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
