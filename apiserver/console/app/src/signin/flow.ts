// Signing in at an issuer: OAuth 2 authorization code with PKCE (RFC 7636), by oauth4webapi.

import * as oauth from 'oauth4webapi';
import type { Client } from '../api/client';
import { replace } from '../router';

/** Issuer is a client of an issuer, as the SMART configuration of a site describes it. */
export interface Issuer {
  name: string;
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  client_id: string;
  scopes: string[];
}

export interface Grant {
  token: string;
  /** expires is when the token expires by the clock of this browser, if that is known. */
  expires?: number | undefined;
  /** renew returns the next grant. It is missing if the issuer does not allow renewal. */
  renew?: () => Promise<Grant>;
}

/** pendingKey is of session storage. It holds no token: only what belongs to the request under way. */
const pendingKey = 'paddock-console-sign-in';

interface Pending {
  issuer: Issuer;
  verifier: string;
  state: string;
  nonce: string;
  /** back is the page to return to, with its fragment. */
  back: string;
}

/** loadIssuers returns the issuers that the console can use. */
export async function loadIssuers(client: Client): Promise<Issuer[]> {
  const answer = await client.fhir('/.well-known/smart-configuration', { accept: 'application/json' });
  return answer.json.console_clients ?? [];
}

function redirectUri(base: string): string {
  return `${location.origin}${base}/callback`;
}

/** begin leaves the page for the issuer's. */
export async function begin(issuer: Issuer, base: string): Promise<void> {
  const pending: Pending = {
    issuer,
    verifier: oauth.generateRandomCodeVerifier(),
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    back: location.pathname.endsWith('/callback') ? base : location.pathname + location.hash,
  };
  sessionStorage.setItem(pendingKey, JSON.stringify(pending));
  const url = new URL(issuer.authorization_endpoint);
  const parameters = {
    response_type: 'code',
    client_id: issuer.client_id,
    redirect_uri: redirectUri(base),
    scope: issuer.scopes.join(' '),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

/** finish exchanges the code in the page's URL for a token, and removes the code from the URL. */
export async function finish(base: string): Promise<Grant> {
  const stored = sessionStorage.getItem(pendingKey);
  const here = new URL(location.href);
  sessionStorage.removeItem(pendingKey);
  if (!stored) {
    replace(base);
    throw new Error('This sign-in was not started in this window. Start again.');
  }
  const pending: Pending = JSON.parse(stored);
  replace(pending.back);
  const server = serverOf(pending.issuer);
  const client = { client_id: pending.issuer.client_id };
  const parameters = oauth.validateAuthResponse(server, client, here, pending.state);
  const response = await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), parameters, redirectUri(base), pending.verifier);
  const nonce = pending.issuer.scopes.includes('openid') ? { expectedNonce: pending.nonce } : {};
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, nonce);
  return grantOf(pending.issuer, tokens);
}

function serverOf(issuer: Issuer): oauth.AuthorizationServer {
  const { issuer: url, authorization_endpoint, token_endpoint } = issuer;
  return { issuer: url, authorization_endpoint, token_endpoint };
}

function grantOf(issuer: Issuer, tokens: oauth.TokenEndpointResponse): Grant {
  const refresh = tokens.refresh_token;
  const expires = tokens.expires_in === undefined ? undefined : Date.now() + tokens.expires_in * 1000;
  if (!refresh) return { token: tokens.access_token, expires };
  const renew = async () => {
    const server = serverOf(issuer);
    const client = { client_id: issuer.client_id };
    const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), refresh);
    const next = await oauth.processRefreshTokenResponse(server, client, response);
    return grantOf(issuer, { ...next, refresh_token: next.refresh_token ?? refresh });
  };
  return { token: tokens.access_token, expires, renew };
}

/** problemOf returns what to tell people about a failed sign-in. */
export function problemOf(error: unknown): string {
  if (error instanceof oauth.AuthorizationResponseError) return `The issuer refused the sign-in: ${error.error_description ?? error.error}.`;
  if (error instanceof oauth.ResponseBodyError) return `The issuer gave no token: ${error.error_description ?? error.error}.`;
  return error instanceof Error ? error.message : 'The sign-in failed.';
}
