// What a logout token must say (OpenID Connect Back-Channel Logout 1.0, sections 2.4 and 2.6), beside what is checked of every token of its issuer: the
// signature, `iss`, `aud` and the times.

import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { Claims } from '../../../pki/core/id-tokens/claims-user.ts'
import { MAX_SESSION_ID_LENGTH } from '../../api/ended-session-kind.ts'
import type { EndedSession } from '../../api/token-session.ts'
import { isLogout, LOGOUT_EVENT } from './token-session.ts'

export type LoggedOut = Pick<EndedSession, 'sid' | 'sub' | 'endedSeconds'>

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
