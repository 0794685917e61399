// Checks of spec.cache that its schema cannot express.

import { DURATION_PATTERN } from '../../../../kit/api/json/json-schema.ts'
import type { Loose } from '../../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../../kit/api/validation/field-errors.ts'
import { isDnsLabel, isDnsName } from '../../../../kit/api/validation/name-syntax.ts'
import { bytesOf, type CachedResource, LEAST_CACHE_BYTES, quantityOf, type ReadCache } from './read-cache.ts'

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
