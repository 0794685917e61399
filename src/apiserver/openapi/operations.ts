// The paths and operations of every resource, before they are rendered as OpenAPI v2 or v3
// (apiextensions-apiserver/pkg/controller/openapi/builder/builder.go).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { apiVersionOf } from '../../kube/api/resource-kind.ts'
import type { ApiResource } from '../objects/api-resource.ts'
import { META_PREFIX } from './meta-schemas.ts'
import { ACTION_PARAMETERS, type Action, type ApiParameter, NAMESPACE, nameParameter, PRETTY } from './parameters.ts'

interface ApiPath {
  readonly path: string
  /** Parameters of all its operations. */
  readonly parameters: readonly ApiParameter[]
  readonly operations: readonly ApiOperation[]
}

export interface ApiOperation {
  readonly method: 'get' | 'put' | 'post' | 'delete' | 'patch'
  readonly id: string
  readonly description: string
  /** x-kubernetes-action. */
  readonly action: Action
  readonly resource: ApiResource
  readonly parameters: readonly ApiParameter[]
  readonly body: ApiBody | undefined
  /** Names of schemas, by status code. */
  readonly responses: readonly { readonly code: string; readonly description: string; readonly schema: string }[]
}

export interface ApiBody {
  /** Name of the schema. */
  readonly schema: string
  readonly contentTypes: readonly string[]
  readonly required: boolean
}

/** Media types of objects in requests and responses. */
export const OBJECT_TYPES: readonly string[] = ['application/json', 'application/yaml']
/** No strategic merge patch: kubectl would send it wherever it is listed. */
const PATCH_TYPES = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']

const STATUS_SCHEMA = `${META_PREFIX}Status`
const DELETE_OPTIONS_SCHEMA = `${META_PREFIX}DeleteOptions`
const PATCH_SCHEMA = `${META_PREFIX}Patch`

/** The item of a path: its parameters, and each operation under its method. */
export function pathItem(
  { parameters, operations }: ApiPath,
  parameter: (one: ApiParameter) => JsonObject,
  operation: (one: ApiOperation) => JsonObject,
): JsonObject {
  return {
    parameters: parameters.map(parameter),
    ...Object.fromEntries(operations.map((one) => [one.method, operation(one)])),
  }
}

/** Name of the kind's schema: the group reversed; for Kubernetes' own kinds the Go package. */
export function schemaName({ group, version }: ApiResource, kind: string): string {
  if (group === '') return `io.k8s.api.core.${version}.${kind}`
  const ownGroup = /^([a-z]+)(?:\.authorization)?\.k8s\.io$/.exec(group)?.[1]
  if (ownGroup !== undefined) return `io.k8s.api.${ownGroup}.${version}.${kind}`
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`
}

export function pathsOf(resource: ApiResource): readonly ApiPath[] {
  const { group, kind, plural, namespaced, verbs } = resource
  const base = `${group === '' ? '/api' : '/apis'}/${apiVersionOf(resource)}`
  const collection = namespaced ? `${base}/namespaces/{namespace}/${plural}` : `${base}/${plural}`
  const shared = namespaced ? [NAMESPACE, PRETTY] : [PRETTY]
  const stored = verbs.includes('list')
  const paths: ApiPath[] = [
    {
      path: collection,
      parameters: shared,
      operations: [
        ...(stored ? [list(resource, false)] : []),
        write(resource, 'post', 'create', ''),
        ...(stored ? [remove(resource, 'deletecollection')] : []),
      ],
    },
  ]
  if (!stored) return paths
  if (namespaced) {
    paths.push({ path: `${base}/${plural}`, parameters: [PRETTY], operations: [list(resource, true)] })
  }
  const named = [nameParameter(kind), ...shared]
  paths.push({
    path: `${collection}/{name}`,
    parameters: named,
    operations: [...readAndChange(resource, ''), remove(resource, 'delete')],
  })
  for (const { name, of } of resource.subresources) {
    // A subresource of another kind has no schema here.
    if (of !== undefined) continue
    const path = `${collection}/{name}/${name}`
    paths.push({ path, parameters: named, operations: readAndChange(resource, name) })
  }
  return paths
}

function readAndChange(resource: ApiResource, subresource: string): ApiOperation[] {
  return [
    read(resource, subresource),
    write(resource, 'put', 'replace', subresource),
    write(resource, 'patch', 'patch', subresource),
  ]
}

function list(resource: ApiResource, allNamespaces: boolean): ApiOperation {
  const { kind, listKind } = resource
  const id = allNamespaces ? `${idOf(resource, 'list', false)}ForAllNamespaces` : idOf(resource, 'list')
  const responses = [{ code: '200', description: 'OK', schema: schemaName(resource, listKind) }]
  const description = `list or watch objects of kind ${kind}`
  return operation(resource, { method: 'get', id, action: 'list', description, responses, body: undefined })
}

function read(resource: ApiResource, subresource: string): ApiOperation {
  const id = `${idOf(resource, 'read')}${capital(subresource)}`
  const responses = [{ code: '200', description: 'OK', schema: schemaName(resource, resource.kind) }]
  const description = `read ${partOf(subresource)}the specified ${resource.kind}`
  return operation(resource, { method: 'get', id, action: 'get', description, responses, body: undefined })
}

/** Operations that send an object or a patch and return the object. */
function write(
  resource: ApiResource,
  method: 'post' | 'put' | 'patch',
  verb: 'create' | 'replace' | 'patch',
  subresource: string,
): ApiOperation {
  const schema = schemaName(resource, resource.kind)
  const id = `${idOf(resource, verb)}${capital(subresource)}`
  const what = `${partOf(subresource)}${method === 'post' ? 'a' : 'the specified'} ${resource.kind}`
  const description = `${verb === 'patch' ? 'partially update' : verb} ${what}`
  const body =
    method === 'patch'
      ? { schema: PATCH_SCHEMA, contentTypes: PATCH_TYPES, required: true }
      : { schema, contentTypes: OBJECT_TYPES, required: true }
  const responses = [
    { code: '200', description: 'OK', schema },
    { code: '201', description: 'Created', schema },
  ]
  return operation(resource, { method, id, action: method, description, responses, body })
}

function remove(resource: ApiResource, action: 'delete' | 'deletecollection'): ApiOperation {
  const one = action === 'delete'
  const id = idOf(resource, one ? 'delete' : 'deleteCollection')
  const description = one ? `delete a ${resource.kind}` : `delete collection of ${resource.kind}`
  const responses = [{ code: '200', description: 'OK', schema: STATUS_SCHEMA }]
  const body = { schema: DELETE_OPTIONS_SCHEMA, contentTypes: OBJECT_TYPES, required: false }
  return operation(resource, { method: 'delete', id, action, description, responses, body })
}

function operation(resource: ApiResource, facts: Omit<ApiOperation, 'resource' | 'parameters'>): ApiOperation {
  return { ...facts, resource, parameters: ACTION_PARAMETERS[facts.action] }
}

function partOf(subresource: string): string {
  return subresource === '' ? '' : `${subresource} of `
}

/** `listCoordinationV1NamespacedLease`: unique in all documents. */
function idOf(resource: ApiResource, verb: string, namespaced: boolean = resource.namespaced): string {
  return `${verb}${tagOf(resource, '', capital)}${namespaced ? 'Namespaced' : ''}${resource.kind}`
}

/** `core_v1`, `proxyKubegatewayIo_v1alpha1`. */
export function groupTag(resource: ApiResource): string {
  const tag = tagOf(resource, '_', (word) => word)
  return `${tag.charAt(0).toLowerCase()}${tag.slice(1)}`
}

function tagOf({ group, version }: ApiResource, separator: string, ofVersion: (text: string) => string): string {
  const words = group === '' ? ['core'] : group.replace(/\.k8s\.io$/, '').split('.')
  return `${words.map(capital).join('')}${separator}${ofVersion(version)}`
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
