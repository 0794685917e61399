// The tokens of a login as they are kept in a file, and how long they are of use.

import { isRecord, recordOf, textOf } from '../../kit/api/json/object-shape.ts'

export interface StoredTokens {
  readonly issuer: string
  readonly clientId: string
  readonly idToken: string
  /** '' = the provider gave none: the next login needs the user. */
  readonly refreshToken: string
  /** `sub`, and the first of `email`, `preferred_username` and `name`. */
  readonly subject: string
  readonly name: string
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

/** Written into each file: another one is of another version of this program. */
const FORMAT = 'portcullis-login/v1'
/** A token is renewed this long before it expires, and that long at most by its lifetime: clocks differ, and requests take time. */
const MARGIN_MS = 30_000
const MARGIN_PART = 0.1
/** RFC 3339, which clients read, ends with the year 9999. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59)

export function tokensText(tokens: StoredTokens): string {
  return `${JSON.stringify({ format: FORMAT, ...tokens })}\n`
}

/** undefined = it is not a text that `tokensText` has written. */
export function tokensOfText(text: string): StoredTokens | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value) || value['format'] !== FORMAT) return undefined
  const { issuer, clientId, idToken, refreshToken, subject, name, issuedAtMs, expiresAtMs } = value
  if (typeof issuedAtMs !== 'number' || typeof expiresAtMs !== 'number') return undefined
  if (expiresAtMs < 0 || expiresAtMs > LAST_MS) return undefined
  const texts = { issuer, clientId, idToken, refreshToken, subject, name }
  if (!Object.values(texts).every((one) => typeof one === 'string')) return undefined
  // Every field was checked.
  return { ...(texts as Record<keyof typeof texts, string>), issuedAtMs, expiresAtMs }
}

/** What a client is told: it asks again when there is still time for a renewal; or at the very end, if there was none. */
export function clientExpiryMs(tokens: StoredTokens, nowMs: number): number {
  const usableMs = usableUntilMs(tokens)
  return usableMs > nowMs ? usableMs : tokens.expiresAtMs
}

/** From then on it is to be renewed. */
export function usableUntilMs({ issuedAtMs, expiresAtMs }: StoredTokens): number {
  return expiresAtMs - Math.min(MARGIN_MS, MARGIN_PART * Math.max(0, expiresAtMs - issuedAtMs))
}

/** Claims of an ID token that the provider has given over TLS: it is verified by the API server that gets it. */
export function tokensOfClaims(
  idToken: string,
  claims: Readonly<Record<string, unknown>>,
  refreshToken: string,
  { issuer, clientId, nowMs }: { readonly issuer: string; readonly clientId: string; readonly nowMs: number },
): StoredTokens {
  const { exp, email, preferred_username: username, name } = recordOf(claims)
  const shown = [email, username, name].map(textOf).find((one) => one !== '')
  const subject = textOf(claims['sub'])
  return {
    issuer,
    clientId,
    idToken,
    refreshToken,
    subject,
    name: shown ?? subject,
    issuedAtMs: nowMs,
    expiresAtMs: typeof exp === 'number' ? Math.min(exp * 1000, LAST_MS) : nowMs,
  }
}
