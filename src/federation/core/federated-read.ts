// What a read of a federated cluster asks for: the options of a GET, LIST or WATCH as kube-apiserver reads them, with vectors for versions. There is no
// cluster to forward it to, so what is not understood is refused here, with kube-apiserver's codes.

import { queryOptionsOf } from '../../cache/core/requests/read-request.ts'
import { parseVector, type VersionVector } from './vectors.ts'

/** How new the answer has to be. `consistent`: at least as new as the request. */
export type FederatedFreshness =
  | 'any'
  | 'consistent'
  | { readonly notOlderThan: VersionVector }
  | { readonly exactly: VersionVector }

interface FederatedSelectors {
  /** As sent; '' = everything. */
  readonly labelSelector: string
  readonly fieldSelector: string
}

export interface FederatedGet extends FederatedSelectors {
  readonly kind: 'get'
  readonly freshness: FederatedFreshness
}

export interface FederatedList extends FederatedSelectors {
  readonly kind: 'list'
  readonly freshness: FederatedFreshness
  /** 0 = all. */
  readonly limit: number
  /** '' = from the beginning. */
  readonly continue: string
}

export interface FederatedWatch extends FederatedSelectors {
  readonly kind: 'watch'
  /** undefined = it begins behind `after`. */
  readonly initial: FederatedFreshness | undefined
  readonly after: VersionVector | undefined
  /** It has asked for the state by name, and for the bookmark behind it that says that this is all. */
  readonly awaitsMark: boolean
  readonly bookmarks: boolean
  /** 0 = not said. */
  readonly timeoutSeconds: number
}

export type FederatedRead = FederatedGet | FederatedList | FederatedWatch

/** It cannot be answered: why, as the Status says it. */
export interface InvalidRead {
  readonly invalid: string
}

const COUNT = /^[0-9]{1,9}$/
const NO_SELECTORS: FederatedSelectors = { labelSelector: '', fieldSelector: '' }

/** @param query of the target, without its question mark */
export function federatedReadOf(kind: FederatedRead['kind'], query: string): FederatedRead | InvalidRead {
  const options = queryOptionsOf(query)
  if (options === undefined) return { invalid: 'the query has a parameter twice, or cannot be decoded' }
  const version = options.get('resourceVersion') ?? ''
  const match = options.get('resourceVersionMatch') ?? ''
  const vector = version === '' || version === '0' ? undefined : parseVector(version)
  if (version !== '' && version !== '0' && vector === undefined)
    return {
      invalid: `resourceVersion: Invalid value: ${JSON.stringify(shortened(version))}: it is not one of this cluster's`,
    }
  if (match !== '' && match !== 'NotOlderThan' && match !== 'Exact')
    return { invalid: `resourceVersionMatch: Invalid value: ${JSON.stringify(shortened(match))}` }
  const freshness: FederatedFreshness =
    vector === undefined ? (version === '' ? 'consistent' : 'any') : { notOlderThan: vector }
  switch (kind) {
    case 'get':
      return { kind, freshness, ...NO_SELECTORS }
    case 'list':
      return listOf(options, freshness, match)
    case 'watch':
      return watchOf(options, freshness, match)
  }
}

type Options = ReadonlyMap<string, string>

function listOf(options: Options, freshness: FederatedFreshness, match: string): FederatedList | InvalidRead {
  const limit = options.get('limit') ?? '0'
  if (!COUNT.test(limit)) return { invalid: `limit: Invalid value: ${JSON.stringify(shortened(limit))}` }
  const next = options.get('continue') ?? ''
  const common = { kind: 'list', limit: Number(limit), continue: next, ...selectorsOf(options) } as const
  if (next !== '') {
    if (match !== '')
      return { invalid: 'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for a continue' }
    if (typeof freshness === 'object')
      return { invalid: 'specifying resource version is not allowed when using continue' }
    return { ...common, freshness: 'any' }
  }
  if (match !== '' && freshness === 'consistent')
    return {
      invalid: 'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    }
  if (typeof freshness === 'string') {
    if (match === 'Exact')
      return {
        invalid: 'resourceVersionMatch: Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"',
      }
    // A list of any age comes whole, as from the cache of kube-apiserver.
    return freshness === 'any' ? { ...common, freshness, limit: 0 } : { ...common, freshness }
  }
  // As kube-apiserver does: with a limit, a version alone is that of the list.
  const isExact = match === 'Exact' || (match === '' && Number(limit) > 0)
  if (!isExact || !('notOlderThan' in freshness)) return { ...common, freshness }
  return { ...common, freshness: { exactly: freshness.notOlderThan } }
}

function watchOf(options: Options, freshness: FederatedFreshness, match: string): FederatedWatch | InvalidRead {
  const sends = options.get('sendInitialEvents')
  const timeout = options.get('timeoutSeconds') ?? '0'
  if (!COUNT.test(timeout)) return { invalid: `timeoutSeconds: Invalid value: ${JSON.stringify(shortened(timeout))}` }
  const bookmarks = isTrue(options.get('allowWatchBookmarks'))
  const common = {
    kind: 'watch',
    bookmarks,
    awaitsMark: bookmarks && isTrue(sends),
    timeoutSeconds: Number(timeout),
    ...selectorsOf(options),
  } as const
  if (sends === undefined) {
    if (match !== '')
      return {
        invalid:
          'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      }
    // Without a version kube-apiserver 1.34 and later takes it for one that wants the state first
    // (apimachinery/pkg/apis/meta/internalversion/defaults.go).
    if (typeof freshness === 'string') return { ...common, initial: freshness, after: undefined }
  } else if (match !== 'NotOlderThan') {
    return {
      invalid:
        'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    }
  } else if (isTrue(sends)) return { ...common, initial: freshness, after: undefined }
  const after = typeof freshness === 'object' && 'notOlderThan' in freshness ? freshness.notOlderThan : undefined
  if (after === undefined)
    return { invalid: 'sendInitialEvents: Invalid value: false: a version to begin with is needed' }
  return { ...common, initial: undefined, after }
}

function selectorsOf(options: Options): FederatedSelectors {
  return { labelSelector: options.get('labelSelector') ?? '', fieldSelector: options.get('fieldSelector') ?? '' }
}

/** As Go's conversion of a query: anything but false and 0 (apimachinery/pkg/runtime/conversion.go). */
function isTrue(value: string | undefined): boolean {
  return value !== undefined && value !== '0' && value.toLowerCase() !== 'false'
}

/** What a client sends is shown to it in part. */
function shortened(text: string): string {
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}...` : text
}

const MOST_SHOWN = 64
