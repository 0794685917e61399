// An answer that the gateway writes itself, piece by piece, as fast as its client reads. Counted, charged, audited and ended like an answer from
// upstream.

import type { HeaderList, Stream } from '../../../kit/api/stream.ts'
import { warningValues } from '../../../kit/core/refusal/warning.ts'
import { AT, nextStepAt, workOn } from '../../../kit/io/stalls/steps.ts'
import { watchStarted } from '../../core/admission/held.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import { createWatchFrames, followWatch } from '../../core/request/watch-frames.ts'
import { threadScheduler } from '../../io/scheduling/thread-scheduler.ts'
import type { Permit } from './decision.ts'
import type { Answering, UpstreamHalf } from './state.ts'

const EMPTY = Buffer.alloc(0)
const OK = 200
const SWITCHING_PROTOCOLS = 101
const NOT_SWITCHED: HeaderList = []

export interface AnswerSource {
  /** The next piece. undefined = none yet: `proceed` asks again. 'end' = the answer is complete. */
  next(): Buffer | undefined | 'end'
  /** The answer is over, however it ended. */
  over(): void
}

export class OwnAnswer implements UpstreamHalf {
  readonly #permit: Permit
  readonly #source: AnswerSource
  #state: Answering | undefined
  #isOver = false
  /** Credits from the exchange, which are for upstream otherwise, continue the answer. */
  readonly stream: Stream = {
    queued: 0,
    headers: () => undefined,
    body: () => undefined,
    trailers: () => undefined,
    credit: () => this.proceed(),
    reset: () => undefined,
  }

  constructor(permit: Permit, source: AnswerSource) {
    this.#permit = permit
    this.#source = source
  }

  /**
   * Sends the head and the pieces that are ready.
   * @param fields such as content-type
   * @param switching those that switch to another protocol. Default: it is an answer of HTTP
   */
  begin(fields: HeaderList, switching: HeaderList = NOT_SWITCHED): void {
    const { exchange, warnings, isWatch } = this.#permit
    const { client, record, gw } = exchange
    if (exchange.place < 0) gw.running.add(exchange)
    exchange.sending(this, undefined)
    const nowMs = gw.clock.monotonic()
    nextStepAt(AT.answer, nowMs)
    workOn(record)
    record.code = switching.length > 0 ? SWITCHING_PROTOCOLS : OK
    record.ttfbMs = nowMs - record.startMs
    if (isWatch) watchStarted(this.#permit)
    this.#state = exchange.answering(
      isWatch ? createWatchFrames(headerValue(fields, 'content-type') ?? '', '') : undefined,
    )
    const head: HeaderList = [':status', String(record.code), ...switching, ...fields]
    head.push(
      'cache-control',
      'no-cache, private',
      'date',
      new Date(exchange.nowMs).toUTCString(),
      'audit-id',
      record.auditId,
    )
    for (const warning of warningValues(warnings)) head.push('warning', warning)
    threadScheduler.chargeAnswer(exchange.charge, 0)
    client.headers(head, false)
    gw.events.responseStarted(record)
    this.proceed()
  }

  /** There may be more to send. */
  proceed(): void {
    const { exchange } = this.#permit
    const state = this.#state
    while (!this.#isOver && state !== undefined) {
      if (exchange.client.queued >= exchange.answerWater) {
        // Any amount: the exchange credits it when there is room, which calls `proceed` again.
        state.owedToUpstream = 1
        return
      }
      const piece = this.#source.next()
      if (piece === undefined) return
      if (piece === 'end') {
        this.end()
        return
      }
      this.#write(piece, state)
    }
  }

  /** Everything has been sent. A watch ends between two events: if it is within one, as soon as that is sent. */
  end(): void {
    if (this.#isOver) return
    const { exchange } = this.#permit
    if (this.#state?.frames?.atBoundary === false) {
      this.#state.finishing = true
      return
    }
    exchange.client.body(EMPTY, true)
    exchange.end()
    exchange.chargeAnswer()
  }

  /** The client does not read it: counted like any other answer that is dropped for this reason. */
  drop(): void {
    if (!this.#isOver) this.#permit.exchange.dropAnswer()
  }

  cancel(): void {
    this.#finish()
  }

  leave(): void {
    this.#finish()
  }

  #write(piece: Buffer, { frames, finishing }: Answering): void {
    const { exchange } = this.#permit
    threadScheduler.chargeAnswer(exchange.charge, piece.length)
    exchange.record.responseBytes += piece.length
    exchange.record.audit?.responseBody(piece)
    exchange.client.body(piece, false)
    if (exchange.client.queued > 0) exchange.chargeAnswer()
    if (frames !== undefined && followWatch(frames, piece) && finishing) this.end()
  }

  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#source.over()
  }
}
