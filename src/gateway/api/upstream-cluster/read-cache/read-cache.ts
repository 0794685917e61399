// spec.cache of an UpstreamCluster: resources whose lists and watches are answered by the gateway. Added; KubeGateway has no equivalent.

import {
  atMost,
  checked,
  DURATION_PATTERN,
  defaultsTo,
  duration,
  list,
  object,
  oneOf,
  text,
  type ValueOf,
} from '../../../../kit/api/json/json-schema.ts'
import type { Loose } from '../../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../../kit/api/validation/field-errors.ts'
import { isDnsLabel, isDnsName } from '../../../../kit/api/validation/name-syntax.ts'
import { NAMESPACE_RULES, SIZES } from '../cel/cel-rules.ts'

export const READ_CACHE_SCHEMA = atMost(
  SIZES.cachedResources,
  list(
    'Resources whose lists and watches the gateway answers from its own copy, if it can prove that the answer is the one that the ' +
      'cluster would give; all other requests are forwarded. Default: none.',
    object(
      'One resource.',
      {
        group: text('API group; the core group is the empty string. Default: the core group.', { maxLength: 253 }),
        version: text('Version of the API that clients use: v1. Other versions are forwarded.', { maxLength: 63 }),
        resource: text('Plural name in lower case, without a subresource: pods.', { maxLength: 253 }),
        namespaces: atMost(
          SIZES.cachedNamespaces,
          list(
            'Only these namespaces are cached, each with its own watch; requests that span namespaces are forwarded. Empty: all namespaces, with one watch.',
            checked(text('A namespace.', { maxLength: SIZES.namespace }), NAMESPACE_RULES),
          ),
        ),
        maxBytes: defaultsTo(
          '256Mi',
          text(
            'Maximum memory for the objects, in each encoding: a number of bytes, with k, M, G, Ki, Mi or Gi; 4Mi at least. Beyond it, requests are forwarded.',
            {
              maxLength: 20,
            },
          ),
        ),
        encodings: atMost(
          2,
          list(
            'Encodings that are cached; requests for others are forwarded. Each takes up to maxBytes. Protobuf is watched from the first request for ' +
              'it, until there has been none for ten minutes; custom resources do not have it. Default: JSON and Protobuf.',
            oneOf('An encoding.', ['JSON', 'Protobuf']),
          ),
        ),
        maxStaleness: defaultsTo(
          '10s',
          duration('How long requests that accept any age are still answered after the watch is interrupted.'),
        ),
      },
      ['version', 'resource'],
    ),
  ),
)

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

// Checks of spec.cache that its schema cannot express.

const DURATION = new RegExp(DURATION_PATTERN)

export function checkReadCache(resources: Loose<ReadCache>, path: string, out: FieldErrors): void {
  const seen = new Map<string, number>()
  for (const [index, resource] of resources.entries()) {
    if (resource === undefined) continue
    const at = `${path}[${index}]`
    checkResourceNames(resource, at, out)
    checkNamespaces(resource, at, out)
    checkAmounts(resource, at, out)
    const key = JSON.stringify([resource.group ?? '', resource.version, resource.resource])
    const before = seen.get(key)
    if (before === undefined) seen.set(key, index)
    else
      out.duplicate(at, `is the same resource as ${path}[${before}]`, 'remove one of the two, or join their namespaces')
  }
}

/** Names of a resource as a whole. */
export function checkResourceNames(
  { group = '', version = '', resource = '' }: Loose<Pick<CachedResource, 'group' | 'version' | 'resource'>>,
  at: string,
  out: FieldErrors,
): void {
  if (group !== '' && !isDnsName(group))
    out.invalid(
      `${at}.group`,
      `${shown(group)} is not a valid API group`,
      'write it as in apiVersion, without the version: apps',
    )
  if (!isDnsLabel(version))
    out.invalid(`${at}.version`, `${shown(version)} is not a valid version`, 'write v1, or v1beta1')
  if (resource.includes('/'))
    out.invalid(
      `${at}.resource`,
      `${shown(resource)} is a subresource`,
      'name the resource: only whole objects are kept',
    )
  else if (!isDnsLabel(resource))
    out.invalid(`${at}.resource`, `${shown(resource)} is not a valid resource`, 'write the plural in lower case: pods')
}

function checkNamespaces({ namespaces = [] }: Loose<CachedResource>, at: string, out: FieldErrors): void {
  const named = new Set<string>()
  for (const [index, namespace] of namespaces.entries()) {
    if (namespace === undefined) continue
    const place = `${at}.namespaces[${index}]`
    if (!isDnsLabel(namespace))
      out.invalid(
        place,
        `${shown(namespace)} is not a valid namespace`,
        'write the name of a namespace: at most 63 lower-case letters, digits and -; no patterns',
      )
    else if (named.has(namespace)) out.duplicate(place, 'is named twice', 'remove one of the two')
    named.add(namespace)
  }
}

function checkAmounts({ maxBytes, maxStaleness }: Loose<CachedResource>, at: string, out: FieldErrors): void {
  if (maxBytes !== undefined) {
    const bytes = bytesOf(maxBytes)
    if (bytes === undefined)
      out.invalid(`${at}.maxBytes`, `${shown(maxBytes)} is not a quantity of bytes`, 'write 256Mi, 2Gi or 1000000')
    else if (bytes < LEAST_CACHE_BYTES)
      out.invalid(
        `${at}.maxBytes`,
        `${shown(maxBytes)} is too little to keep anything that changes: memory is taken in steps of 1Mi`,
        `write at least ${quantityOf(LEAST_CACHE_BYTES)}, and for many objects 2Mi and twice what they take as JSON`,
      )
  }
  if (maxStaleness === undefined) return
  if (!DURATION.test(maxStaleness))
    out.invalid(`${at}.maxStaleness`, `${shown(maxStaleness)} is not a duration`, 'write 10s or 1m30s')
}
