// spec.cache of an UpstreamCluster: resources whose lists and watches are answered by the gateway. Added; KubeGateway has no equivalent.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { READ_CACHE_SCHEMA } from './read-cache-schema.ts'

export type ReadCache = ValueOf<typeof READ_CACHE_SCHEMA>
export type CachedResource = ReadCache[number]

const QUANTITY = /^([0-9]{1,15})(k|M|G|Ki|Mi|Gi)?$/
const UNITS: Readonly<Record<string, number>> = { k: 1e3, M: 1e6, G: 1e9, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 }

/** Bytes of a Kubernetes quantity without fractions; undefined if it is none. */
export function bytesOf(quantity: string): number | undefined {
  const [, digits, unit = ''] = QUANTITY.exec(quantity) ?? []
  if (digits === undefined) return undefined
  const bytes = Number(digits) * (UNITS[unit] ?? 1)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}
