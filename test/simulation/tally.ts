/** Counts what a simulation covered, by kind, so that a test can detect a missing kind. */
export class Tally {
  private readonly kinds = new Map<string, Map<string, number>>();

  add(kind: string, name: string, count = 1): void {
    let names = this.kinds.get(kind);
    if (names === undefined) {
      names = new Map();
      this.kinds.set(kind, names);
    }
    names.set(name, (names.get(name) ?? 0) + count);
  }

  count(kind: string, name: string): number {
    return this.kinds.get(kind)?.get(name) ?? 0;
  }

  /** A line for each kind, its names by how often. */
  lines(): string[] {
    return [...this.kinds].sort().map(([kind, names]) => {
      const counts = [...names].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${count}`);
      return `${kind}: ${counts.join(", ")}`;
    });
  }
}
