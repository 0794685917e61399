// OpenAPI v3: an index, and one document for each group version. kubectl explain, and the question whether the server
// checks fields by itself (fieldValidation), are answered from it (kube-openapi/pkg/spec3).

import type { JsonObject } from '../../api/kube/json-object.ts'
import type { ApiGroup, ApiGroupVersion } from '../objects/api-resources.ts'
import { type ApiOperation, groupTag, OBJECT_TYPES, pathItem, pathsOf } from './operations.ts'
import type { ApiParameter } from './parameters.ts'
import { reference, schemasOf } from './schemas.ts'

/** `apis/proxy.kubegateway.io/v1alpha1` -> what its document is made of; the paths of the index. */
export function v3Paths(groups: readonly ApiGroup[]): ReadonlyMap<string, ApiGroupVersion> {
  const documents = groups.flatMap(({ name, versions }) =>
    versions.map((version) => [`${name === '' ? 'api' : 'apis'}/${version.groupVersion}`, version] as const),
  )
  return new Map(documents)
}

/** @param programVersion of the whole API: `info.version` */
export function v3Document({ resources }: ApiGroupVersion, programVersion: string): JsonObject {
  const paths: Record<string, unknown> = {}
  for (const path of resources.flatMap(pathsOf)) paths[path.path] = pathItem(path, parameter, operation)
  return {
    openapi: '3.0.0',
    info: { title: 'Portcullis', version: programVersion },
    paths,
    components: { schemas: schemasOf(resources, 'v3') },
  }
}

/** @param tags of the documents, by the keys of v3Paths() */
export function v3Index(tags: ReadonlyMap<string, string>): JsonObject {
  const paths: Record<string, unknown> = {}
  for (const [path, tag] of tags) paths[path] = { serverRelativeURL: documentUrl(path, tag) }
  return { paths }
}

export function documentUrl(path: string, tag: string): string {
  return `/openapi/v3/${path}?hash=${tag}`
}

function operation(facts: ApiOperation): JsonObject {
  const { id, description, action, resource, parameters, body } = facts
  const { group, version, kind } = resource
  return {
    tags: [groupTag(resource)],
    description,
    operationId: id,
    ...(parameters.length > 0 && { parameters: parameters.map(parameter) }),
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

function parameter({ name, in: place, type, description }: ApiParameter): JsonObject {
  return { name, in: place, description, ...(place === 'path' && { required: true }), schema: { type } }
}
