// /openapi/v3 and /openapi/v2 (kube-openapi/pkg/handler and .../handler3), and their documents, built on first request.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../kit/api/json/json-schema.ts'
import { type AcceptClause, acceptClauses } from '../http/accept.ts'
import { type HttpAnswer, NOT_CACHED, textAnswer } from '../http/answer.ts'
import { type TaggedDocument, tagged, taggedAnswer } from '../http/entity-tag.ts'
import type { ApiResource } from '../objects/api-resource.ts'
import { type ApiGroup, type ApiGroupVersion, apiGroups } from '../objects/api-resources.ts'
import { META_PREFIX, META_SCHEMAS } from './meta-schemas.ts'
import { type ApiBody, type ApiOperation, groupTag, OBJECT_TYPES, pathItem, pathsOf, schemaName } from './operations.ts'
import type { ApiParameter } from './parameters.ts'
import { encodeV2Document } from './v2-protobuf.ts'

const V2 = '/openapi/v2'
const V3 = '/openapi/v3'
const JSON_TYPE = 'application/json'
/** kubectl requests the first name; the response has the second, which is a valid media type. */
const V2_PROTOBUF_ASKED = 'com.github.proto-openapi.spec.v2@v1.0+protobuf'
const V2_PROTOBUF = 'com.github.proto-openapi.spec.v2.v1.0+protobuf'
/** Documents fetched by their hash never change. */
const FOREVER = 'public, immutable, max-age=31536000'
/** `info.version` of the documents: the API has no version of its own. */
const API_VERSION = 'unversioned'

/** The documents of one API server, each built on first request. */
export class OpenApi {
  readonly #resources: readonly ApiResource[]
  /** By the paths of the index. */
  readonly #versions: ReadonlyMap<string, ApiGroupVersion>
  readonly #v3 = new Map<string, TaggedDocument>()
  #v3Index: TaggedDocument | undefined
  #v2: V2Documents | undefined

  constructor(resources: readonly ApiResource[]) {
    this.#resources = resources
    this.#versions = v3Paths(apiGroups(resources))
  }

  /**
   * The answer to GET of an OpenAPI path; undefined if `path` is none.
   * @param path without the query
   * @param query without `?`
   * @param ifNoneMatch the field, or ''
   */
  answer(path: string, query: string, accept: string, ifNoneMatch: string): HttpAnswer | undefined {
    const clauses = acceptClauses(accept === '' ? '*/*' : accept)
    if (path === V2) return this.#v2Answer(clauses, ifNoneMatch)
    if (path === V3 || path === `${V3}/`) return taggedAnswer(this.#index(), ifNoneMatch)
    if (!path.startsWith(`${V3}/`)) return undefined
    const name = path.slice(V3.length + 1)
    const document = this.#v3DocumentAt(name)
    if (document === undefined) return undefined
    if (!clauses.some((clause) => takes(clause, 'json'))) return textAnswer(406, '')
    return v3Answer(name, document, new URLSearchParams(query).get('hash') ?? '', ifNoneMatch)
  }

  /** JSON or protocol buffers, whichever the client prefers. */
  #v2Answer(clauses: readonly AcceptClause[], ifNoneMatch: string): HttpAnswer {
    for (const clause of clauses) {
      if (takes(clause, 'json')) return taggedAnswer(this.#v2Documents().json, ifNoneMatch)
      if (takes(clause, V2_PROTOBUF_ASKED) || takes(clause, V2_PROTOBUF)) {
        return taggedAnswer(this.#v2Documents().protobuf, ifNoneMatch)
      }
    }
    return textAnswer(406, '')
  }

  #v3DocumentAt(name: string): TaggedDocument | undefined {
    const known = this.#v3.get(name)
    if (known !== undefined) return known
    const groupVersion = this.#versions.get(name)
    if (groupVersion === undefined) return undefined
    const fresh = tagged(Buffer.from(JSON.stringify(v3Document(groupVersion, API_VERSION))), JSON_TYPE)
    this.#v3.set(name, fresh)
    return fresh
  }

  #index(): TaggedDocument {
    if (this.#v3Index === undefined) {
      const tags = new Map<string, string>()
      for (const name of this.#versions.keys()) tags.set(name, this.#v3DocumentAt(name)?.tag.slice(1, -1) ?? '')
      this.#v3Index = tagged(Buffer.from(JSON.stringify(v3Index(tags))), JSON_TYPE)
    }
    return this.#v3Index
  }

  #v2Documents(): V2Documents {
    if (this.#v2 === undefined) {
      const document = v2Document(this.#resources, API_VERSION)
      const json = tagged(Buffer.from(JSON.stringify(document)), JSON_TYPE)
      this.#v2 = { json, protobuf: tagged(encodeV2Document(document), `application/${V2_PROTOBUF}`) }
    }
    return this.#v2
  }
}

function v3Answer(name: string, document: TaggedDocument, hash: string, ifNoneMatch: string): HttpAnswer {
  if (hash === '') return taggedAnswer(document, ifNoneMatch)
  const current = document.tag.slice(1, -1)
  if (hash === current) return taggedAnswer(document, ifNoneMatch, FOREVER)
  const headers = ['location', documentUrl(name, current), 'cache-control', NOT_CACHED]
  return { code: 301, headers, body: Buffer.alloc(0) }
}

function takes({ type, subtype }: AcceptClause, offered: string): boolean {
  return (type === 'application' || type === '*') && (subtype === offered || subtype === '*')
}

interface V2Documents {
  readonly json: TaggedDocument
  readonly protobuf: TaggedDocument
}

// OpenAPI v2 (Swagger): one document for everything. Old kubectls use it to validate and explain objects; new ones fall back to
// it (kube-openapi/pkg/builder).

/** @param programVersion of the whole API: `info.version` */
function v2Document(resources: readonly ApiResource[], programVersion: string): JsonObject {
  const paths: Record<string, unknown> = {}
  for (const path of resources.flatMap(pathsOf)) paths[path.path] = pathItem(path, parameterV2, operationV2)
  return {
    swagger: '2.0',
    info: { title: 'Portcullis', version: programVersion },
    paths,
    definitions: schemasOf(resources, 'v2'),
  }
}

function operationV2(facts: ApiOperation): JsonObject {
  const { id, description, action, resource, parameters, body, responses } = facts
  const { group, version, kind } = resource
  const byCode: Record<string, unknown> = {}
  for (const { code, description, schema } of responses) byCode[code] = { description, schema: reference('v2', schema) }
  byCode['401'] = { description: 'Unauthorized' }
  return {
    tags: [groupTag(resource)],
    description,
    operationId: id,
    produces: OBJECT_TYPES,
    ...(body !== undefined && { consumes: body.contentTypes }),
    parameters: [...(body === undefined ? [] : [bodyParameter(body)]), ...parameters.map(parameterV2)],
    responses: byCode,
    schemes: ['https'],
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind },
  }
}

function bodyParameter({ schema, required }: ApiBody): JsonObject {
  return { name: 'body', in: 'body', ...(required && { required }), schema: reference('v2', schema) }
}

function parameterV2({ name, in: place, type, description }: ApiParameter): JsonObject {
  return { name, in: place, description, ...(place === 'path' && { required: true }), type }
}

// OpenAPI v3: an index, and one document per group version. Used by kubectl explain, and to detect whether the server
// validates fields itself (fieldValidation) (kube-openapi/pkg/spec3).

/** `apis/proxy.kubegateway.io/v1alpha1` -> the group version that its document describes; the paths of the index. */
function v3Paths(groups: readonly ApiGroup[]): ReadonlyMap<string, ApiGroupVersion> {
  const documents = groups.flatMap(({ name, versions }) =>
    versions.map((version) => [`${name === '' ? 'api' : 'apis'}/${version.groupVersion}`, version] as const),
  )
  return new Map(documents)
}

/** @param programVersion of the whole API: `info.version` */
function v3Document({ resources }: ApiGroupVersion, programVersion: string): JsonObject {
  const paths: Record<string, unknown> = {}
  for (const path of resources.flatMap(pathsOf)) paths[path.path] = pathItem(path, parameterV3, operationV3)
  return {
    openapi: '3.0.0',
    info: { title: 'Portcullis', version: programVersion },
    paths,
    components: { schemas: schemasOf(resources, 'v3') },
  }
}

/** @param tags of the documents, by the keys of v3Paths() */
function v3Index(tags: ReadonlyMap<string, string>): JsonObject {
  const paths: Record<string, unknown> = {}
  for (const [path, tag] of tags) paths[path] = { serverRelativeURL: documentUrl(path, tag) }
  return { paths }
}

function documentUrl(path: string, tag: string): string {
  return `/openapi/v3/${path}?hash=${tag}`
}

function operationV3(facts: ApiOperation): JsonObject {
  const { id, description, action, resource, parameters, body } = facts
  const { group, version, kind } = resource
  return {
    tags: [groupTag(resource)],
    description,
    operationId: id,
    ...(parameters.length > 0 && { parameters: parameters.map(parameterV3) }),
    ...(body !== undefined && {
      requestBody: {
        content: content(body.contentTypes, body.schema),
        ...(body.required && { required: true }),
      },
    }),
    responses: responses(facts),
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind },
  }
}

function responses({ action, responses }: ApiOperation): JsonObject {
  const types = action === 'list' ? [...OBJECT_TYPES, 'application/json;stream=watch'] : OBJECT_TYPES
  const byCode: Record<string, unknown> = {}
  for (const { code, description, schema } of responses) byCode[code] = { description, content: content(types, schema) }
  byCode['401'] = { description: 'Unauthorized' }
  return byCode
}

function content(types: readonly string[], schema: string): JsonObject {
  return Object.fromEntries(types.map((type) => [type, { schema: reference('v3', schema) }]))
}

function parameterV3({ name, in: place, type, description }: ApiParameter): JsonObject {
  return { name, in: place, description, ...(place === 'path' && { required: true }), schema: { type } }
}

// The schemas of the kinds as published by OpenAPI: with the metadata that every object has, a list type for each kind,
// and names by which they refer to each other.
type OpenApiVersion = 'v2' | 'v3'

const REFERENCE_PREFIX = { v2: '#/definitions/', v3: '#/components/schemas/' } as const

function reference(version: OpenApiVersion, name: string): JsonObject {
  return { $ref: `${REFERENCE_PREFIX[version]}${name}` }
}

/** Name -> schema, of these kinds and of everything that all kinds share. */
export function schemasOf(resources: readonly ApiResource[], version: OpenApiVersion): JsonObject {
  const schemas: Record<string, unknown> = {}
  for (const resource of resources) {
    schemas[schemaName(resource, resource.kind)] = kindSchema(resource, version)
    if (resource.listKind !== '') schemas[schemaName(resource, resource.listKind)] = listSchema(resource, version)
  }
  for (const [name, schema] of Object.entries(META_SCHEMAS)) {
    schemas[`${META_PREFIX}${name}`] = version === 'v2' ? forV2(schema) : schema
  }
  return schemas
}

function kindSchema(resource: ApiResource, version: OpenApiVersion): JsonObject {
  const schema: JsonObject = version === 'v2' ? forV2(resource.schema) : { ...resource.schema }
  const metadata = described(version, 'ObjectMeta', "Standard object's metadata.")
  // Keeps the metadata where the schema has it: after apiVersion and kind.
  const properties = { ...(schema['properties'] as JsonObject | undefined), metadata }
  return { ...schema, properties, ...kindMark(resource, resource.kind) }
}

function listSchema(resource: ApiResource, version: OpenApiVersion): JsonObject {
  const { kind, listKind, plural } = resource
  return {
    description: `${listKind} is a list of ${kind}.`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: { description: 'Version of the schema of this object.', type: 'string' },
      kind: { description: `What this object is: ${listKind}.`, type: 'string' },
      metadata: described(version, 'ListMeta', 'Standard list metadata.'),
      items: {
        description: `List of ${plural}.`,
        type: 'array',
        items: reference(version, schemaName(resource, kind)),
      },
    },
    ...kindMark(resource, listKind),
  }
}

/** OpenAPI v3 allows no siblings of `$ref`. */
function described(version: OpenApiVersion, name: 'ObjectMeta' | 'ListMeta', description: string): JsonObject {
  const to = reference(version, `${META_PREFIX}${name}`)
  return version === 'v2' ? { ...to, description } : { allOf: [to], description }
}

/** kubectl finds the schema of a kind by this. */
function kindMark({ group, version }: ApiResource, kind: string): JsonObject {
  return { 'x-kubernetes-group-version-kind': [{ group, version, kind }] }
}

/**
 * kubectl before 1.27 validates objects against these schemas itself, and rejects every field that is not
 * listed: if unknown fields are preserved, none may be listed (apiextensions-apiserver pkg/controller/openapi/v2).
 */
function forV2(schema: JsonSchema): JsonObject {
  const { properties, items, additionalProperties, ...rest } = schema
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) {
    const { type: _, required: __, ...open } = rest
    return open
  }
  return {
    ...rest,
    ...(properties !== undefined && { properties: mapValues(properties, forV2) }),
    ...(items !== undefined && { items: forV2(items) }),
    ...(additionalProperties !== undefined && { additionalProperties: forV2(additionalProperties) }),
  }
}

function mapValues(record: Readonly<Record<string, JsonSchema>>, change: (schema: JsonSchema) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}
