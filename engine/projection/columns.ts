/** The mapping between TypeScript field names and database columns: `userId` is stored in `user_id`. */

export function columnOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
