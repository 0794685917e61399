// Whether a write ends pods (core/policy/ending-writes.ts): the write is tried as a dry run, and its outcome compared with what is
// there. Asked by every filter that cares, found out once.

import { CallLimitError, KubeCallError } from '../../core/answers/call-errors.ts'
import { type EndingWrite, endingWriteOf, type WriteEffect } from '../../core/policy/ending-writes.ts'
import { dependsOnMoment, mayChange } from '../../core/policy/write-body.ts'
import { isRefusal, type Refusal, refuse } from '../../core/refusal/refusal.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import type { RefusedWrite } from '../../core/scale/scale-write/scale-change.ts'
import type { Decision } from '../exchange/decision.ts'
import { readBody } from '../exchange/read-body.ts'
import { respondWith } from '../exchange/respond.ts'
import { reviewRight } from './access.ts'
import { asCaller, callUpstream, MAX_WRITE_BYTES, objectOf, tryWrite, writeTooLarge } from './try-write.ts'

/**
 * Nobody is asked anything about a write whose body touches nothing that decides: hardly any does.
 * @returns undefined = it ends no pods; a refusal = the caller may not write it, or has to come again
 */
export function writeEffect(decision: Decision): Promise<WriteEffect | Refusal | undefined> {
  decision.writeEffect ??= find(decision)
  return decision.writeEffect
}

async function find(decision: Decision): Promise<WriteEffect | Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  const write = endingWriteOf(info)
  if (write === undefined) return undefined
  // An upgrade joins two sockets, and what upstream makes of the request could not be seen.
  if (exchange.upgrade !== undefined) return refuse('bad-request', `a write of ${info.resource} cannot be upgraded`)
  const body = await readBody(exchange, MAX_WRITE_BYTES, writeTooLarge)
  if (isRefusal(body)) return body
  if (exchange.gone) return undefined
  const contentType = headerValue(exchange.head.fields, 'content-type') ?? ''
  if (!mayChange(write, contentType, body)) return undefined
  const right = await reviewRight(exchange, live, caller, info, 'write it')
  if (exchange.gone || exchange.phase === 'over') return undefined
  if (right.kind === 'denied') return right.refusal
  if (right.kind === 'unknown') return { kind: 'unknown', why: right.message }
  const called = `${info.resource}/${info.name}`
  if (dependsOnMoment(write.places, contentType, body)) {
    const [field = ''] = write.places
    return { kind: 'ends', what: `may change ${field} of ${called} by a copy or a move`, after: undefined }
  }
  try {
    return await compare(decision, write, called, contentType, body)
  } catch (error) {
    if (error instanceof CallLimitError) {
      const { message, retryAfterSeconds } = error
      return refuse('too-many-reviews', message, { retryAfterSeconds, rule: 'write-check' })
    }
    if (error instanceof KubeCallError || error instanceof SyntaxError) return { kind: 'unknown', why: error.message }
    throw error
  }
}

async function compare(
  decision: Decision,
  write: EndingWrite,
  called: string,
  contentType: string,
  body: Buffer,
): Promise<WriteEffect | undefined> {
  const tried = await tryWrite(decision, 'write-check', contentType, body)
  if (tried.kind !== 'object') return tried
  const { target } = decision.exchange
  const query = target.indexOf('?')
  const path = query < 0 ? target : target.slice(0, query)
  const answer = await callUpstream(decision, 'write-check', { method: 'GET', path, ...asCaller(decision) })
  // The write creates it.
  if (answer.status === 404) return undefined
  const before = answer.status === 200 ? objectOf(answer) : undefined
  const what = write.outcome(before ?? {}, tried.object, called)
  if (what !== undefined) return { kind: 'ends', what, after: tried.object }
  // Of a caller who may write it but not read it, what is set counts; what gets smaller nobody can say.
  if (before !== undefined || !write.byAbsence) return undefined
  return { kind: 'unknown', why: `${called} cannot be read as the caller: upstream answered with ${answer.status}` }
}

/** The client gets what upstream said to the dry run, and comes again if it likes: the write itself is not sent. */
export function answerAsTried(decision: Decision, { status, body }: RefusedWrite): void {
  decision.deliver = ({ exchange, warnings }) => {
    respondWith(exchange, status, ['content-type', 'application/json'], Buffer.from(body), warnings)
    return Promise.resolve(undefined)
  }
}
