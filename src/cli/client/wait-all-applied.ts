// Waits until every replica has the changes of many clusters in force. One list of all objects a look: a call for each would take longer
// than the changes.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { readAgain } from './chosen-clusters.ts'
import { aliveReplicas, LiveReplicas, type Look, lookOf, MAX_INVALID_LOOKS } from './wait-applied.ts'

interface WaitAllDeps {
  readonly client: ObjectClient
  readonly timeoutMs: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Between two looks, at least. Default 100 ms. */
  readonly pollMs?: number
}

export interface AppliedCluster {
  readonly object: JsonObject
  /** Living replicas, and those of them that have it in force. */
  readonly replicas: number
  readonly applied: number
  /** Why it is not in force everywhere; '' = it is. */
  readonly fault: string
}

const POLL_MS = 100

/** What is in force of each cluster once all have settled, or time is over. Those that are gone have no entry. */
export async function waitAllApplied(
  { client, timeoutMs, now, pollMs = POLL_MS }: WaitAllDeps,
  names: readonly string[],
): Promise<ReadonlyMap<string, AppliedCluster>> {
  const deadlineMs = now() + timeoutMs
  const replicas = new LiveReplicas()
  const invalidLooks = new Map<string, number>()
  const wanted = new Set(names)
  for (;;) {
    const beganMs = now()
    const found = await lookAtAll().catch((error: unknown) => {
      if (!isPassing(error) || now() >= deadlineMs) throw error
      return undefined
    })
    const waits = found === undefined || [...found].some(([name, { fault }]) => fault !== '' && mayCome(name))
    if (!waits || now() >= deadlineMs) return found ?? new Map()
    // Looking takes the time of the API server that is to write what is looked for: at most a third of it.
    await new Promise((resolve) => setTimeout(resolve, Math.max(pollMs, 2 * (now() - beganMs))))
  }

  function mayCome(name: string): boolean {
    return (invalidLooks.get(name) ?? 0) < MAX_INVALID_LOOKS
  }

  async function lookAtAll(): Promise<ReadonlyMap<string, AppliedCluster>> {
    const alive = await aliveReplicas({ client, now }, replicas)
    const found = new Map<string, AppliedCluster>()
    for (const [name, object] of await readAgain(client, wanted)) {
      const look = lookOf(object, alive)
      found.set(name, appliedOf(object, look))
      if (look.invalid !== '') invalidLooks.set(name, (invalidLooks.get(name) ?? 0) + 1)
    }
    return found
  }
}

/** No answer, or one of a server that is overloaded or starting: the next look may have another. */
function isPassing(error: unknown): boolean {
  if (error instanceof StatusError) return error.code >= 500 || error.code === 429
  return !(error instanceof UserError)
}

function appliedOf(object: JsonObject, { generation, rows, invalid }: Look): AppliedCluster {
  const alive = rows.filter((row) => row.alive)
  const waiting = alive.filter((row) => !row.applied)
  const numbers = { object, replicas: alive.length, applied: alive.length - waiting.length }
  if (alive.length > 0 && waiting.length === 0) return { ...numbers, fault: '' }
  if (invalid !== '') return { ...numbers, fault: `generation ${generation} is invalid: ${invalid}` }
  if (alive.length === 0) return { ...numbers, fault: 'no gateway renews its Lease; is one running?' }
  const names = waiting.map(({ replica, gateway }) => {
    return gateway?.message === undefined ? replica : `${replica} (${gateway.message})`
  })
  return { ...numbers, fault: `generation ${generation} is not in force yet on ${names.join(', ')}` }
}
