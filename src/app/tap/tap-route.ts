// GET /api/v1/tap: who may begin how many taps, and the record of each. What a tap shows names users, so it is audited as reading is.

import { randomUUID } from 'node:crypto'
import type { AdminRoute, AdminUser } from '../../admin/route.ts'
import { TEXT } from '../../admin/route.ts'
import type { Clock, Logger } from '../../api/ports/ports.ts'
import { readTapQuery, type TapRequest, writeTapQuery } from '../../core/tap/tap-query.ts'
import type { AnyResponse, PlainRequest, PlainResponse } from '../../io/listener/http-plain.ts'
import type { LineWriter } from '../../io/logs/line-writer.ts'
import { tapAuditLine } from '../../io/logs/tap-audit.ts'
import { TAP_EVENTS, TAPS, TAPS_REFUSED } from '../../io/metrics/descriptors.ts'
import type { MetricsRecorder } from '../../io/metrics/recorder.ts'
import type { ThreadPool } from '../threads/pool.ts'
import { TapSession } from './tap-session.ts'

export interface TapDeps {
  readonly replica: string
  readonly pool: Pick<ThreadPool, 'subscribe'>
  readonly clock: Clock
  readonly log: Logger
  /** undefined = there is no audit log; the process log has it in any case. */
  readonly audit: LineWriter | undefined
  readonly metrics: MetricsRecorder
}

/** At a time. Each costs every request a comparison with its filter. */
const MAX_TAPS = 16
/** Of one user, so that others can tap, too. */
const MAX_TAPS_PER_USER = 4
/** Events of a thread that may be on their way to the reader. */
const CREDIT = 256

export function tapRoute(deps: TapDeps): AdminRoute {
  const taps = new RunningTaps(deps)
  return { path: '/api/v1/tap', method: 'GET', access: 'view', answer: (request, user) => taps.answer(request, user) }
}

class RunningTaps {
  readonly #deps: TapDeps
  /** By user. */
  readonly #running = new Map<string, number>()

  constructor(deps: TapDeps) {
    this.#deps = deps
  }

  answer(request: PlainRequest, user: AdminUser): AnyResponse {
    const { request: tap, errors } = readTapQuery(request.query)
    if (tap === undefined) return { code: 400, contentType: TEXT, body: errors.map((error) => `${error}\n`).join('') }
    const full = this.#full(user)
    if (full !== undefined) {
      this.#deps.metrics.add(TAPS_REFUSED, 1)
      return full
    }
    const session = this.#begin(tap, request, user)
    return {
      code: 200,
      contentType: 'application/x-ndjson',
      // A proxy in between must not wait for more.
      headers: { 'x-accel-buffering': 'no' },
      stream: (out) => session.run(out),
    }
  }

  #full({ name }: AdminUser): PlainResponse | undefined {
    const all = [...this.#running.values()].reduce((sum, one) => sum + one, 0)
    const own = this.#running.get(name) ?? 0
    const limit = all >= MAX_TAPS ? `${MAX_TAPS} taps` : `${MAX_TAPS_PER_USER} taps of ${JSON.stringify(name)}`
    // Without a login everybody has the same name.
    if (all < MAX_TAPS && (name === '' || own < MAX_TAPS_PER_USER)) return undefined
    const body = `this replica has ${limit} already, which is the limit; end one of them\n`
    return { code: 429, contentType: TEXT, body, headers: { 'retry-after': '5' } }
  }

  #begin(request: TapRequest, { signal, remoteAddress }: PlainRequest, user: AdminUser): TapSession {
    const { replica, pool, clock, log, audit, metrics } = this.#deps
    const session = new TapSession({
      request,
      replica,
      clock,
      signal,
      subscribe: (question, onEvents) =>
        pool.subscribe('tap', question, { credit: CREDIT, onEvents: (events, _, thread) => onEvents(events, thread) }),
      count: (outcome, events) => metrics.add(TAP_EVENTS, events, outcome),
    })
    const query = writeTapQuery(request).toString()
    const beganMs = clock.now()
    const auditId = randomUUID()
    const about = { auditId, user, remoteAddress, query, beganMs }
    log.info('tap begins', { auditId, user: user.name, address: remoteAddress, query })
    audit?.write(tapAuditLine({ ...about, nowMs: beganMs, ended: undefined }))
    this.#change(user.name, 1)
    const end = (): void => {
      this.#change(user.name, -1)
      const ended = { shown: session.shown, dropped: session.dropped }
      log.info('tap ended', { auditId, user: user.name, ...ended })
      audit?.write(tapAuditLine({ ...about, nowMs: clock.now(), ended }))
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
