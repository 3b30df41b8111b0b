/**
 * A server with users who withdraw money, and two operators who decide. Signs people in, and survives a restart. Knows
 * nothing of withdrawals themselves: their requests are test/support/money.ts.
 */
import { expectBalanced, expectEndsWell, expectSoundDatabase } from "../support/checks.ts";
import type { Answer, BalanceJson, Client } from "../support/client.ts";
import { Guests, PASSWORD } from "../support/identity.ts";
import { auditOf } from "../support/money.ts";
import { PUBLIC_URL, type TestMarket, USDC, World } from "../support/world.ts";

/** Each user's, and each operator's, at the start. */
export const DEPOSIT = 100 * USDC;
const PEOPLE = 18;
const OPERATORS = ["chief", "deputy"];

export type Person = Client & { readonly userId: number; readonly email: string };

export const balanceOf = (held: number, total = DEPOSIT): BalanceJson => ({ available: total - held, held, total });

export class WithdrawalDesk {
  readonly guests = new Guests();
  readonly world: World;
  readonly market: TestMarket;
  chief!: Client;
  deputy!: Client;
  /** The operators' names in the audit log. */
  chiefName!: string;
  deputyName!: string;
  private people = 0;

  private constructor(world: World) {
    this.world = world;
    this.market = world.market();
  }

  /** Starts a server with these settings, and signs the operators in. */
  static async start(env: Record<string, string> = {}): Promise<WithdrawalDesk> {
    const operator = { role: "operator" as const, password: PASSWORD, deposit: DEPOSIT };
    const operators = OPERATORS.map((name) => [name, operator]);
    const people = Array.from({ length: PEOPLE }, (_, n) => [`person${n}`, { deposit: DEPOSIT, password: PASSWORD }]);
    const named = Object.fromEntries([...operators, ...people, ["small", { tier: 1, password: PASSWORD }]]);
    const desk = new WithdrawalDesk(await World.start({ users: 0, named, env: { PUBLIC_URL, ...env } }));
    const signIn = (name: string) => desk.guests.signIn(desk.world.server, `${name}@example.com`);
    const [chief, deputy] = await Promise.all(OPERATORS.map(signIn));
    [desk.chief, desk.deputy] = [chief!.client, deputy!.client];
    [desk.chiefName, desk.deputyName] = [`operator ${chief!.user.id}`, `operator ${deputy!.user.id}`];
    return desk;
  }

  /** A fresh user's session, with 100 USDC. */
  async person(): Promise<Person> {
    const email = `person${this.people++}@example.com`;
    const { client, user } = await this.guests.signIn(this.world.server, email);
    return Object.assign(client, { userId: user.id, email });
  }

  /** Starts the killed server on its database, which must be sound; users need a client from `again`. */
  async restart(): Promise<void> {
    expectSoundDatabase(this.world.server.dataDir);
    this.world.server = await this.world.server.restart();
    [this.chief, this.deputy] = [this.again(this.chief), this.again(this.deputy)];
  }

  /** The same session on the server's new port. */
  again<T extends Client>(client: T): T {
    const { server } = this.world;
    return Object.assign(this.guests.client(server, client.token), { ...client, server }) as unknown as T;
  }

  /** What an answer's request has left in the audit log. */
  actions(answer: Answer): string[] {
    return auditOf(this.world.server.dataDir, answer).map(({ action }) => action);
  }

  async stop(): Promise<void> {
    await expectBalanced(this.world.anonymous());
    this.guests.close();
    await expectEndsWell(this.world);
  }
}
