// Discovery: /api, /apis and the documents below them, in the forms that clients request. Aggregated (one document for all
// groups, apidiscovery.k8s.io; apiserver/pkg/endpoints/discovery/aggregated) and legacy (one document each).

import { type Negotiated, negotiate, notAcceptable } from './http/accept.ts'
import { encode, type HttpAnswer, statusAnswer } from './http/answer.ts'
import { type TaggedDocument, tagged, taggedAnswer } from './http/entity-tag.ts'
import type { ApiResource } from './objects/api-resource.ts'
import type { ApiGroup, ApiGroupVersion } from './objects/api-resources.ts'

const CORE = ''

/** The documents of one API server, each built on first request. */
export class Discovery {
  readonly #groups: readonly ApiGroup[]
  /** Path -> the function that builds its legacy document. */
  readonly #legacy: ReadonlyMap<string, () => object>
  readonly #documents = new Map<string, TaggedDocument>()

  constructor(groups: readonly ApiGroup[]) {
    this.#groups = groups
    this.#legacy = legacyPaths(groups)
  }

  /**
   * The response to GET of a discovery path; undefined for any other path.
   * @param path without the query
   * @param ifNoneMatch the field, or ''
   */
  answer(path: string, accept: string, ifNoneMatch: string): HttpAnswer | undefined {
    const at = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    const aggregated = at === '/api' || at === '/apis'
    if (!aggregated && !this.#legacy.has(at)) return undefined
    const wanted = negotiate(accept, aggregated ? 'discovery' : 'plain')
    if (wanted === undefined) return statusAnswer(notAcceptable().status)
    return taggedAnswer(this.#documentAt(at, wanted), ifNoneMatch)
  }

  #documentAt(path: string, wanted: Negotiated): TaggedDocument {
    const key = `${path} ${wanted.as} ${wanted.format} ${wanted.pretty}`
    const known = this.#documents.get(key)
    if (known !== undefined) return known
    const version = wanted.as === 'discovery-v2' ? 'v2' : 'v2beta1'
    const isLegacy = wanted.as === 'object'
    const value = isLegacy ? this.#legacy.get(path)?.() : aggregatedDocument(this.#groups, path === '/api', version)
    const parameters = isLegacy ? '' : `;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
    const fresh = tagged(encode(value, wanted), `application/${wanted.format}${parameters}`)
    this.#documents.set(key, fresh)
    return fresh
  }
}

function aggregatedDocument(all: readonly ApiGroup[], core: boolean, version: 'v2' | 'v2beta1'): object {
  const groups = all.filter(({ name }) => (name === CORE) === core)
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map(({ name, versions }) => ({
      metadata: name === CORE ? {} : { name },
      versions: versions.map((groupVersion) => ({
        version: groupVersion.version,
        resources: groupVersion.resources.map(resourceDiscovery),
        freshness: 'Current',
      })),
    })),
  }
}

function resourceDiscovery(resource: ApiResource): object {
  const { group, version, kind, plural, singular, namespaced, verbs, shortNames, categories, subresources } = resource
  const responseKind = { group, version, kind }
  return {
    resource: plural,
    responseKind,
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map(({ name, verbs, of }) => ({
        subresource: name,
        responseKind: of ?? responseKind,
        verbs,
      })),
    }),
  }
}

function legacyPaths(groups: readonly ApiGroup[]): Map<string, () => object> {
  const paths = new Map<string, () => object>([
    ['/api', () => apiVersions(groups)],
    ['/apis', () => apiGroupList(groups)],
  ])
  for (const group of groups) {
    const base = group.name === CORE ? '/api' : '/apis'
    if (group.name !== CORE) paths.set(`/apis/${group.name}`, () => ({ ...API_GROUP, ...apiGroup(group) }))
    for (const version of group.versions) paths.set(`${base}/${version.groupVersion}`, () => apiResourceList(version))
  }
  return paths
}

const API_GROUP = { kind: 'APIGroup', apiVersion: 'v1' }

function apiVersions(groups: readonly ApiGroup[]): object {
  const core = groups.find(({ name }) => name === CORE)
  return {
    kind: 'APIVersions',
    versions: core?.versions.map(({ version }) => version) ?? [],
    // Addresses of the server: empty, because the client has one already.
    serverAddressByClientCIDRs: [],
  }
}

function apiGroupList(groups: readonly ApiGroup[]): object {
  const named = groups.filter(({ name }) => name !== CORE).map(apiGroup)
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: named }
}

function apiGroup({ name, versions }: ApiGroup): object {
  const all = versions.map(({ groupVersion, version }) => ({ groupVersion, version }))
  return { name, versions: all, preferredVersion: all[0] }
}

function apiResourceList({ groupVersion, resources }: ApiGroupVersion): object {
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: resources.flatMap(apiResources) }
}

/** The resource, and each of its subresources as `plural/name`. */
function apiResources(resource: ApiResource): object[] {
  const { kind, plural, singular, namespaced, verbs, shortNames, categories, subresources } = resource
  const own = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  }
  const below = subresources.map(({ name, verbs, of = { kind } }) => {
    return { name: `${plural}/${name}`, singularName: '', namespaced, ...of, verbs }
  })
  return [own, ...below]
}
