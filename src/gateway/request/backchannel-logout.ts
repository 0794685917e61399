// `POST /clusters/-/backchannel-logout`: an OpenID provider tells of a logout (OpenID Connect Back-Channel Logout 1.0). Its signed token is the only
// credential; no cluster is asked. What comes first costs least: no key is looked at, or fetched, for a token of an issuer that no cluster names.

import type { Logger } from '../../kit/api/ports.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { RareWarnings } from '../../kit/io/logs/rare-warnings.ts'
import { readIdToken } from '../../pki/io/id-tokens/verify-id-token.ts'
import type { Jwt } from '../../pki/io/jwt.ts'
import type { EndedSession } from '../api/token-session.ts'
import type { CompiledIssuer } from '../core/cluster/compiled-cluster.ts'
import { audiencesOf, LOGOUT_FORM, readLogoutClaims, readLogoutForm } from '../core/logout/token-session.ts'
import { sourceOf } from '../io/reviews/issuer-tokens.ts'
import { takeSteps } from '../io/scheduling/sliced-steps.ts'
import { issuersOf } from './accepting-clusters.ts'
import { fail, refuseBlockedToken, trialPassed } from './blocked-address.ts'
import { contentTypeOf, readBody } from './calls/request-bodies.ts'
import type { Exchange } from './exchange/exchange.ts'
import { respondWith } from './exchange/respond.ts'

/** An issuer, with all audiences of the token that clusters accept from it. */
interface Telling {
  readonly issuer: CompiledIssuer
  readonly audiences: Set<string>
}

/** The token has some hundred characters. */
export const MAX_LOGOUT_BYTES: number = 16 * 1024
/** Faults of a token that no provider sends. */
const FORGED: ReadonlySet<string | undefined> = new Set(['unknown-key', 'algorithm', 'malformed'])

/** @returns a refusal that is still to be sent */
export async function endSessions(exchange: Exchange): Promise<Refusal | undefined> {
  const body = await readBody(exchange, MAX_LOGOUT_BYTES, () =>
    refuse('body-too-large', `Request entity too large: limit is ${MAX_LOGOUT_BYTES} bytes for a logout token`),
  )
  if (isRefusal(body)) return body
  if (exchange.gone) return gone(exchange)
  const token = readLogoutForm(contentTypeOf(exchange), body.toString('latin1'))
  if (token === undefined) return invalid(exchange, `the body is not a form (${LOGOUT_FORM}) with one logout_token`)
  const blocked = refuseBlockedToken(exchange, token, () => 'unknown')
  if (blocked !== undefined && blocked !== 'trial') return blocked
  const jwt = readIdToken(token)
  if (jwt === undefined) return invalid(exchange, 'logout_token is not a signed token')
  const told = readLogoutClaims(jwt.header, jwt.claims)
  if ('fault' in told) return invalid(exchange, `not a logout token: ${told.fault}`)
  const telling = new Map<string, Telling>()
  await takeSteps(exchange.charge, tellingIssuers(exchange, jwt, telling), () => exchange.gone)
  if (exchange.gone) return gone(exchange)
  if (telling.size === 0) return notAccepted(exchange, 'no issuer with backchannelLogout has its iss and aud')
  const signed = await signedBy(exchange, jwt, telling)
  if (exchange.gone) return gone(exchange)
  if (typeof signed === 'string') return notAccepted(exchange, signed)
  if (blocked === 'trial') trialPassed(exchange)
  return await end(
    exchange,
    signed.map(({ issuer, audiences }) => ({
      issuer: issuer.rules.issuer,
      source: sourceOf(issuer),
      audiences: [...audiences].sort(),
      ...told,
    })),
  )
}

/** By source of keys: several clusters may have the same issuer. */
function* tellingIssuers(exchange: Exchange, jwt: Jwt, telling: Map<string, Telling>): Generator<undefined> {
  for (const byKeys of issuersOf(exchange, jwt)) {
    for (const [keys, entries] of byKeys) {
      for (const { issuer } of entries) {
        yield undefined
        if (issuer.endsSessions !== true) continue
        const known = telling.get(keys) ?? { issuer, audiences: new Set() }
        telling.set(keys, known)
        for (const audience of audiencesOf(jwt.claims, issuer.rules.audiences)) known.audiences.add(audience)
      }
    }
  }
}

/** The issuers that have signed it, and for which it is valid now; or why there is none. */
async function signedBy(
  exchange: Exchange,
  jwt: Jwt,
  telling: ReadonlyMap<string, Telling>,
): Promise<readonly Telling[] | string> {
  const signed: Telling[] = []
  let reason = ''
  let isForged = false
  const checks = [...telling.values()].map((one) => [one, exchange.gw.issuers.faultOf(one.issuer, jwt)] as const)
  for (const [one, pending] of checks) {
    const fault = await pending
    if (fault === undefined) signed.push(one)
    else reason = fault
    isForged ||= FORGED.has(fault)
  }
  if (signed.length > 0) return signed
  if (isForged) fail(exchange)
  return reason
}

async function end(exchange: Exchange, ended: readonly EndedSession[]): Promise<undefined> {
  // Too late: it may be in force, but the provider should try again.
  const outcome = await exchange.gw.endSessions(ended).catch(() => 'failed' as const)
  switch (outcome) {
    case 'everywhere':
    case 'here':
      return answer(exchange, 200, { sessions: 'ended', inForce: outcome === 'here' ? 'this replica' : 'all replicas' })
    case 'full':
      return answer(exchange, 400, { error: 'server_error', error_description: 'too many logouts are remembered' })
    case 'failed':
      return answer(exchange, 400, {
        error: 'server_error',
        error_description: 'in force in this replica, but not stored for the others',
      })
  }
}

const warnings = new WeakMap<Logger, RareWarnings>()

/** A stranger does not learn which issuers and audiences there are; the log says why. */
function notAccepted(exchange: Exchange, reason: string): undefined {
  const { log, clock } = exchange.gw
  const rare = warnings.get(log) ?? new RareWarnings({ log, clock })
  warnings.set(log, rare)
  rare.warn('a logout token is not accepted', { address: exchange.peer.remoteAddress, reason })
  exchange.record.message = `a logout token is not accepted: ${reason}`
  return answer(exchange, 400, { error: 'invalid_request', error_description: 'the logout token is not accepted' })
}

/** Section 2.8: 400 for a logout that is invalid, or failed. */
function invalid(exchange: Exchange, description: string): undefined {
  exchange.record.message = description
  return answer(exchange, 400, { error: 'invalid_request', error_description: description })
}

function answer(exchange: Exchange, code: number, body: object): undefined {
  const bytes = Buffer.from(`${JSON.stringify(body)}\n`)
  respondWith(exchange, code, ['content-type', 'application/json'], bytes, [], 'no-store')
  return undefined
}

function gone(exchange: Exchange): undefined {
  exchange.record.aborted = 'client'
  exchange.end()
}
