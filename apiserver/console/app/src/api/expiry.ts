/** expiryOf returns when a token expires, in milliseconds, or undefined if the token does not say so. */
export function expiryOf(token: string): number | undefined {
  const claims = token.split('.')[1];
  if (!claims) return undefined;
  try {
    const exp = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))).exp;
    return typeof exp === 'number' ? exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}

/** warning is how many milliseconds before its expiry a token is renewed, or people are warned. */
export const warning = 60_000;

/** shortest is the least number of milliseconds between two renewals. A token that ends at once would else be renewed without a pause. */
const shortest = 5_000;

/** renewalIn returns in how many milliseconds to renew a token with so many left. A token that lasts less than two minutes is renewed after half of them. */
export function renewalIn(left: number): number {
  return Math.max(left - warning, left / 2, shortest);
}
