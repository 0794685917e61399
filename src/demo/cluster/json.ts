// DEMO ONLY. Reading JSON whose shape nobody has checked: a missing or mistyped field reads as undefined, '' or 0.

import type { KubeObject, ObjectMeta } from '../../api/kube/meta.ts'

/** Any JSON object. */
export interface Json {
  readonly [field: string]: unknown
}

/** A stored object; never changed in place, so that a watch may hold on to it. */
export interface DemoObject extends KubeObject, Json {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta & Json & Ending
}

/** metav1.ObjectMeta of an object that is being deleted. */
interface Ending {
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value at `path`, e.g. `spec.template.metadata`; keys that hold a dot cannot be reached. */
export function valueAt(value: unknown, path: string): unknown {
  let at: unknown = value
  for (const key of path.split('.')) at = isJson(at) ? at[key] : undefined
  return at
}

export function textAt(value: unknown, path: string): string {
  const found = valueAt(value, path)
  return typeof found === 'string' ? found : ''
}

export function numberAt(value: unknown, path: string, otherwise = 0): number {
  const found = valueAt(value, path)
  return typeof found === 'number' ? found : otherwise
}

export function listAt(value: unknown, path: string): readonly unknown[] {
  const found = valueAt(value, path)
  return Array.isArray(found) ? found : []
}

export function objectAt(value: unknown, path: string): Json {
  const found = valueAt(value, path)
  return isJson(found) ? found : {}
}
