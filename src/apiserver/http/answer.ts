// Responses of the API server that are complete before the first byte is sent: all except watches.

import { stringify } from 'yaml'
import type { HeaderList } from '../../kit/api/stream.ts'
import type { Status } from '../../kube/api/status.ts'

export interface HttpAnswer {
  readonly code: number
  /** Without `:status` and `content-length`. */
  readonly headers: HeaderList
  readonly body: Buffer
  /** Name of an object created by POST: it is not in the path. */
  readonly createdName?: string
}

export interface Encoding {
  readonly format: 'json' | 'yaml'
  /** Indented JSON. */
  readonly pretty: boolean
}

/** The header of nearly all kube-apiserver responses (apiserver/pkg/endpoints/filters/cachecontrol.go). */
export const NOT_CACHED = 'no-cache, private'

const JSON_ENCODING: Encoding = { format: 'json', pretty: false }

/** `value` as JSON, ending in a newline as Go's encoder writes it. */
export function jsonAnswer(code: number, value: unknown): HttpAnswer {
  return objectAnswer(code, value, JSON_ENCODING)
}

/** `value` in the negotiated encoding. */
export function objectAnswer(code: number, value: unknown, encoding: Encoding): HttpAnswer {
  return {
    code,
    headers: ['content-type', `application/${encoding.format}`, 'cache-control', NOT_CACHED],
    body: encode(value, encoding),
  }
}

/** A failure, or the Success of a deletion; sets Retry-After if `details` has retryAfterSeconds. */
export function statusAnswer(status: Status, encoding: Encoding = JSON_ENCODING): HttpAnswer {
  const answer = objectAnswer(status.code ?? 200, status, encoding)
  const seconds = status.details?.retryAfterSeconds ?? 0
  if (seconds > 0) answer.headers.push('retry-after', String(seconds))
  return answer
}

/** The plain-text form of kube-apiserver's responses outside of API groups: `404 page not found`, `ok`. */
export function textAnswer(code: number, text: string): HttpAnswer {
  const headers = ['content-type', 'text/plain; charset=utf-8', 'cache-control', NOT_CACHED]
  return { code, headers: [...headers, 'x-content-type-options', 'nosniff'], body: Buffer.from(text) }
}

export function encode(value: unknown, { format, pretty }: Encoding): Buffer {
  if (format === 'yaml') return Buffer.from(yamlText(value))
  return Buffer.from(`${pretty ? JSON.stringify(value, undefined, 2) : JSON.stringify(value)}\n`)
}

/**
 * Clients read YAML 1.1 (sigs.k8s.io/yaml), in which an unquoted `yes` is a boolean. No anchors: an object that occurs
 * twice is written twice.
 */
function yamlText(value: unknown): string {
  return stringify(value, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false })
}
