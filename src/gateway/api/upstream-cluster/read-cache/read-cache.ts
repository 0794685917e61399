// spec.cache of an UpstreamCluster: resources whose lists and watches are answered by the gateway. Added; KubeGateway has no equivalent.

import type { ValueOf } from '../../../../kit/api/json/json-schema.ts'
import type { READ_CACHE_SCHEMA } from './read-cache-schema.ts'

export type ReadCache = ValueOf<typeof READ_CACHE_SCHEMA>
export type CachedResource = ReadCache[number]

const QUANTITY = /^([0-9]{1,15})(k|M|G|Ki|Mi|Gi)?$/
const UNITS: Readonly<Record<string, number>> = { k: 1e3, M: 1e6, G: 1e9, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 }

/**
 * With less, a resource whose objects change would be dropped repeatedly: new versions are appended to segments of 1 MiB, and a segment is freed only
 * when half of it is unused (cache/controllers/object-records.ts).
 */
export const LEAST_CACHE_BYTES: number = 4 * 1024 * 1024

/** Bytes of a Kubernetes quantity without fractions; undefined = the text is not one. */
export function bytesOf(quantity: string): number | undefined {
  const [, digits, unit = ''] = QUANTITY.exec(quantity) ?? []
  if (digits === undefined) return undefined
  const bytes = Number(digits) * (UNITS[unit] ?? 1)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** The shortest quantity of at least two digits that is not less. */
export function quantityOf(bytes: number): string {
  for (const unit of ['Gi', 'Mi', 'Ki']) {
    const value = bytes / (UNITS[unit] ?? 1)
    if (value < 1) continue
    // Like resource.Quantity: without a zero after the decimal point.
    return `${value < 10 ? Math.ceil(value * 10) / 10 : Math.ceil(value)}${unit}`
  }
  return String(bytes)
}
