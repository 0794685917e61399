// Secrets as they are stored: stringData merged into data, a type, and values that are base64
// (pkg/apis/core/v1/conversion.go, defaults.go).

import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { statusError } from '../../api/kube/status.ts'
import type { ResourceKind } from '../../api/ports/resource-kind.ts'
import { withFields } from './object-metadata.ts'

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** @throws {StatusError} 400 when a value of `data` is not base64, which Go cannot decode */
export function mergedSecret(kind: ResourceKind, secret: JsonObject): JsonObject {
  const { stringData } = secret
  const data: [string, unknown][] = Object.entries(isRecord(secret['data']) ? secret['data'] : {})
  for (const [, value] of data) {
    if (typeof value === 'string' && !isBase64(value)) {
      const version = JSON.stringify(kind.version)
      const problem = `illegal base64 data at input byte ${firstIllegal(value)}`
      throw statusError('BadRequest', `Secret in version ${version} cannot be handled as a Secret: ${problem}`)
    }
  }
  const merged = new Map(data)
  if (isRecord(stringData)) {
    for (const [key, text] of Object.entries(stringData)) {
      if (typeof text === 'string') merged.set(key, Buffer.from(text).toString('base64'))
    }
  }
  return withFields(secret, {
    data: merged.size > 0 ? Object.fromEntries(merged) : secret['data'],
    stringData: isRecord(stringData) ? undefined : stringData,
    type: secret['type'] === undefined || secret['type'] === '' ? 'Opaque' : secret['type'],
  })
}

function isBase64(value: string): boolean {
  // Without line ends, which Go ignores: one expression for both would look for the end from each of them.
  const text = value.replaceAll(/[\r\n]/g, '')
  return text.length % 4 === 0 && BASE64.test(text)
}

function firstIllegal(value: string): number {
  const at = value.search(/[^A-Za-z0-9+/\r\n]/)
  return at < 0 ? value.length - (value.length % 4) : at
}
