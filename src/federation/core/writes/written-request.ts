// Which writes a member gets, though they come to the federated cluster: by path and method, and how their query and body look there.

import { isNamespaces } from '../../../cache/core/requests/read-request.ts'
import { QueryReader } from '../../../gateway/core/request/query-reader.ts'
import type { RequestInfo } from '../../../gateway/core/request/request-info.ts'
import { bodyType, UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { isDnsLabel } from '../../../kit/api/validation/name-syntax.ts'
import { MAX_SMALL_YAML_LENGTH, MAX_YAML_LENGTH } from '../../../kube/core/objects/strict-decode.ts'
import { objectPath } from '../handed-over.ts'
import { type BodyShape, type ChangeField, SeenFields, SHAPES } from './written-fields.ts'
import { writtenJson, writtenJsonPatch } from './written-json.ts'
import { writtenProtobuf } from './written-protobuf.ts'
import { writtenYaml } from './written-yaml.ts'

/** A read of a subresource has no body. */
export interface WrittenRequest {
  readonly body: BodyShape | 'patch' | 'none'
  readonly isCollection: boolean
}

type Bodies = Readonly<Partial<Record<string, WrittenRequest['body']>>>

const WRITES: Bodies = { PUT: 'object', PATCH: 'patch' }
/** kubectl scale reads what it writes. */
const SUBRESOURCE: Bodies = { ...WRITES, GET: 'none' }
const ANY: ReadonlyMap<string, Bodies> = new Map([
  ['status', SUBRESOURCE],
  ['scale', SUBRESOURCE],
])
const OF_PODS: ReadonlyMap<string, Bodies> = new Map<string, Bodies>([
  ['eviction', { POST: 'eviction' }],
  ['ephemeralcontainers', SUBRESOURCE],
  ['resize', SUBRESOURCE],
])

/** `/` and `%` have another meaning, and two dots are a step back. Roles have colons in their names. */
const PATH_NAME = /^[A-Za-z0-9][-A-Za-z0-9._:]{0,252}$/

/** Whether it may stand in a path as it is: with and without the member in front of it. */
export function isPathName(name: string): boolean {
  return PATH_NAME.test(name)
}

/** @returns undefined = no member gets it. The path is exactly the one that clients write. */
export function writtenRequest(method: string, info: RequestInfo): WrittenRequest | undefined {
  const { path, namespace, name, subresource, apiGroup, resource } = info
  if (path !== objectPath(info) || (namespace !== '' && !isDnsLabel(namespace))) return undefined
  const inNamespace = namespace !== '' && !isNamespaces(apiGroup, resource)
  if (name === '') {
    if (subresource !== '') return undefined
    if (method === 'POST') return { body: 'object', isCollection: false }
    // Without a namespace it would be one of all members at once.
    return method === 'DELETE' && inNamespace ? { body: 'options', isCollection: true } : undefined
  }
  if (!isPathName(name)) return undefined
  const bodies =
    subresource === '' ? { ...WRITES, DELETE: 'options' as const } : bodiesOf(apiGroup, resource, subresource)
  const body = bodies !== undefined && Object.hasOwn(bodies, method) ? bodies[method] : undefined
  return body === undefined ? undefined : { body, isCollection: false }
}

function bodiesOf(group: string, resource: string, subresource: string): Bodies | undefined {
  return ANY.get(subresource) ?? (group === '' && resource === 'pods' ? OF_PODS.get(subresource) : undefined)
}

const VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'patch' }
const OBJECT_VERBS = ['create', 'delete', 'patch', 'update']

/**
 * As discovery has them.
 * @param name of the resource, or of its subresource: `pods/status`
 */
export function writtenVerbs(groupVersion: string, name: string, isNamespaced: boolean): readonly string[] {
  const [resource = '', subresource, ...more] = name.split('/')
  if (more.length > 0) return []
  if (subresource === undefined) return isNamespaced ? [...OBJECT_VERBS, 'deletecollection'] : OBJECT_VERBS
  const bodies = bodiesOf(groupVersion === 'v1' ? '' : groupVersion, resource, subresource)
  return Object.keys(bodies ?? {}).flatMap((method) => VERBS[method] ?? [])
}

// The query of a write as the member gets it: everything as it came but versions and the names in a selector.

interface QueryChanges {
  /** Options of a DELETE, or of a read. */
  readonly resourceVersion: (shown: string) => string
  readonly fieldSelector: (shown: string) => string
}

/** A list of what is deleted comes whole: where it goes on, the member would say with versions of its own. */
const NOT_WITH_COLLECTIONS: ReadonlySet<string> = new Set(['continue', 'limit', 'resourceVersionMatch'])

/** @throws {UnreadableBody} also if one of them is there twice */
export function writtenQuery(query: string, isCollection: boolean, changes: QueryChanges): string {
  const seen = new SeenFields()
  return query
    .split('&')
    .map((pair) => {
      const reader = new QueryReader(pair)
      // Go skips what cannot be decoded.
      const value = reader.next() ? reader.value() : undefined
      const { key } = reader
      if (value === undefined) return pair
      if (isCollection && NOT_WITH_COLLECTIONS.has(key) && value !== '')
        throw new UnreadableBody(400, `${key} is not served here for a deletion of several objects`)
      if (key !== 'resourceVersion' && key !== 'fieldSelector') return pair
      seen.see(key)
      return `${key}=${encodeURIComponent(changes[key](value))}`
    })
    .join('&')
}

// The body of a write as the member gets it, in whatever encoding it came.

/**
 * @param contentType '' = none
 * @throws {UnreadableBody}
 * @throws {MalformedError}
 * @throws {SyntaxError}
 * @throws {StaleVersion} by `change`
 */
export function writtenBody(
  shape: BodyShape | 'patch',
  contentType: string,
  body: Buffer,
  change: ChangeField,
): Buffer {
  if (shape === 'patch') return writtenPatch(contentType, body, change)
  // Without a body, options are in the query.
  if (body.length === 0) return body
  const places = SHAPES[shape]
  switch (bodyType(contentType)) {
    case 'json':
      return writtenJson(body, places, change)
    case 'protobuf':
      return writtenProtobuf(body, places, change)
    case 'yaml':
      return writtenYaml(body, places, change, shape === 'object' ? MAX_YAML_LENGTH : MAX_SMALL_YAML_LENGTH)
  }
}

const PATCH_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

function writtenPatch(contentType: string, body: Buffer, change: ChangeField): Buffer {
  // As kube-apiserver compares it: neither trimmed nor in lower case.
  switch (contentType.split(';', 1)[0]) {
    case PATCH_TYPES.json:
      return writtenJsonPatch(body, change)
    case PATCH_TYPES.merge:
    case PATCH_TYPES.strategic:
      return writtenJson(body, SHAPES.object, change)
    case PATCH_TYPES.apply:
      return writtenYaml(body, SHAPES.object, change, MAX_YAML_LENGTH)
    default: {
      const known = Object.values(PATCH_TYPES).join(', ')
      throw new UnreadableBody(
        415,
        `the body of the request was in an unknown format - accepted media types include: ${known}`,
      )
    }
  }
}
