// Selects and orders the clusters on a page of the overview.

import { type ClusterTile, TILES_A_PAGE } from '../../api/overview.ts'
import { isHurting, troubleWeight } from './troubles.ts'

const SHOWN = ['all', 'hurting', 'switched'] as const
const SORTS = ['worst', 'name', 'requests', 'errors', 'refused', 'latency'] as const

export interface TileChoice {
  /** Substring of the name, case-insensitive; '' = all. */
  readonly search: string
  readonly show: (typeof SHOWN)[number]
  readonly sort: (typeof SORTS)[number]
  /** Counted from 1. */
  readonly page: number
}

/** Longer searches can't match any name. */
const MAX_SEARCH = 253

/** Invalid parameters are ignored. */
export function readTileChoice(query: { get(name: string): string | null }): TileChoice {
  const page = Number(query.get('page') ?? '1')
  return {
    search: (query.get('search') ?? '').slice(0, MAX_SEARCH).trim().toLowerCase(),
    show: SHOWN.find((one) => one === query.get('show')) ?? 'all',
    sort: SORTS.find((one) => one === query.get('sort')) ?? 'worst',
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
  }
}

interface ChosenTiles {
  readonly tiles: readonly ClusterTile[]
  readonly matching: number
  /** Clamped to the last page. */
  readonly page: number
  readonly pages: number
}

export function chooseTiles(all: readonly ClusterTile[], { search, show, sort, page }: TileChoice): ChosenTiles {
  const found = all.filter(
    (tile) =>
      (search === '' || tile.name.toLowerCase().includes(search)) &&
      (show === 'all' || (show === 'hurting' ? isHurting(tile) : tile.degrade !== null)),
  )
  found.sort((a, b) => ORDERS[sort](b) - ORDERS[sort](a) || (a.name < b.name ? -1 : 1))
  const pages = Math.max(1, Math.ceil(found.length / TILES_A_PAGE))
  const shown = Math.min(page, pages)
  const tiles = found.slice((shown - 1) * TILES_A_PAGE, shown * TILES_A_PAGE)
  return { tiles, matching: found.length, page: shown, pages }
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
