// The schemas of the kinds as OpenAPI publishes them: with the metadata that every object has, with a list for each kind,
// and with names by which they refer to each other.

import type { JsonObject } from '../../api/kube/json-object.ts'
import type { JsonSchema } from '../../api/kube/json-schema.ts'
import type { ApiResource } from '../objects/api-resource.ts'
import { META_PREFIX, META_SCHEMAS } from './meta-schemas.ts'
import { schemaName } from './operations.ts'

export type OpenApiVersion = 'v2' | 'v3'

const REFERENCE_PREFIX = { v2: '#/definitions/', v3: '#/components/schemas/' } as const

export function reference(version: OpenApiVersion, name: string): JsonObject {
  return { $ref: `${REFERENCE_PREFIX[version]}${name}` }
}

/** Name -> schema, of these kinds and of what all kinds share. */
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
  // The metadata comes where the schema has it: after apiVersion and kind.
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

/** By this kubectl finds the schema of a kind. */
function kindMark({ group, version }: ApiResource, kind: string): JsonObject {
  return { 'x-kubernetes-group-version-kind': [{ group, version, kind }] }
}

/**
 * kubectl before 1.27 checks objects against these schemas itself, and rejects every field that is not
 * listed: where unknown fields are kept, none may be listed (apiextensions-apiserver pkg/controller/openapi/v2).
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
