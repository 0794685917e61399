// What a write does to spec.replicas: from its body, or from a dry run upstream. Computed once per request and shared by all filters.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRefusal, type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { readReplicas } from '../../core/policy/read-replicas.ts'
import { readsObject, replicasOf, type ScaleChange, type UnknownReason } from '../../core/policy/scale-change.ts'
import { type ScaleTarget, scalePath, scaleTargetOf } from '../../core/request/scale-target.ts'
import { queryOf, queryValues } from '../../core/request/write-query.ts'
import type { Decision } from '../exchange/decision.ts'
import { reviewRight } from './kube-review.ts'
import { readWrite } from './request-bodies.ts'
import { type Limited, type Outcome, refuseLimited, UpstreamReader } from './upstream-reader.ts'

const DRY_RUN: ReadonlySet<string> = new Set(['dryRun'])

/**
 * Refuses an unauthorized caller before its body is read. Cached for the other filters.
 * @returns undefined = the request doesn't change spec.replicas, or is a dry run
 */
export function scaleChange(decision: Decision): Promise<ScaleChange | Refusal | undefined> {
  decision.scaleChange ??= find(decision)
  return decision.scaleChange
}

async function find(decision: Decision): Promise<ScaleChange | Refusal | undefined> {
  const { exchange, live, caller, info } = decision
  const target = scaleTargetOf(info)
  // Any value means dry run, or is refused upstream.
  if (target === undefined || queryValues(queryOf(exchange.target), DRY_RUN).size > 0) return undefined
  // An upgrade joins two sockets, so we couldn't see what upstream makes of the request.
  if (exchange.upgrade !== undefined) return refuse('bad-request', 'a write of replicas cannot be upgraded')
  const right = await reviewRight(exchange, live, caller, info, 'scale it')
  if (exchange.gone || exchange.phase === 'over') return undefined
  if (right.kind === 'denied') return right.refusal
  if (right.kind === 'unknown') return unknown(target, 'rights', right.why)
  const body = await readWrite(exchange)
  if (isRefusal(body)) return body
  if (exchange.gone) return undefined
  const verb = info.verb === 'update' ? 'update' : 'patch'
  const written = readReplicas({ target, verb, ...body })
  if (written.kind === 'unchanged') return undefined
  if (written.kind === 'unreadable') return unknown(target, 'unreadable', written.why)
  const upstream = new UpstreamReader(decision, 'scale-read')
  if (written.kind === 'replicas') return await compare(upstream, target, written.value)
  // If the body is ambiguous, ask upstream.
  const tried = await upstream.dryRun(body)
  switch (tried.kind) {
    case 'limited':
      return limited(target, tried)
    case 'refused':
      return { ...unknown(target, 'dry-run', `its dry run was answered with ${tried.status}`), answered: tried }
    case 'unknown':
      return unknown(target, tried.answered === undefined ? 'not-read' : 'dry-run', tried.why)
    case 'found': {
      const to = replicasOf(tried.value, target)
      if (to === undefined) return unknown(target, 'dry-run', 'the answer to its dry run has no spec.replicas')
      return await compare(upstream, target, to)
    }
  }
}

function unknown(target: ScaleTarget, unknownReason: UnknownReason, why: string): ScaleChange {
  return { target, from: undefined, to: undefined, current: undefined, unknown: why, unknownReason }
}

/** No policy lets it pass. */
function limited({ resource, name }: ScaleTarget, found: Limited): Refusal {
  return refuseLimited(found, 'scale-read', { kind: resource, name })
}

async function compare(
  upstream: UpstreamReader,
  target: ScaleTarget,
  to: number,
): Promise<ScaleChange | Refusal | undefined> {
  const isObject = readsObject(target)
  const found = await readCurrent(upstream, scalePath(target, isObject ? '' : '/scale'))
  switch (found.kind) {
    case 'limited':
      return limited(target, found)
    case 'absent':
      return { target, from: undefined, to, current: undefined }
    case 'unknown': {
      const why = found.answered === undefined ? found.why : `the scaled object cannot be read: ${found.why}`
      return { ...unknown(target, 'not-read', why), to }
    }
    case 'found': {
      const { value: current } = found
      const from = replicasOf(current, { isScale: !isObject })
      if (from === to) return undefined
      const change: ScaleChange = { target, from, to, current }
      if (from !== undefined) return change
      return { ...change, unknown: 'the scaled object has no spec.replicas', unknownReason: 'not-read' }
    }
  }
}

/**
 * Reads as the gateway; if its rights don't suffice, as the caller, who may write it but can rarely read it. If both are
 * forbidden, returns the gateway's answer, which says what to do about it.
 */
async function readCurrent(upstream: UpstreamReader, path: string): Promise<Outcome<JsonObject>> {
  const own = await upstream.get(path)
  if (!isForbidden(own)) return own
  const found = await upstream.getAsCaller(path)
  return isForbidden(found) ? own : found
}

function isForbidden(found: Outcome<unknown>): boolean {
  return found.kind === 'unknown' && found.answered?.status === 403
}
