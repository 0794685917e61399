// Checks of spec.cache that its schema cannot express.

import { DURATION_PATTERN } from '../../../kit/api/json/json-schema.ts'
import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { isDnsLabel, isDnsName } from '../../../kit/api/validation/name-syntax.ts'
import { bytesOf, type CachedResource, type ReadCache } from './read-cache.ts'

/** A smaller cache holds nothing. */
const LEAST_BYTES = 64 * 1024
const DURATION = new RegExp(DURATION_PATTERN)

export function checkReadCache(resources: Loose<ReadCache>, path: string, out: FieldErrors): void {
  const seen = new Map<string, number>()
  for (const [index, resource] of resources.entries()) {
    if (resource === undefined) continue
    const at = `${path}[${index}]`
    checkNames(resource, at, out)
    checkAmounts(resource, at, out)
    const key = JSON.stringify([resource.group ?? '', resource.version, resource.resource])
    const before = seen.get(key)
    if (before === undefined) seen.set(key, index)
    else
      out.duplicate(at, `is the same resource as ${path}[${before}]`, 'remove one of the two, or join their namespaces')
  }
}

function checkNames(
  { group = '', version = '', resource = '', namespaces = [] }: Loose<CachedResource>,
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
  const named = new Set<string>()
  for (const [index, namespace] of namespaces.entries()) {
    if (namespace === undefined) continue
    const place = `${at}.namespaces[${index}]`
    if (!isDnsLabel(namespace))
      out.invalid(
        place,
        `${shown(namespace)} is not a valid namespace`,
        'write one as Kubernetes has it: at most 63 lower-case letters, digits and -; no patterns',
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
    else if (bytes < LEAST_BYTES)
      out.invalid(`${at}.maxBytes`, `${shown(maxBytes)} is too little`, 'write at least 64Ki')
  }
  if (maxStaleness === undefined) return
  if (!DURATION.test(maxStaleness))
    out.invalid(`${at}.maxStaleness`, `${shown(maxStaleness)} is not a duration`, 'write 10s or 1m30s')
}
