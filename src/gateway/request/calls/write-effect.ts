// Whether a write ends pods (core/policy/ending-writes.ts): runs the write as a dry run and compares the result with the current
// object. Computed once per request and shared by all filters.

import { isRefusal, type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import {
  type EndingWrite,
  endingWriteOf,
  type RefusedWrite,
  type WriteEffect,
} from '../../core/policy/ending-writes.ts'
import { dependsOnMoment, mayChange } from '../../core/policy/write-body.ts'
import type { Decision } from '../exchange/decision.ts'
import { respondWith } from '../exchange/respond.ts'
import { reviewRight } from './kube-review.ts'
import { readWrite, type WrittenBody } from './request-bodies.ts'
import { refuseLimited, UpstreamReader } from './upstream-reader.ts'

/**
 * Calls upstream only if the body touches a relevant field, which few writes do.
 * @returns undefined = it ends no pods; a refusal = the caller may not write it, or has to retry
 */
export function writeEffect(decision: Decision): Promise<WriteEffect | Refusal | undefined> {
  decision.writeEffect ??= find(decision)
  return decision.writeEffect
}

async function find(decision: Decision): Promise<WriteEffect | Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  const write = endingWriteOf(info)
  if (write === undefined) return undefined
  // An upgrade joins two sockets, so we couldn't see what upstream makes of the request.
  if (exchange.upgrade !== undefined) return refuse('bad-request', `a write of ${info.resource} cannot be upgraded`)
  const written = await readWrite(exchange)
  if (isRefusal(written)) return written
  if (exchange.gone) return undefined
  const { contentType, body } = written
  if (!mayChange(write, contentType, body)) return undefined
  const right = await reviewRight(exchange, live, caller, info, 'write it')
  if (exchange.gone || exchange.phase === 'over') return undefined
  if (right.kind === 'denied') return right.refusal
  if (right.kind === 'unknown') return right
  const called = `${info.resource}/${info.name}`
  if (dependsOnMoment(write.places, contentType, body)) {
    const [field = ''] = write.places
    return { kind: 'ends', what: `may change ${field} of ${called} by a copy or a move`, after: undefined }
  }
  return await compare(decision, write, called, written)
}

async function compare(
  decision: Decision,
  write: EndingWrite,
  called: string,
  written: WrittenBody,
): Promise<WriteEffect | Refusal | undefined> {
  const upstream = new UpstreamReader(decision, 'write-check')
  const tried = await upstream.dryRun(written)
  if (tried.kind === 'limited') return refuseLimited(tried, 'write-check')
  if (tried.kind !== 'found') return tried
  const { target } = decision.exchange
  const query = target.indexOf('?')
  const found = await upstream.getAsCaller(query < 0 ? target : target.slice(0, query))
  if (found.kind === 'limited') return refuseLimited(found, 'write-check')
  // The write creates the object.
  if (found.kind === 'absent') return undefined
  const status = found.kind === 'unknown' ? found.answered?.status : 200
  if (found.kind === 'unknown' && (status === undefined || status === 200)) return found
  const what = write.outcome(found.kind === 'found' ? found.value : {}, tried.value, called)
  if (what !== undefined) return { kind: 'ends', what, after: tried.value }
  // The caller may write the object but not read it: decide by what the write sets; decreases can't be detected.
  if (found.kind === 'found' || !write.byAbsence) return undefined
  return {
    kind: 'unknown',
    why: `${called} cannot be read with the rights of the caller: upstream answered with ${status}`,
  }
}

/** Relays upstream's answer to the dry run; the write itself is not sent, and the client may retry. */
export function answerAsTried(decision: Decision, { status, body }: RefusedWrite): void {
  decision.deliver = ({ exchange, warnings }) => {
    respondWith(exchange, status, ['content-type', 'application/json'], Buffer.from(body), warnings)
    return Promise.resolve(undefined)
  }
}
