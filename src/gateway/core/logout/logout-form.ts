// The form in which a provider sends a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.5).

export const LOGOUT_FORM = 'application/x-www-form-urlencoded'

/** The one token of a form; undefined = it is not such a form, or has several. */
export function readLogoutForm(contentType: string, body: string): string | undefined {
  if (contentType.split(';', 1)[0]?.trim().toLowerCase() !== LOGOUT_FORM) return undefined
  const [token = '', ...others] = new URLSearchParams(body).getAll('logout_token')
  return token === '' || others.length > 0 ? undefined : token
}
