// The resource of a path: exactly the paths that kube-apiserver serves for a kind.

import type { KindSubresource, ResourceKind } from '../kube/api/resource-kind.ts'
import type { Subresource } from './objects/write-object.ts'

export interface ResourceRoute {
  readonly kind: ResourceKind
  /** '' = none, or all. */
  readonly namespace: string
  /** '' = the collection. */
  readonly name: string
  readonly subresource: Subresource
  /** A kind-specific subresource. Default: none. */
  readonly own?: KindSubresource
}

/** @param path decoded, without the query. @returns undefined if nothing is served there */
export function matchRoute(kinds: readonly ResourceKind[], path: string): ResourceRoute | undefined {
  const segments = (path.endsWith('/') ? path.slice(0, -1) : path).split('/').slice(1)
  const core = segments[0] === 'api'
  if (!core && segments[0] !== 'apis') return undefined
  const group = core ? '' : (segments[1] ?? '')
  const version = segments[core ? 1 : 2] ?? ''
  const rest = segments.slice(core ? 2 : 3)
  if (rest.some((segment) => segment === '')) return undefined
  const find = (plural: string | undefined, namespaced?: boolean): ResourceKind | undefined =>
    kinds.find(
      (kind) =>
        kind.plural === plural &&
        kind.group === group &&
        kind.version === version &&
        (namespaced === undefined || kind.namespaced === namespaced),
    )
  const [first, second, third, ...more] = rest
  if (first === 'namespaces' && second !== undefined && third !== undefined) {
    const kind = find(third, true)
    if (kind !== undefined) return route(kind, second, more)
  }
  const kind = find(first)
  if (kind === undefined) return undefined
  // Across all namespaces objects can't be named.
  if (kind.namespaced) return second === undefined ? route(kind, '', []) : undefined
  return route(kind, '', rest.slice(1))
}

/** @param rest what follows the plural: a name, a subresource */
function route(kind: ResourceKind, namespace: string, rest: readonly string[]): ResourceRoute | undefined {
  const [name = '', subresource = '', more] = rest
  if (more !== undefined) return undefined
  if (subresource === '') return { kind, namespace, name, subresource }
  if (subresource === 'status' && kind.hasStatus) return { kind, namespace, name, subresource }
  const own = kind.subresources?.find((one) => one.name === subresource)
  return own && { kind, namespace, name, subresource: '', own }
}
