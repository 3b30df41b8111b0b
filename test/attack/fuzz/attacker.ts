/** A user who attacks with tokens of its own, and gets new ones where an attack has ended them. */
import { get, type Link, post } from "./link.ts";
import { PASSWORD, tokenOf } from "./world.ts";

export class Attacker {
  /** Good for what bots may do. */
  token: string;
  /** Good for everything that its user may do. */
  session = "";
  private readonly email: string;
  private readonly isOperator: boolean;

  constructor(name: string) {
    this.email = `${name}@example.com`;
    this.token = tokenOf(name);
    this.isOperator = name === "operator";
  }

  /** Signs in where the session is over, and makes a token where that was revoked. */
  async renew(link: Link): Promise<void> {
    if ((await link.ask(get("/api/v1/me", this.session))).status !== 200) {
      const answer = await link.ask(post("/auth/login", null, { email: this.email, password: PASSWORD }));
      const { data } = JSON.parse(answer.body.toString()) as { data: { access_token: string } | null };
      if (data === null) throw new Error(`${this.email} cannot sign in any more: ${answer.body.toString()}`);
      this.session = data.access_token;
    }
    if (this.isOperator || (await link.ask(get("/api/v1/me", this.token))).status === 200) return;
    const scopes = ["markets:read", "markets:propose", "orders:write", "portfolio:read"];
    const made = await link.ask(post("/me/personal-access-tokens", this.session, { name: "again", scopes }));
    const { data } = JSON.parse(made.body.toString()) as { data: { token: string } | null };
    if (data !== null) this.token = data.token;
  }
}
