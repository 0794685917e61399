// Discovery of a federated cluster: the groups and versions of what is federated, and of their resources what members say of them, with the verbs that are
// answered (https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api, its form for one version).

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { handedOverVerbs } from './handed-over.ts'

interface Discovered {
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
}

/** What is answered at a path. */
export type DiscoveryPath =
  | { readonly kind: 'answer'; readonly body: object }
  /** The members have to be asked, at the same path. */
  | { readonly kind: 'resources'; readonly groupVersion: string; readonly names: readonly string[] }

type WriteVerbs = (groupVersion: string, name: string, isNamespaced: boolean) => readonly string[]

const VERBS = ['get', 'list', 'watch']

/** @returns undefined = nothing is there */
export function discoveryAt(path: string, resources: readonly Discovered[]): DiscoveryPath | undefined {
  const parts = path.split('/').filter((part) => part !== '')
  const [root, first, second] = parts
  if (root === 'api') {
    const core = resources.filter(({ group }) => group === '')
    if (parts.length === 1)
      return answer({ kind: 'APIVersions', versions: versionsOf(core), serverAddressByClientCIDRs: [] })
    return parts.length === 2 ? resourcesOf(core, first ?? '', first ?? '') : undefined
  }
  if (root !== 'apis') return undefined
  const groups = [...new Set(resources.map(({ group }) => group))].filter((group) => group !== '')
  if (parts.length === 1) {
    return answer({ kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map((name) => groupOf(name, resources)) })
  }
  const named = resources.filter(({ group }) => group !== '' && group === first)
  if (named.length === 0) return undefined
  if (parts.length === 2) return answer({ kind: 'APIGroup', apiVersion: 'v1', ...groupOf(first ?? '', resources) })
  return parts.length === 3 ? resourcesOf(named, `${first}/${second}`, second ?? '') : undefined
}

/**
 * @param answers of the members, parsed
 * @param names of the resources that are federated
 * @param writes the verbs that members are handed besides, of a resource or its subresource
 */
export function joinedResources(
  answers: readonly unknown[],
  groupVersion: string,
  names: readonly string[],
  writes: WriteVerbs,
): object {
  const found = new Map<string, object>()
  for (const one of answers) {
    const resources = isRecord(one) && Array.isArray(one['resources']) ? one['resources'] : []
    for (const resource of resources) {
      if (!isRecord(resource) || typeof resource['name'] !== 'string') continue
      const { name } = resource
      const [parent = ''] = name.split('/', 1)
      if (!names.includes(parent) || found.has(name)) continue
      const verbs = [
        ...readVerbs(name, groupVersion),
        ...ownVerbs(resource, writes(groupVersion, name, resource['namespaced'] === true)),
      ]
      if (verbs.length > 0) found.set(name, { ...resource, verbs })
    }
  }
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: [...found.values()] }
}

/** Those of a federated resource, or of what a member serves itself of its objects. */
function readVerbs(name: string, groupVersion: string): readonly string[] {
  return name.includes('/') ? (handedOverVerbs(groupVersion, name) ?? []) : VERBS
}

/** As far as the member has them. */
function ownVerbs({ verbs }: JsonObject, wanted: readonly string[]): readonly string[] {
  return wanted.filter((verb) => Array.isArray(verbs) && verbs.includes(verb))
}

function answer(body: object): DiscoveryPath {
  return { kind: 'answer', body }
}

function versionsOf(resources: readonly Discovered[]): readonly string[] {
  return [...new Set(resources.map(({ version }) => version))]
}

function groupOf(name: string, resources: readonly Discovered[]): object {
  const versions = versionsOf(resources.filter(({ group }) => group === name)).map((version) => ({
    groupVersion: `${name}/${version}`,
    version,
  }))
  return { name, versions, preferredVersion: versions[0] }
}

function resourcesOf(
  resources: readonly Discovered[],
  groupVersion: string,
  version: string,
): DiscoveryPath | undefined {
  const names = resources.filter((one) => one.version === version).map(({ resource }) => resource)
  return names.length === 0 ? undefined : { kind: 'resources', groupVersion, names }
}
