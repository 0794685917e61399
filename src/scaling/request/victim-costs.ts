// Sets and removes deletion costs on the victims of a scale-down: never on a pod that another client has given a cost meanwhile,
// and never on another pod of the same name.

import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { compareVersions } from '../../protection/core/history/resource-version.ts'
import { podsPath } from '../../protection/request/deletion.ts'
import { forEachAtOnce, UnavailableError } from '../core/victim-choice/cluster-reads.ts'
import { costAnnotations, type OwnCost, ownCost, podCost, withoutCost } from '../core/victim-choice/own-cost.ts'
import type { UpstreamObjects } from './upstream-objects.ts'

/** Pods change all the time, mostly in their status. */
const MAX_TRIES = 3

export interface SetCosts {
  /** Names of the pods that now have the cost. */
  readonly set: readonly string[]
  /** Pods that another client has given a cost meanwhile. */
  readonly conflicts: readonly string[]
  /** resourceVersion of the last write; '' = none. */
  readonly version: string
}

/** @throws {UnavailableError} some pods may have the cost then */
export async function setCosts(
  upstream: UpstreamObjects,
  namespace: string,
  victims: readonly JsonObject[],
  own: OwnCost,
): Promise<SetCosts> {
  const set: string[] = []
  const conflicts: string[] = []
  let version = ''
  await forEachAtOnce(victims, async (victim) => {
    const result = await patchPod(upstream, namespace, victim, (pod) => {
      return podCost(pod).kind === 'foreign' ? undefined : costAnnotations(own)
    })
    if (result === 'declined') conflicts.push(nameOf(victim))
    if (typeof result === 'string') return
    set.push(nameOf(victim))
    const written = textOf(recordOf(result['metadata'])['resourceVersion'])
    if (version === '' || (compareVersions(written, version) ?? 0) > 0) version = written
  })
  return { set, conflicts, version }
}

/**
 * @param id only costs of this scale-down; '' = of any
 * @throws {UnavailableError} some pods may still have the cost
 */
export async function takeBackCosts(
  upstream: UpstreamObjects,
  namespace: string,
  pods: readonly JsonObject[],
  id: string,
): Promise<void> {
  await forEachAtOnce(pods, async (known) => {
    // `known` may be from before the cost was set.
    const now = await upstream.get(pathOf(namespace, known))
    if (now === undefined || uidOf(now) !== uidOf(known)) return
    await patchPod(upstream, namespace, now, (pod) => {
      const own = ownCost(pod)
      return own === undefined || (id !== '' && own.id !== id) ? undefined : withoutCost(podCost(pod).kind)
    })
  })
}

/**
 * Requires the pod's uid and resourceVersion: a concurrent write is read first.
 * @param annotations undefined = unchanged
 * @returns the patched pod
 */
async function patchPod(
  upstream: UpstreamObjects,
  namespace: string,
  known: JsonObject,
  annotations: (pod: JsonObject) => Readonly<Record<string, string | null>> | undefined,
): Promise<JsonObject | 'gone' | 'declined'> {
  const uid = uidOf(known)
  const path = pathOf(namespace, known)
  let pod = known
  for (let tries = 1; ; tries++) {
    const wanted = annotations(pod)
    if (wanted === undefined) return 'declined'
    const { resourceVersion } = recordOf(pod['metadata'])
    const body = JSON.stringify({ metadata: { uid, resourceVersion, annotations: wanted } })
    const written = await upstream.patch(path, body)
    if (written === 'absent') return 'gone'
    if (written !== 'conflict') return written
    if (tries === MAX_TRIES) throw new UnavailableError('a pod cannot be patched: upstream answered with 409')
    const now = await upstream.get(path)
    if (now === undefined || uidOf(now) !== uid) return 'gone'
    pod = now
  }
}

function pathOf(namespace: string, pod: JsonObject): string {
  return `${podsPath(namespace)}/${encodeURIComponent(nameOf(pod))}`
}

function uidOf(pod: JsonObject): string {
  return textOf(recordOf(pod['metadata'])['uid'])
}

/** Whether upstream's caches have the write: an API server answers such a read only once its cache is recent enough. */
export async function seenByCaches(
  upstream: UpstreamObjects,
  namespace: string,
  { set, version }: SetCosts,
): Promise<void> {
  const [name] = set
  if (name === undefined || version === '') return
  await upstream.get(
    `${podsPath(namespace)}/${encodeURIComponent(name)}?resourceVersion=${encodeURIComponent(version)}`,
  )
}
