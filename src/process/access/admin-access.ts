// Who may use the admin listener. On a loopback address without TLS and token: everybody on this machine, but no page of another site in a
// browser. Otherwise whoever has the token of --admin-token-file, or is a user who is known to the API server of the objects, and allowed there.

import { isIP } from 'node:net'
import type { FailureCounts } from '../../apiserver/access/failed-credentials.ts'
import { tooManyFailuresMessage } from '../../gateway/core/policy/traffic-messages.ts'
import type { PlainRequest } from '../../gateway/io/listener/http-plain.ts'
import {
  type AccessRefusal,
  type AdminAccess,
  type AdminRoute,
  type AdminUser,
  NOBODY,
  refusalResponse,
} from '../../insight/admin/route.ts'
import { addressSource } from '../../kit/core/shares/call-source.ts'
import { bearerOf, isSameToken } from './bearer-token.ts'
import { refusal } from './review-access.ts'

/** The user of --admin-token-file, which the other replicas have, too. */
export const TOKEN_FILE_USER: AdminUser = { name: 'portcullis:admin-token', groups: [], replica: true }

/** How the API server of the objects knows users, and what they may do. Never rejects. */
export interface AdminLogin {
  /** PEM; who signs client certificates, as it is now. '' = nobody. */
  clientCA(): string
  /** @param token of the request; undefined = none */
  admit(request: PlainRequest, token: string | undefined, route: AdminRoute): Promise<AdminUser | AccessRefusal>
}

/** For those who reach a loopback address. */
export const localAccess: AdminAccess = (request, route) => {
  const why = forwarded(request) || foreignHost(request.header('host')) || foreignPage(request, route)
  return Promise.resolve(why === '' ? { user: NOBODY } : { refused: refusalResponse(refusal(403, why)) })
}

export interface LoginDeps {
  /** Of --admin-token-file, as it is now; '' = none. */
  token(): string
  /** undefined = only the token counts. */
  readonly login: AdminLogin | undefined
  /** Default: credentials that fail are not counted. */
  readonly failures?: FailureCounts
}

export function loginAccess({ token, login, failures }: LoginDeps): AdminAccess {
  return async (request, route) => {
    const why = foreignPage(request, route)
    if (why !== '') return { refused: refusalResponse(refusal(403, why)) }
    const given = bearerOf(request.authorization)
    const expected = token()
    if (given !== undefined && expected !== '' && isSameToken(given, expected)) return { user: TOKEN_FILE_USER }
    const answer = (await login?.admit(request, given, route)) ?? refusal(401, 'needs the token of --admin-token-file')
    if (!('code' in answer)) return { user: answer }
    return {
      refused: refusalResponse(failures === undefined ? answer : countFailure(failures, request, given, answer)),
    }
  }
}

/** A blocked address gets 429 in the place of 401; whoever presents nothing is only asked to. */
function countFailure(
  failures: FailureCounts,
  { certificate, remoteAddress }: PlainRequest,
  token: string | undefined,
  answer: AccessRefusal,
): AccessRefusal {
  const credential = token ?? certificate?.chain[0]?.toString('base64')
  if (answer.code !== 401 || credential === undefined) return answer
  const source = addressSource(remoteAddress)
  failures.failed(source, credential)
  const retryAfterSeconds = failures.waitSeconds(source)
  if (retryAfterSeconds === 0) return answer
  const message = tooManyFailuresMessage(source, retryAfterSeconds, 'valid credentials are served')
  return { code: 429, message, retryAfterSeconds }
}

/**
 * Fields that a client on this machine has no reason to send, and proxies add. The gateway itself adds x-forwarded-for, audit-id and
 * impersonate-user to whatever it forwards, and no client can have them removed: what a cluster's server receives is never from this
 * machine, even where that server is this listener.
 */
const FIELDS_OF_PROXIES = [
  'x-forwarded-for',
  'forwarded',
  'via',
  'audit-id',
  'impersonate-user',
  'impersonate-group',
  'impersonate-uid',
  'x-remote-user',
] as const

/** '' = no proxy has forwarded it. */
function forwarded(request: PlainRequest): string {
  const field = FIELDS_OF_PROXIES.find((name) => request.header(name) !== '')
  if (field === undefined) return ''
  return `a proxy has forwarded the request (it has ${field}): only this machine itself is trusted; connect directly, or give the listener TLS`
}

/**
 * DNS rebinding: a page of another site whose name has come to mean this machine may read what this machine answers. An address cannot be
 * rebound, and neither can localhost. '' = it is fine.
 */
function foreignHost(host: string): string {
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')
  if (name === '' || name.toLowerCase() === 'localhost' || isIP(name) !== 0) return ''
  return 'ask for localhost or an address: pages of other sites may have any other name'
}

/** What another site lets a browser ask: only to show a page. '' = it is fine. */
function foreignPage(request: PlainRequest, { access, method }: AdminRoute): string {
  const site = request.header('sec-fetch-site')
  const shown = method === 'GET' && access !== 'admin' && request.header('sec-fetch-mode') === 'navigate'
  const foreign = (site === 'cross-site' || site === 'same-site') && !shown
  const origin = request.header('origin')
  // Browsers without Sec-Fetch-Site.
  const other = origin !== '' && URL.parse(origin)?.host !== request.header('host')
  return foreign || other ? 'pages of other sites may not ask' : ''
}
