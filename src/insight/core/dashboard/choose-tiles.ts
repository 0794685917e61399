// Selects and orders the clusters on a page of the overview.

import { isLabelKey } from '../../../kit/api/validation/name-syntax.ts'
import { type ClusterGroup, type ClusterTile, TILES_A_PAGE } from '../../api/overview.ts'
import { isHurting, troubleWeight } from './troubles.ts'

const SHOWN = ['all', 'hurting', 'switched'] as const
const SORTS = ['worst', 'name', 'requests', 'errors', 'refused', 'latency'] as const

export interface TileChoice {
  /** Substring of the name, case-insensitive; '' = all. */
  readonly search: string
  readonly show: (typeof SHOWN)[number]
  readonly sort: (typeof SORTS)[number]
  /** Key of the label that they are grouped by; '' = not grouped. */
  readonly group: string
  /** Counted from 1. */
  readonly page: number
}

/** Longer searches can't match any name. */
const MAX_SEARCH = 253

/** Invalid parameters are ignored. */
export function readTileChoice(query: { get(name: string): string | null }): TileChoice {
  const group = query.get('group') ?? ''
  const page = Number(query.get('page') ?? '1')
  return {
    search: (query.get('search') ?? '').slice(0, MAX_SEARCH).trim().toLowerCase(),
    show: SHOWN.find((one) => one === query.get('show')) ?? 'all',
    sort: SORTS.find((one) => one === query.get('sort')) ?? 'worst',
    group: isLabelKey(group) ? group : '',
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
  }
}

interface ChosenTiles {
  readonly tiles: readonly ClusterTile[]
  readonly groups: readonly ClusterGroup[]
  readonly matching: number
  /** Clamped to the last page. */
  readonly page: number
  readonly pages: number
}

export function chooseTiles(all: readonly ClusterTile[], { search, show, sort, group, page }: TileChoice): ChosenTiles {
  const found = all.filter(
    (tile) =>
      (search === '' || tile.name.toLowerCase().includes(search)) &&
      (show === 'all' || (show === 'hurting' ? isHurting(tile) : tile.degrade !== null)),
  )
  const byGroup = (a: ClusterTile, b: ClusterTile): number => compareGroups(a.group, b.group)
  found.sort((a, b) => byGroup(a, b) || ORDERS[sort](b) - ORDERS[sort](a) || (a.name < b.name ? -1 : 1))
  const pages = Math.max(1, Math.ceil(found.length / TILES_A_PAGE))
  const shown = Math.min(page, pages)
  const tiles = found.slice((shown - 1) * TILES_A_PAGE, shown * TILES_A_PAGE)
  return { tiles, groups: group === '' ? [] : groupsOf(found), matching: found.length, page: shown, pages }
}

/** Clusters without the label come last. */
function compareGroups(a: string, b: string): number {
  if (a === b) return 0
  if (a === '' || b === '') return a === '' ? 1 : -1
  return a < b ? -1 : 1
}

/** Groups that an answer names at most; a label may have another value in each cluster. */
const MAX_GROUPS = 50

/** @param tiles in the order of their groups */
function groupsOf(tiles: readonly ClusterTile[]): readonly ClusterGroup[] {
  const groups = Map.groupBy(tiles, ({ group }) => group)
  return [...groups].slice(0, MAX_GROUPS).map(([value, members]) => ({
    value,
    clusters: members.length,
    hurting: members.filter(isHurting).length,
    switched: members.filter(({ degrade }) => degrade !== null).length,
  }))
}

/** Labels that an answer names at most. */
const MAX_KEYS = 20

/** Keys that clusters can be grouped by, the most frequent first. */
export function labelKeysOf(labels: readonly Readonly<Record<string, string>>[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const one of labels) for (const key of Object.keys(one)) counts.set(key, (counts.get(key) ?? 0) + 1)
  const keys = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([key]) => key)
  return keys.slice(0, MAX_KEYS)
}

/** Greatest first, then by name. */
const ORDERS: Readonly<Record<TileChoice['sort'], (tile: ClusterTile) => number>> = {
  // Among equally bad clusters, the one with more requests.
  worst: ({ troubles, requestsPerSecond }) =>
    troubleWeight(troubles) * 1e9 + (troubles.length > 0 ? requestsPerSecond : 0),
  name: () => 0,
  requests: ({ requestsPerSecond }) => requestsPerSecond,
  errors: ({ errorRatio, requestsPerSecond }) => errorRatio * requestsPerSecond,
  refused: ({ refusedRatio, requestsPerSecond }) => refusedRatio * requestsPerSecond,
  latency: ({ p99 }) => p99 ?? -1,
}
