// OpenAPI v2 (Swagger): one document for everything. Old kubectls check and explain objects with it; new ones fall back to
// it (kube-openapi/pkg/builder).

import type { JsonObject } from '../../api/kube/json-object.ts'
import type { ApiResource } from '../objects/api-resource.ts'
import { type ApiBody, type ApiOperation, groupTag, OBJECT_TYPES, pathItem, pathsOf } from './operations.ts'
import type { ApiParameter } from './parameters.ts'
import { reference, schemasOf } from './schemas.ts'

/** @param programVersion of the whole API: `info.version` */
export function v2Document(resources: readonly ApiResource[], programVersion: string): JsonObject {
  const paths: Record<string, unknown> = {}
  for (const path of resources.flatMap(pathsOf)) paths[path.path] = pathItem(path, parameter, operation)
  return {
    swagger: '2.0',
    info: { title: 'Portcullis', version: programVersion },
    paths,
    definitions: schemasOf(resources, 'v2'),
  }
}

function operation(facts: ApiOperation): JsonObject {
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
    parameters: [...(body === undefined ? [] : [bodyParameter(body)]), ...parameters.map(parameter)],
    responses: byCode,
    schemes: ['https'],
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind },
  }
}

function bodyParameter({ schema, required }: ApiBody): JsonObject {
  return { name: 'body', in: 'body', ...(required && { required }), schema: reference('v2', schema) }
}

function parameter({ name, in: place, type, description }: ApiParameter): JsonObject {
  return { name, in: place, description, ...(place === 'path' && { required: true }), type }
}
