// Up to when the pods of a cell have been seen, according to the pods themselves: Podseidon's `status` algorithm (aggregator/synctime), and a
// time that a patched apiserver writes into an annotation. Neither proves anything, because clocks of several machines are mixed; sync time
// by resourceVersion does.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import { UPDATE_TRIGGER_ANNOTATION } from '../../api/protection.ts'
import { parseMicros } from './micro-time.ts'

const SECOND = 1_000_000

/**
 * The last moment at which something happened to the pod, microseconds since the epoch; undefined = it has no time. A deletionTimestamp
 * lies in the future by the grace period: what counts is when the deletion was requested.
 * @param nowMicros upper bound: a clock that is ahead must not claim more than has been seen
 */
export function statusTime(pod: JsonObject, nowMicros: number): number | undefined {
  const metadata = recordOf(pod['metadata'])
  const times = [
    timeOf(metadata['creationTimestamp']),
    deletionTime(metadata),
    timeOf(recordOf(metadata['annotations'])[UPDATE_TRIGGER_ANNOTATION]),
  ]
  const { conditions } = recordOf(pod['status'])
  for (const condition of Array.isArray(conditions) ? conditions : []) {
    const { lastProbeTime, lastTransitionTime } = recordOf(condition)
    times.push(timeOf(lastProbeTime), timeOf(lastTransitionTime))
  }
  return latest(times, nowMicros)
}

/** As statusTime, by one annotation of the pod (RFC 3339). */
export function annotationTime(pod: JsonObject, annotation: string, nowMicros: number): number | undefined {
  const annotations = recordOf(recordOf(pod['metadata'])['annotations'])
  if (!Object.hasOwn(annotations, annotation)) return undefined
  return latest([timeOf(annotations[annotation])], nowMicros)
}

function deletionTime({ deletionTimestamp, deletionGracePeriodSeconds }: JsonObject): number {
  const grace = typeof deletionGracePeriodSeconds === 'number' ? Math.max(0, deletionGracePeriodSeconds) : 0
  return timeOf(deletionTimestamp) - grace * SECOND
}

function latest(times: readonly number[], nowMicros: number): number | undefined {
  let last = Number.NEGATIVE_INFINITY
  for (const time of times) if (time > last) last = time
  return last === Number.NEGATIVE_INFINITY ? undefined : Math.min(last, nowMicros)
}

/** NaN if it is not a time: every comparison with it is false. */
function timeOf(value: unknown): number {
  return typeof value === 'string' ? parseMicros(value) : Number.NaN
}
