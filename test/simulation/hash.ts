/** Everything that happened, as one number: two runs of a seed must have the same. */
export class Hash {
  private state = 0x811c9dc5;

  add(value: number): void {
    this.state = Math.imul(this.state ^ (value | 0), 0x01000193);
    this.state ^= this.state >>> 15;
  }

  text(value: number, text: string): void {
    this.add(value);
    this.add(text.length * 31 + (text.charCodeAt(0) || 0));
  }

  get value(): number {
    return this.state >>> 0;
  }
}
