// DEMO ONLY. Health, version, discovery (aggregated and legacy) and just enough OpenAPI v3 for kubectl's create, apply and
// explain (client-go/discovery, cli-runtime/pkg/resource/query_param_verifier_v3.go).

import { createHash } from 'node:crypto'
import { type Answer, type Call, jsonAnswer, textAnswer } from './call.ts'
import type { Json } from './json.ts'
import { groupVersionOf, RESOURCES, type Resource } from './resources.ts'

/** undefined: there is nothing at this path. */
export function describeServer(call: Call): Answer | undefined {
  const path = call.info.path.replace(/\/$/, '')
  const [, first = '', second = '', third = ''] = path.split('/')
  if (first === 'healthz' || first === 'livez' || first === 'readyz') return textAnswer('ok')
  if (path === '/version') return jsonAnswer(VERSION)
  if (path === '/api' || path === '/apis') return groups(call, path === '/api')
  if (path === '/api/v1') return resourceList('v1')
  if (path.startsWith('/apis/') && third !== '') return resourceList(`${second}/${third}`)
  if (path.startsWith('/apis/')) return group(second)
  if (path === '/openapi/v3') return cached(call, openapiRoot())
  if (path.startsWith('/openapi/v3/')) return openapiDocument(call, path.slice('/openapi/v3/'.length))
  return undefined
}

const VERSION: Json = {
  major: '1',
  minor: '33',
  gitVersion: 'v1.33.0+portcullis.demo',
  gitCommit: '0000000000000000000000000000000000000000',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: 'linux/amd64',
}

const AGGREGATED =
  /application\/json;(?=[^,]*g=apidiscovery\.k8s\.io)(?=[^,]*as=APIGroupDiscoveryList)[^,]*v=(v2|v2beta1)\b/

/** `/api` and `/apis`: clients ask for the aggregated form, and tell by the content type whether they got it. */
function groups(call: Call, core: boolean): Answer {
  const version = AGGREGATED.exec(call.accept)?.[1]
  if (version === undefined)
    return jsonAnswer(core ? LEGACY_CORE : { ...LEGACY_LIST, groups: namedGroups().map(legacyGroup) })
  const items = core ? [aggregatedGroup('')] : namedGroups().map(aggregatedGroup)
  const body = { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items }
  const contentType = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
  return { ...cached(call, body), contentType }
}

const LEGACY_CORE: Json = { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
const LEGACY_LIST: Json = { kind: 'APIGroupList', apiVersion: 'v1' }

/** No demo group has more than one version. */
function namedGroups(): string[] {
  return [...new Set(RESOURCES.map((resource) => resource.group))].filter((name) => name !== '')
}

function resourcesOf(name: string): readonly Resource[] {
  return RESOURCES.filter((resource) => resource.group === name)
}

function versionOf(name: string): string {
  return resourcesOf(name)[0]?.version ?? 'v1'
}

function legacyGroup(name: string): Json {
  const version = { groupVersion: `${name}/${versionOf(name)}`, version: versionOf(name) }
  return { name, versions: [version], preferredVersion: version }
}

function group(name: string): Answer | undefined {
  if (resourcesOf(name).length === 0) return undefined
  return jsonAnswer({ kind: 'APIGroup', apiVersion: 'v1', ...legacyGroup(name) })
}

function aggregatedGroup(name: string): Json {
  const resources = resourcesOf(name).map((resource) => ({
    resource: resource.resource,
    responseKind: { group: resource.group, version: resource.version, kind: resource.kind },
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: resource.singular,
    verbs: resource.verbs,
    shortNames: resource.shortNames,
    categories: resource.categories,
    subresources: resource.subresources.map(({ name: subresource, kind, group: of, version, verbs }) => ({
      subresource,
      responseKind: { group: of, version, kind },
      verbs,
    })),
  }))
  const versions = [{ version: versionOf(name), freshness: 'Current', resources }]
  return { metadata: { name, creationTimestamp: null }, versions }
}

function resourceList(groupVersion: string): Answer | undefined {
  const found = RESOURCES.filter((resource) => groupVersionOf(resource) === groupVersion)
  if (found.length === 0) return undefined
  const resources = found.flatMap((resource) => [
    {
      name: resource.resource,
      singularName: resource.singular,
      namespaced: resource.namespaced,
      kind: resource.kind,
      verbs: resource.verbs,
      shortNames: resource.shortNames,
      categories: resource.categories,
    },
    ...resource.subresources.map(({ name, group: of, version, kind, verbs }) => ({
      name: `${resource.resource}/${name}`,
      singularName: '',
      namespaced: resource.namespaced,
      group: of,
      version,
      kind,
      verbs,
    })),
  ])
  return jsonAnswer({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources })
}

function openapiRoot(): Json {
  const paths: Record<string, Json> = {}
  for (const resource of RESOURCES) {
    const path = `${resource.group === '' ? 'api' : 'apis'}/${groupVersionOf(resource)}`
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=demo` }
  }
  return { paths }
}

function openapiDocument(call: Call, at: string): Answer | undefined {
  const [prefix, ...rest] = at.split('/')
  const found = RESOURCES.filter((resource) => groupVersionOf(resource) === rest.join('/'))
  if (found.length === 0) return undefined
  const paths: Record<string, Json> = {}
  const schemas: Record<string, Json> = {}
  for (const { group: of, version, kind, resource, namespaced } of found) {
    const gvk = { group: of, version, kind }
    const path = `/${prefix}/${rest.join('/')}/${namespaced ? 'namespaces/{namespace}/' : ''}${resource}/{name}`
    paths[path] = openapiOperations(gvk)
    schemas[`demo.${kind}`] = openapiSchema(gvk)
  }
  return cached(call, { openapi: '3.0.0', info: { title: 'demo', version: 'v1' }, paths, components: { schemas } })
}

/** Without the query parameter `fieldValidation`, kubectl would ask for OpenAPI v2 in protobuf. */
function openapiOperations(gvk: Json): Json {
  const parameters = ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map((name) => ({ name, in: 'query' }))
  const types = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
  const content = Object.fromEntries(types.map((type) => [type, {}]))
  const kind = { 'x-kubernetes-group-version-kind': gvk }
  return {
    get: { 'x-kubernetes-action': 'get', ...kind, responses: {} },
    patch: { 'x-kubernetes-action': 'patch', ...kind, parameters, requestBody: { content }, responses: {} },
  }
}

function openapiSchema(gvk: Json): Json {
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  return {
    type: 'object',
    description: `${String(gvk['kind'])}, as the demo's apiservers know it.`,
    'x-kubernetes-group-version-kind': [gvk],
    properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: any, spec: any, status: any },
  }
}

function cached(call: Call, body: Json): Answer {
  const answer = jsonAnswer(body)
  const etag = `"${createHash('sha256').update(answer.body).digest('hex').slice(0, 32).toUpperCase()}"`
  const headers = { etag, vary: 'Accept' }
  return call.ifNoneMatch === etag ? { ...answer, code: 304, body: '', headers } : { ...answer, headers }
}
