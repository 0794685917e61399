// Parts of an answer that take long to write, as rows of Tables, for which objects are parsed: they are written before it begins, between turns of others, and
// their memory is the caller's.

import { writable } from '../../cache/core/bytes/malformed.ts'
import { inSlices } from '../../cache/request/scan.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { outOfMemory } from './refusals.ts'
import type { MemberObject, ShownObjects } from './shown-objects.ts'

export interface WrittenAhead {
  /** One for each object. */
  readonly parts: readonly Buffer[]
  readonly bytes: number
}

export async function writeAhead(
  exchange: Exchange,
  objects: readonly MemberObject[],
  write: (one: MemberObject) => Buffer,
): Promise<WrittenAhead | Refusal> {
  const parts: Buffer[] = []
  let bytes = 0
  let failure: Refusal | undefined
  await inSlices(
    exchange,
    objects.map(({ object }) => object),
    () => {
      const one = objects[parts.length]
      if (failure !== undefined || one === undefined) return
      const part = writable(() => write(one))
      if (part === undefined) failure = refuse('internal', 'an object cannot be shown')
      else if (!exchange.takeMemory(part.length)) failure = outOfMemory()
      else {
        parts.push(part)
        bytes += part.length
      }
    },
  )
  if (failure === undefined && parts.length < objects.length) failure = refuse('internal', 'the client has gone')
  if (failure === undefined) return { parts, bytes }
  exchange.giveMemory(bytes)
  return failure
}

/** @param shown in Tables */
export function writeRows(
  exchange: Exchange,
  shown: ShownObjects,
  objects: readonly MemberObject[],
): Promise<WrittenAhead | Refusal> {
  const nowMs = exchange.gw.clock.now()
  return writeAhead(exchange, objects, (one) => shown.row(one, nowMs))
}
