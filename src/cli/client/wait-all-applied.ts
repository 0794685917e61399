// Waits until every replica has the changes of many clusters in force: a watch says when, if the command has one. One list of all objects a look
// otherwise: a call for each would take longer than the changes.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { readAgain } from './chosen-clusters.ts'
import type { FollowedClusters } from './followed-clusters.ts'
import { aliveReplicas, LiveReplicas, type Look, lookOf, MAX_INVALID_LOOKS } from './wait-applied.ts'

interface WaitAllDeps {
  readonly client: ObjectClient
  readonly timeoutMs: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Between two looks, at least. Default 100 ms. */
  readonly pollMs?: number
  /** Default: every look is a list. */
  readonly followed?: FollowedClusters
  /** The first look is one all the same: a watch may hang without an error. Default false. */
  readonly listsFirst?: boolean
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
/** Between two lists beside a watch, which may hang without an error. */
const LIST_MS = 1_000

/** What is in force of each cluster once all have settled, or time is over. Those that are gone have no entry. */
export async function waitAllApplied(
  { client, timeoutMs, now, pollMs = POLL_MS, followed, listsFirst = false }: WaitAllDeps,
  names: readonly string[],
): Promise<ReadonlyMap<string, AppliedCluster>> {
  const deadlineMs = now() + timeoutMs
  const replicas = new LiveReplicas()
  const invalidLooks = new Map<string, number>()
  const wanted = new Set(names)
  let alive: ReadonlySet<string> = new Set()
  for (let isTold = !listsFirst; ; ) {
    const beganMs = now()
    const found = await lookAtAll(isTold).catch((error: unknown) => {
      if (!isPassing(error) || now() >= deadlineMs) throw error
      return undefined
    })
    const waits = found === undefined ? names : [...found].flatMap(([name, one]) => (mayCome(name, one) ? [name] : []))
    if (waits.length === 0 || now() >= deadlineMs) return found ?? new Map()
    // Looking takes the time of the API server that is to write what is looked for: at most a third of it.
    const isPolled = found === undefined || invalidLooks.size > 0 || followed?.isCurrent !== true
    const waitMs = Math.max(isPolled ? pollMs : LIST_MS, 2 * (now() - beganMs))
    isTold = await sleep(waits, Math.min(waitMs, Math.max(deadlineMs - now(), 0)))
  }

  function mayCome(name: string, { fault }: AppliedCluster): boolean {
    return fault !== '' && (invalidLooks.get(name) ?? 0) < MAX_INVALID_LOOKS
  }

  /** @returns whether the watch has ended it */
  async function sleep(waits: readonly string[], ms: number): Promise<boolean> {
    const isSettled = (object: JsonObject | undefined): boolean =>
      object === undefined || appliedOf(object, lookOf(object, alive)).fault === ''
    if (followed !== undefined) return await followed.until(waits, isSettled, ms)
    await new Promise((resolve) => setTimeout(resolve, ms))
    return false
  }

  async function lookAtAll(isTold: boolean): Promise<ReadonlyMap<string, AppliedCluster>> {
    alive = await aliveReplicas({ client, now }, replicas)
    const found = new Map<string, AppliedCluster>()
    for (const [name, object] of await readAll(isTold)) {
      const look = lookOf(object, alive)
      found.set(name, appliedOf(object, look))
      if (look.invalid !== '') invalidLooks.set(name, (invalidLooks.get(name) ?? 0) + 1)
    }
    return found
  }

  function noted(name: string, object: JsonObject | undefined): void {
    if (object === undefined) followed?.gone(name)
    else followed?.answered(object)
  }

  async function readAll(isTold: boolean): Promise<ReadonlyMap<string, JsonObject>> {
    if (!isTold || followed?.isCurrent !== true) {
      const found = await readAgain(client, wanted)
      // What it shows counts, even if the watch is behind it.
      for (const name of names) noted(name, found.get(name))
      return found
    }
    const known = names.map((name) => [name, followed.get(name)] as const)
    return new Map(known.flatMap(([name, object]) => (object === undefined ? [] : [[name, object] as const])))
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
