// Access to the admin listener. On a loopback address without TLS and token: every client on this machine, except pages of other sites in a browser.
// Otherwise holders of the --admin-token-file token, and users that the API server of the objects authenticates and authorizes.

import { isIP } from 'node:net'
import { tooManyFailuresMessage } from '../../../gateway/core/policy/traffic-messages.ts'
import type { PlainRequest } from '../../../gateway/io/listener/http-plain.ts'
import { addressSource } from '../../../kit/core/shares/call-source.ts'
import type { FailureCounts } from '../../../process/api/failure-counts.ts'
import { bearerOf, isSameToken } from '../../../process/certificates/bearer-token.ts'
import {
  type AdminAccess,
  type AdminRefusal,
  type AdminRoute,
  type AdminUser,
  adminRefusalResponse,
  NO_USER,
} from '../../io/server/route.ts'
import { refusal } from './review-access.ts'

/** The user of the --admin-token-file token, which the replicas share. */
export const TOKEN_FILE_USER: AdminUser = { name: 'portcullis:admin-token', groups: [], replica: true }

/** Authentication and authorization by the objects' API server. Never rejects. */
export interface AdminLogin {
  /** PEM of the current CAs of client certificates. '' = none are accepted. */
  clientCA(): string
  /** @param token of the request; undefined = none */
  admit(request: PlainRequest, token: string | undefined, route: AdminRoute): Promise<AdminUser | AdminRefusal>
}

/** For clients of a loopback address. */
export const localAccess: AdminAccess = (request, route) => {
  const why = forwarded(request) || foreignHost(request.header('host')) || foreignPage(request, route)
  return Promise.resolve(why === '' ? { user: NO_USER } : { refused: adminRefusalResponse(refusal(403, why)) })
}

interface LoginDeps {
  /** Current token of --admin-token-file; '' = none. */
  token(): string
  /** undefined = only the token is accepted. */
  readonly login: AdminLogin | undefined
  /** Default: failed credentials are not counted. */
  readonly failures?: FailureCounts
}

export function loginAccess({ token, login, failures }: LoginDeps): AdminAccess {
  return async (request, route) => {
    const why = foreignPage(request, route)
    if (why !== '') return { refused: adminRefusalResponse(refusal(403, why)) }
    const given = bearerOf(request.authorization)
    const expected = token()
    if (given !== undefined && expected !== '' && isSameToken(given, expected)) return { user: TOKEN_FILE_USER }
    const answer = (await login?.admit(request, given, route)) ?? refusal(401, 'needs the token of --admin-token-file')
    if (!('code' in answer)) return { user: answer }
    return {
      refused: adminRefusalResponse(failures === undefined ? answer : countFailure(failures, request, given, answer)),
    }
  }
}

/** A blocked address gets 429 instead of 401; a client without credentials is merely asked for them. */
function countFailure(
  failures: FailureCounts,
  { certificate, remoteAddress }: PlainRequest,
  token: string | undefined,
  answer: AdminRefusal,
): AdminRefusal {
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
 * Fields that a client on this machine has no reason to send, but proxies add. The gateway itself adds x-forwarded-for, audit-id and impersonate-user
 * to everything it forwards, and no client can have them removed: so what a cluster's server receives is never taken for a local request, even if
 * that server is this listener.
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

/** '' = not forwarded by a proxy. */
function forwarded(request: PlainRequest): string {
  const field = FIELDS_OF_PROXIES.find((name) => request.header(name) !== '')
  if (field === undefined) return ''
  return `a proxy has forwarded the request (it has ${field}): only this machine itself is trusted; connect directly, or give the listener TLS`
}

/**
 * DNS rebinding: a page of another site whose name now resolves to this machine could read its responses. Addresses and localhost cannot be rebound.
 * '' = allowed.
 */
function foreignHost(host: string): string {
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')
  if (name === '' || name.toLowerCase() === 'localhost' || isIP(name) !== 0) return ''
  return 'use localhost or an address as the host name: pages of other sites may have any other name'
}

/** Other sites may only make a browser show a page. '' = allowed. */
function foreignPage(request: PlainRequest, { access, method }: AdminRoute): string {
  const site = request.header('sec-fetch-site')
  const shown = method === 'GET' && access !== 'admin' && request.header('sec-fetch-mode') === 'navigate'
  const foreign = (site === 'cross-site' || site === 'same-site') && !shown
  const origin = request.header('origin')
  // Browsers without Sec-Fetch-Site.
  const other = origin !== '' && URL.parse(origin)?.host !== request.header('host')
  return foreign || other ? 'pages of other sites may not send requests' : ''
}
