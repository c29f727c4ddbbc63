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
