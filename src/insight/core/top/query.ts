// Query parameters of `/api/v1/top`: defaults and validation.

import { DIMENSIONS, type Dimension, isDimension } from '../../../process/api/dimensions.ts'
import { isSort, SORTS, type Sort } from './measures.ts'
import { MINUTES, type Minutes } from './windows.ts'

export interface TopQuery {
  readonly by: Dimension
  readonly sort: Sort
  readonly minutes: Minutes
  readonly limit: number
  /** Restricts to one cluster; '' = all clusters. */
  readonly cluster: string
}

export const DEFAULT_QUERY: TopQuery = { by: 'user', sort: 'requests', minutes: 1, limit: 20, cluster: '' }
export const MAX_LIMIT = 1000

/** One line for the client that lists the valid values. */
interface QueryProblem {
  readonly problem: string
}

/** Absent parameters get their defaults; unknown ones are ignored. */
export function readTopQuery(get: (name: string) => string | null): TopQuery | QueryProblem {
  const by = get('by') ?? DEFAULT_QUERY.by
  if (!isDimension(by)) return { problem: `by=${by.slice(0, 100)}: it is one of ${DIMENSIONS.join(', ')}` }
  const sort = get('sort') ?? DEFAULT_QUERY.sort
  if (!isSort(sort)) return { problem: `sort=${sort.slice(0, 100)}: it is one of ${SORTS.join(', ')}` }
  const wanted = get('minutes') ?? String(DEFAULT_QUERY.minutes)
  const minutes = MINUTES.find((one) => String(one) === wanted)
  if (minutes === undefined) return { problem: `minutes=${wanted.slice(0, 100)}: it is one of ${MINUTES.join(', ')}` }
  const limitText = get('limit') ?? String(DEFAULT_QUERY.limit)
  const limit = /^\d{1,4}$/.test(limitText) ? Number(limitText) : 0
  if (limit < 1 || limit > MAX_LIMIT) {
    return { problem: `limit=${limitText.slice(0, 100)}: it is a number from 1 to ${MAX_LIMIT}` }
  }
  return { by, sort, minutes, limit, cluster: get('cluster') ?? '' }
}
