// The session at an OpenID provider to which a token belongs, and whether a logout there has ended it (OpenID Connect Back-Channel Logout 1.0).

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { Claims, RefusedClaims } from '../../../pki/core/id-tokens/claims-user.ts'
import { MAX_SESSION_ID_LENGTH } from '../../api/ended-session-kind.ts'
import type { EndedSession, TokenSession } from '../../api/token-session.ts'

/**
 * How long tokens of issuers that tell of logouts may be valid, from `iat` to `exp`: a logout has to be remembered until the last token before it has
 * expired.
 */
export const MAX_TOKEN_LIFE_MS: number = 24 * 60 * 60_000
/** The event of a logout token (section 2.4). */
export const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/**
 * The session of a token that is signed and valid; refused = a logout could not end it.
 * @param accepted audiences of the issuer's entry
 */
export function sessionOf(claims: Claims, accepted: readonly string[], source: string): TokenSession | RefusedClaims {
  const { sub, sid = '', iat, exp, events } = claims as Record<'sub' | 'sid' | 'iat' | 'exp' | 'events', unknown>
  // Signed by the same issuer for the same audience, but no credential.
  if (isLogout(events)) return refuse('the token is a logout token')
  if (typeof sub !== 'string' || sub === '') return refuse('the claim sub, which a logout names, is not a text')
  if (typeof sid !== 'string') return refuse('the claim sid is not a text')
  if (sub.length > MAX_SESSION_ID_LENGTH || sid.length > MAX_SESSION_ID_LENGTH) {
    return refuse(`sub or sid has more than ${MAX_SESSION_ID_LENGTH} characters`)
  }
  if (typeof iat !== 'number') return refuse('the claim iat is missing, so that a logout could not be compared with it')
  if ((Number(exp) - iat) * 1000 > MAX_TOKEN_LIFE_MS) {
    return refuse(`the token is valid for more than ${MAX_TOKEN_LIFE_MS / 3_600_000} hours`)
  }
  return { source, audiences: audiencesOf(claims, accepted), sid, sub, issuedSeconds: iat }
}

/** The audiences of a token that are among those accepted. */
export function audiencesOf({ aud }: Claims, accepted: readonly string[]): readonly string[] {
  const given = new Set<unknown>(Array.isArray(aud) ? aud : [aud])
  return accepted.filter((audience) => given.has(audience))
}

function isLogout(events: unknown): boolean {
  return isRecord(events) && Object.hasOwn(events, LOGOUT_EVENT)
}

/** Whether the logout has ended the session of the token. */
export function hasEnded(session: TokenSession, ended: EndedSession): boolean {
  if (ended.source !== session.source) return false
  if (!ended.audiences.some((audience) => session.audiences.includes(audience))) return false
  // Also with the sid of another user's session.
  if (ended.sub !== '' && ended.sub !== session.sub) return false
  // Whenever it was issued: a refresh token may outlive the session, and its tokens then name it still.
  if (ended.sid !== '' && session.sid !== '') return ended.sid === session.sid
  // All sessions of the user until then; or one of them, but the token does not say whether it belongs to that.
  return ended.sub !== '' && session.issuedSeconds <= ended.endedSeconds
}

/** From when on no token of the session can be valid, milliseconds: by the clock of the issuer, as `exp` is. */
export function forgottenAtMs({ endedSeconds }: Pick<EndedSession, 'endedSeconds'>): number {
  return endedSeconds * 1000 + MAX_TOKEN_LIFE_MS
}

function refuse(message: string): RefusedClaims {
  return { refused: 'claims', message }
}

// What a logout token must say (OpenID Connect Back-Channel Logout 1.0, sections 2.4 and 2.6), beside what is checked of every token of its issuer: the
// signature, `iss`, `aud` and the times.

type LoggedOut = Pick<EndedSession, 'sid' | 'sub' | 'endedSeconds'>

/** The types that it may state; it need not state one. */
const TYPES: ReadonlySet<unknown> = new Set(['logout+jwt', 'application/logout+jwt', 'jwt'])

/** @returns what its issuer says, which is still to be verified; or why it is not a logout token */
export function readLogoutClaims(header: Claims, claims: Claims): LoggedOut | { readonly fault: string } {
  const { typ } = header as { typ?: unknown }
  const given = claims as Record<'events' | 'jti' | 'iat' | 'exp' | 'sid' | 'sub', unknown>
  const { events, jti, iat, sid = '', sub = '' } = given
  // RFC 7515 section 4.1.9: media types are compared without regard to case.
  if (typ !== undefined && !TYPES.has(typeof typ === 'string' ? typ.toLowerCase() : typ)) {
    return { fault: 'typ is not logout+jwt' }
  }
  if (!isLogout(events) || !isRecord(events) || !isRecord(events[LOGOUT_EVENT])) {
    return { fault: `events has no ${LOGOUT_EVENT}` }
  }
  // With one it could be an ID token.
  if (Object.hasOwn(claims, 'nonce')) return { fault: 'it has a nonce' }
  // That it is new is not checked: the same logout once more ends what has ended. A provider repeats it if it got no answer.
  if (typeof jti !== 'string' || jti === '') return { fault: 'jti is missing' }
  if (typeof iat !== 'number') return { fault: 'iat is missing' }
  if (typeof sid !== 'string' || typeof sub !== 'string') return { fault: 'sid or sub is not a text' }
  if (sid === '' && sub === '') return { fault: 'neither sid nor sub is there' }
  if (sid.length > MAX_SESSION_ID_LENGTH || sub.length > MAX_SESSION_ID_LENGTH) {
    return { fault: `sid or sub has more than ${MAX_SESSION_ID_LENGTH} characters` }
  }
  return { sid, sub, endedSeconds: Math.ceil(iat) }
}

export const LOGOUT_FORM = 'application/x-www-form-urlencoded'

/** The one token of a form (section 2.5); undefined = it is not such a form, or has several. */
export function readLogoutForm(contentType: string, body: string): string | undefined {
  if (contentType.split(';', 1)[0]?.trim().toLowerCase() !== LOGOUT_FORM) return undefined
  const [token = '', ...others] = new URLSearchParams(body).getAll('logout_token')
  return token === '' || others.length > 0 ? undefined : token
}
