// DEMO ONLY. One request to an apiserver of the demo, and what is to be answered: what the HTTP part and the handlers share.

import { parse as parseYaml } from 'yaml'
import type { UserInfo } from '../../api/kube/user.ts'
import { queryValue } from '../../core/request/list-options.ts'
import type { RequestInfo } from '../../core/request/request-info.ts'
import { ApiError, badRequest } from './api-error.ts'
import { isJson, type Json } from './json.ts'
import { decodeProtobuf } from './protobuf.ts'
import type { Store } from './store.ts'

/** What the apiservers of one cluster share. */
export interface ClusterState {
  readonly name: string
  readonly store: Store
  /** The only user that may impersonate, besides system:masters. */
  readonly gatewayUser: string
  readonly tokens: ReadonlyMap<string, UserInfo>
}

export interface Call {
  readonly method: string
  readonly info: RequestInfo
  /** Without the question mark. */
  readonly query: string
  readonly accept: string
  /** Without parameters, lower-case. */
  readonly contentType: string
  readonly ifNoneMatch: string
  readonly user: UserInfo
  readonly body: Buffer
}

/** `stream` writes until it calls `end` or until the function that it returned is called: the client has gone. */
export interface Answer {
  readonly code: number
  readonly contentType: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  readonly stream?: (sink: Sink) => () => void
}

export interface Sink {
  write(text: string): void
  end(): void
}

export function jsonAnswer(body: Json, code = 200): Answer {
  return { code, contentType: 'application/json', body: `${JSON.stringify(body)}\n` }
}

export function textAnswer(body: string, code = 200): Answer {
  return { code, contentType: 'text/plain; charset=utf-8', body }
}

export function queryOf(call: Call, key: string): string {
  return queryValue(call.query, key) ?? ''
}

/** Whether the client prefers a Table. Throws a 406 for a client that takes no JSON at all. */
export function wantsTable(accept: string): boolean {
  if (accept === '') return false
  for (const clause of accept.split(',')) {
    const [type = '', ...parameters] = clause.split(';').map((part) => part.trim().toLowerCase())
    if (type !== 'application/json' && type !== 'application/*' && type !== '*/*') continue
    const as = parameters.find((parameter) => parameter.startsWith('as='))
    if (as === undefined) return false
    if (as === 'as=table') return true
  }
  throw new ApiError(406, 'NotAcceptable', 'only the following media types are accepted: application/json')
}

/** The request body as a JSON object; {} when there is none. */
export function jsonBody(call: Call): Json {
  if (call.body.length === 0) return {}
  const value = parsedBody(call)
  if (!isJson(value)) throw badRequest('the body of the request is not an object')
  return value
}

/** The request body by its content type; JSON when there is none. */
export function parsedBody(call: Call): unknown {
  const text = call.body.toString('utf8')
  try {
    if (call.contentType.endsWith('yaml')) return parseYaml(text, { maxAliasCount: 0 })
    if (call.contentType === 'application/vnd.kubernetes.protobuf') return decodeProtobuf(call.body)
    if (call.contentType === '' || call.contentType.endsWith('json')) return JSON.parse(text)
  } catch (error) {
    throw badRequest(`the body of the request does not parse: ${error instanceof Error ? error.message : 'unknown'}`)
  }
  const accepted = 'application/json, application/yaml, application/vnd.kubernetes.protobuf'
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted}`
  throw new ApiError(415, 'UnsupportedMediaType', message)
}
