/** Rows by id, and by the user that they belong to, oldest first. */
export class UserTable<T> {
  private readonly byId = new Map<number, T>();
  private readonly byUser = new Map<number, Map<number, T>>();

  get(id: number): T | undefined {
    return this.byId.get(id);
  }

  add(id: number, userId: number, row: T): void {
    this.byId.set(id, row);
    const own = this.byUser.get(userId);
    if (own === undefined) this.byUser.set(userId, new Map([[id, row]]));
    else own.set(id, row);
  }

  remove(id: number, userId: number): void {
    this.byId.delete(id);
    const own = this.byUser.get(userId);
    own?.delete(id);
    if (own?.size === 0) this.byUser.delete(userId);
  }

  of(userId: number): T[] {
    return [...(this.byUser.get(userId)?.values() ?? [])];
  }

  countOf(userId: number): number {
    return this.byUser.get(userId)?.size ?? 0;
  }

  values(): IterableIterator<T> {
    return this.byId.values();
  }
}
