/** The routes of this room: how users get in, and what gives access afterwards. */
import type { Route } from "../http/route.ts";
import { createSecondFactorRoutes, type SecondFactorContext } from "./second-factor-routes.ts";
import { createSignInRoutes } from "./sign-in-routes.ts";
import { createSocialSignInRoutes, type SocialSignInContext } from "./social-sign-in-routes.ts";
import { createTokenRoutes, type TokenRouteContext } from "./token-routes.ts";

export type AccessRouteContext = SocialSignInContext & TokenRouteContext & SecondFactorContext;

export function createAccessRoutes(context: AccessRouteContext): Route[] {
  return [
    ...createSignInRoutes(context),
    ...createSocialSignInRoutes(context),
    ...createTokenRoutes(context),
    ...createSecondFactorRoutes(context),
  ];
}
