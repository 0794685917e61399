// Sanitizes a body for an audit event: JSON without values that must not be logged. kube-apiserver records Secrets and leaves them to the
// policy; here their values never get into an event.

import { listOf } from '../../kit/api/json/object-shape.ts'

/** The resource of the request, as in RequestInfo. */
interface RecordedResource {
  readonly apiGroup: string
  readonly resource: string
  readonly subresource: string
}

export interface RecordedObject {
  /** JSON on one line; '' = none, for the reason in `why`. */
  readonly json: string
  readonly why: string
  /** The parsed value, before anything was removed. */
  readonly value: unknown
}

const REDACTED = 'REDACTED'
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const PROTOBUF_MAGIC = 'k8s\0'

/**
 * @param omitManagedFields of objects and of list items; patches are recorded unchanged
 * @param isPatch whether it is the body of a PATCH
 */
export function recordObject(
  body: Buffer,
  about: RecordedResource,
  omitManagedFields: boolean,
  isPatch: boolean,
): RecordedObject {
  if (body.toString('latin1', 0, PROTOBUF_MAGIC.length) === PROTOBUF_MAGIC) return none('its encoding is Protobuf')
  let value: unknown
  try {
    const text = body.toString()
    value = JSON.parse(text)
    const changed = sensitive(about) || (omitManagedFields && !isPatch)
    // Unchanged: numbers keep their digits, keys their order. Line breaks in JSON occur only between tokens.
    const json = changed ? JSON.stringify(cleaned(JSON.parse(text), about, omitManagedFields, isPatch)) : oneLine(text)
    return { json, why: '', value }
  } catch {
    return none('its encoding is not JSON')
  }
}

/** Mutable: it was parsed for this purpose. */
function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function none(why: string): RecordedObject {
  return { json: '', why, value: undefined }
}

function oneLine(text: string): string {
  return /[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ').trim() : text.trim()
}

function sensitive({ apiGroup, resource, subresource }: RecordedResource): boolean {
  if (apiGroup === 'authentication.k8s.io') return true
  return apiGroup === '' && (resource === 'secrets' || (resource === 'serviceaccounts' && subresource === 'token'))
}

function cleaned(value: unknown, about: RecordedResource, omitManagedFields: boolean, isPatch: boolean): unknown {
  const clean = (object: unknown): void => {
    if (!isMap(object)) return
    if (omitManagedFields && !isPatch && isMap(object['metadata'])) delete object['metadata']['managedFields']
    if (sensitive(about)) redact(object, about)
  }
  if (Array.isArray(value)) {
    // A JSON patch: its paths may address any part of the object.
    for (const operation of value) if (sensitive(about) && isMap(operation)) hide(operation, 'value')
    return value
  }
  clean(value)
  if (!isMap(value)) return sensitive(about) ? REDACTED : value
  for (const item of listOf(value['items'])) clean(item)
  for (const row of listOf(value['rows'])) if (isMap(row)) clean(row['object'])
  return value
}

function redact(object: Record<string, unknown>, { resource }: RecordedResource): void {
  if (resource === 'secrets') {
    hideValues(object, 'data')
    hideValues(object, 'stringData')
    const { metadata } = object
    if (isMap(metadata) && isMap(metadata['annotations'])) hide(metadata['annotations'], LAST_APPLIED)
    return
  }
  // TokenRequest has its token in status, TokenReview in spec.
  for (const part of [object['spec'], object['status']]) if (isMap(part)) hide(part, 'token')
}

function hide(object: Record<string, unknown>, key: string): void {
  if (object[key] !== undefined) object[key] = REDACTED
}

function hideValues(object: Record<string, unknown>, key: string): void {
  const values = object[key]
  if (isMap(values)) for (const name of Object.keys(values)) hide(values, name)
  else hide(object, key)
}
