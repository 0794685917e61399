// GET /api/v1/tap: limits on concurrent taps, and a record of each. What a tap shows includes user names, so it is audited like a read.

import { randomUUID } from 'node:crypto'
import { type AdminRoute, type AdminUser, PLAIN_TEXT } from '../../../admin/io/server/route.ts'
import type { AnyResponse, PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import type { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import type { SubscribesToThreads } from '../../../kit/core/topics/streams.ts'
import type { LineWriter } from '../../../kit/io/logs/line-writer.ts'
import { auditLine } from '../../../kube/io/audit/audit-event.ts'
import { TAPPED } from '../../core/tap/tap-messages.ts'
import { clustersWith, readTapQuery, type TapRequest, writeTapQuery } from '../../core/tap/tap-query.ts'
import { TAP_EVENTS, TAPS, TAPS_REFUSED } from '../../metrics/descriptors.ts'
import { type ClustersHere, chosenNames } from '../choice/chosen-names.ts'
import { type TapReplicas, tapPeers } from './tap-peers.ts'
import { TapSession } from './tap-session.ts'

export interface TapDeps {
  readonly replica: string
  readonly pool: SubscribesToThreads
  readonly clusters: ClustersHere
  readonly replicas: TapReplicas
  readonly clock: Clock
  readonly log: Logger
  /** undefined = no audit log; the process log records it in any case. */
  readonly audit: LineWriter | undefined
  readonly metrics: MetricsRecorder
}

/** Concurrent taps. Each costs every request a comparison with its filter. */
const MAX_TAPS = 16
/** Per user, so that others can tap, too. */
const MAX_TAPS_PER_USER = 4
/** Events per thread that may be in transit to the reader. */
const CREDIT = 256
const MAX_NAME = 256

export function tapRoute(deps: TapDeps): AdminRoute {
  const taps = new RunningTaps(deps)
  const answer = (request: PlainRequest, user: AdminUser): AnyResponse => taps.answer(request, user)
  return { path: '/api/v1/tap', method: 'GET', access: 'view', replicas: true, audited: true, answer }
}

class RunningTaps {
  readonly #deps: TapDeps
  /** Keyed by user. */
  readonly #running = new Map<string, number>()

  constructor(deps: TapDeps) {
    this.#deps = deps
  }

  answer(request: PlainRequest, user: AdminUser): AnyResponse {
    const { request: tap, errors } = readTapQuery(request.query)
    if (tap === undefined)
      return { code: 400, contentType: PLAIN_TEXT, body: errors.map((error) => `${error}\n`).join('') }
    const chosen = tap.selector === '' ? [] : chosenNames(clustersWith(tap.selector), this.#deps.clusters)
    if (typeof chosen === 'string') return { code: 400, contentType: PLAIN_TEXT, body: `${chosen}\n` }
    const name = userOf(request, user)
    const full = this.#full(name)
    if (full !== undefined) {
      this.#deps.metrics.add(TAPS_REFUSED, 1)
      return full
    }
    const session = this.#begin(tap, chosen, request, user, name)
    return {
      code: 200,
      contentType: 'application/x-ndjson',
      // A proxy in between must not buffer.
      headers: { 'x-accel-buffering': 'no' },
      stream: (out) => session.run(out),
    }
  }

  #full(name: string): PlainResponse | undefined {
    const all = [...this.#running.values()].reduce((sum, one) => sum + one, 0)
    const own = this.#running.get(name) ?? 0
    const limit = all >= MAX_TAPS ? `${MAX_TAPS} taps` : `${MAX_TAPS_PER_USER} taps of ${JSON.stringify(name)}`
    // Without a login all users have the same name.
    if (all < MAX_TAPS && (name === '' || own < MAX_TAPS_PER_USER)) return undefined
    const body = `this replica has ${limit} already, which is the limit; end one of them\n`
    return { code: 429, contentType: PLAIN_TEXT, body, headers: { 'retry-after': '5' } }
  }

  /** @param chosen clusters that the selector matches; [] = there is none */
  #begin(tap: TapRequest, chosen: readonly string[], request: PlainRequest, user: AdminUser, name: string): TapSession {
    const { replica, replicas, pool, clock, log, audit, metrics } = this.#deps
    const { signal, remoteAddress, query } = request
    const session = new TapSession({
      request: chosen.length === 0 ? tap : { ...tap, filter: { ...tap.filter, clusters: chosen } },
      replica,
      clock,
      signal,
      subscribe: (question, onEvents) =>
        pool.subscribe(TAPPED, question, { credit: CREDIT, onEvents: (events, _, thread) => onEvents(events, thread) }),
      ...(query.get('replicas') === 'all' && { peers: () => tapPeers(replicas, query, name) }),
      count: (outcome, events) => metrics.add(TAP_EVENTS, events, outcome),
    })
    const beganMs = clock.now()
    this.#change(name, 1)
    // The logs already record its beginning, like every use of this route.
    const end = (): void => {
      this.#change(name, -1)
      const ended = { shown: session.shown, dropped: session.dropped }
      const filter = writeTapQuery(tap).toString()
      log.info('tap ended', { user: name, address: remoteAddress, query: filter, ...ended })
      const about = { auditId: randomUUID(), user, remoteAddress, query: filter, beganMs }
      audit?.write(tapAuditLine({ ...about, nowMs: clock.now(), ...ended }))
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
    return session
  }

  #change(user: string, by: number): void {
    const running = (this.#running.get(user) ?? 0) + by
    if (running === 0) this.#running.delete(user)
    else this.#running.set(user, running)
    this.#deps.metrics.set(
      TAPS,
      [...this.#running.values()].reduce((sum, one) => sum + one, 0),
    )
  }
}

/**
 * User name for counting and logging; `NAME for USER` if another replica asks on behalf of a user. From any other client that is ignored: a new name
 * for each tap would evade the limit.
 */
function userOf({ query }: PlainRequest, { name, replica = false }: AdminUser): string {
  const user = replica ? (query.get('onBehalfOf') ?? '') : ''
  return user === '' ? name : `${name} for ${user}`.slice(0, MAX_NAME)
}

interface AuditedTap {
  readonly auditId: string
  /** The name is '' if the admin listener requires no login. */
  readonly user: { readonly name: string; readonly groups: readonly string[] }
  readonly remoteAddress: string
  /** As requested. */
  readonly query: string
  /** Wall clock, milliseconds since the epoch. */
  readonly beganMs: number
  readonly nowMs: number
  /** Events. */
  readonly shown: number
  readonly dropped: number
}

/** Without the line end. */
function tapAuditLine(tap: AuditedTap): string {
  const { auditId, user, remoteAddress, query, beganMs, nowMs, shown, dropped } = tap
  return auditLine({
    auditId,
    stage: 'ResponseComplete',
    requestURI: `/api/v1/tap${query === '' ? '' : `?${query}`}`,
    verb: 'get',
    user: { name: user.name, uid: '', groups: user.groups },
    impersonatedUser: undefined,
    sourceIP: remoteAddress,
    userAgent: '',
    object: undefined,
    response: { code: 200 },
    receivedMs: beganMs,
    stageMs: nowMs,
    annotations: {
      'portcullis.io/listener': 'admin',
      'portcullis.io/tap-shown': String(shown),
      'portcullis.io/tap-dropped': String(dropped),
    },
  })
}
