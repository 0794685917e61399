// The texts of refusals that depend on current traffic: limits, endpoints, connections. They contain no addresses: any client may read
// them.

import type { CompiledSchema } from '../cluster/compiled-cluster.ts'

/** @param byAll the limit is the one shared by all replicas; @param seats that the request takes */
export function tooManyRequestsMessage(cluster: string, schema: CompiledSchema, byAll = false, seats = 1): string {
  const { qps, burst } = (byAll ? schema.shared : undefined) ?? schema
  return `too many requests for cluster "${cluster}": flow control "${schema.name}" allows ${qps} a second${scopeOf(schema, byAll)}, burst ${burst}${countsText(seats)}`
}

/** @param byAll the limit is the one shared by all replicas; @param seats that the request takes */
export function tooManyInFlightMessage(cluster: string, schema: CompiledSchema, byAll = false, seats = 1): string {
  const { max } = (byAll ? schema.shared : undefined) ?? schema
  return `too many requests in flight for cluster "${cluster}": flow control "${schema.name}" allows ${max} at once${scopeOf(schema, byAll)}${countsText(seats)}`
}

function countsText(seats: number): string {
  return seats === 1 ? '' : `, and this list counts as ${seats}`
}

function scopeOf(schema: CompiledSchema, byAll: boolean): string {
  if (byAll) return ' for all gateways together'
  return schema.perUser ? ' for each user' : ' for all its users together'
}

export function tooManyWatchesMessage(cluster: string, schema: CompiledSchema): string {
  return `too many watches for cluster "${cluster}": flow control "${schema.name}" allows ${schema.maxWatches} open at once${scopeOf(schema, false)}`
}

/** The end of a limit's message where a retry helps. */
export function comeBackText(seconds: number): string {
  return `; retry in ${seconds} s`
}

/**
 * For a call that the gateway would have to make itself, but does not make now.
 * @param what the calls, in the plural
 * @param source that causes them: an address or a user, named as such
 * @param atMost see `Turn.refused`
 */
export function callLimitMessage(
  cluster: string,
  what: string,
  source: string,
  atMost: number | undefined,
  retryAfterSeconds: number,
): string {
  const limit =
    atMost === undefined ? 'the rate of spec.clientConfig.qps is used up' : `at most ${atMost} may be in flight`
  return `too many ${what} for cluster "${cluster}" because of ${source}: ${limit}, shared fairly among callers; retry in ${retryAfterSeconds} s`
}

/**
 * For a deletion that was not evaluated because its turn did not come in time.
 * @param source that wants to delete
 * @param atMost number of concurrent evaluations
 */
export function deletionTurnMessage(
  cluster: string,
  source: string,
  atMost: number,
  retryAfterSeconds: number,
): string {
  return `too many deletions of pods of cluster "${cluster}" wait to be evaluated because of ${source}: ${atMost} are evaluated at a time, shared fairly among callers; retry in ${retryAfterSeconds} s`
}

export function misdirectedMessage(serverName: string, cluster: string): string {
  return `this connection was opened for "${serverName}" and does not serve cluster "${cluster}": open another one`
}

export function misdirectedListMessage(serverName: string): string {
  return `this connection was opened for "${serverName}", which is a cluster, and does not list clusters: open another one`
}

export function noEndpointMessage(cluster: string): string {
  return `no endpoint of cluster "${cluster}" is ready`
}

export function upstreamFailedMessage(cluster: string): string {
  return `the connection to an endpoint of cluster "${cluster}" failed before it answered`
}

/**
 * @param who a user, or the address of an unauthenticated client
 * @param longRunning they were watches and the like, and had been answered
 */
export function tooManyCancelledMessage(
  who: string,
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number },
  longRunning: boolean,
): string {
  const what = longRunning ? 'watches and other long-running requests' : 'requests'
  const when = longRunning ? '' : ' before their answers were complete'
  return `too many ${what} of ${who} were cancelled${when}: ${perSecond} a second are allowed, ${burst} at once`
}

/** @param blockedSeconds how long the address is blocked; its clients may be told to retry sooner */
export function blockedAddressMessage(source: string, seconds: number, blockedSeconds: number): string {
  const served =
    'a valid client certificate, and a token that was accepted before, are served, and a few new tokens are reviewed'
  return tooManyFailuresMessage(source, seconds, `it is blocked for another ${blockedSeconds} s, in which ${served}`)
}

/**
 * @param source an address
 * @param served which requests are still served
 */
export function tooManyFailuresMessage(source: string, seconds: number, served: string): string {
  return `too many failed logins or TLS handshakes from ${source} (--max-authentication-failures): retry in ${seconds} s; ${served}`
}

/** @param maxBytes name, value and 32 per field; Infinity = unknown */
export function headersTooLargeMessage(cluster: string, maxBytes: number): string {
  const limit = Number.isFinite(maxBytes) ? ` ${maxBytes} bytes` : ''
  return `the header fields of this request, and those that the gateway adds, are larger than the${limit} that cluster "${cluster}" accepts`
}

export function upgradeUnsupportedMessage(): string {
  return 'this request must be upgraded to SPDY/3.1 or WebSocket over HTTP/1.1'
}
