// Query parameters of `/api/v1/top`: defaults and validation.

import { type ClusterChoice, readChoice } from '../../../gateway/core/choice/choose-clusters.ts'
import { isGlob } from '../../../gateway/core/choice/glob.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { DIMENSIONS, type Dimension, isDimension } from '../../../process/api/dimensions.ts'
import { isSort, SORTS, type Sort } from './measures.ts'
import { MINUTES, type Minutes } from './windows.ts'

export interface TopQuery {
  readonly by: Dimension
  readonly sort: Sort
  readonly minutes: Minutes
  readonly limit: number
  /** Restricts to one cluster, whether or not there is one of this name; '' = all clusters, or those of the choice. */
  readonly cluster: string
  /** Restricts to several, or to those that a glob or a label selector matches; undefined = it does not. */
  readonly choice: ClusterChoice | undefined
}

export const DEFAULT_QUERY: TopQuery = {
  by: 'user',
  sort: 'requests',
  minutes: 1,
  limit: 20,
  cluster: '',
  choice: undefined,
}
export const MAX_LIMIT = 1000
/** Names and globs. */
export const MAX_CHOSEN = 32

/** One line for the client that lists the valid values. */
interface QueryProblem {
  readonly problem: string
}

/** Absent parameters get their defaults; unknown ones are ignored. */
export function readTopQuery(query: Pick<URLSearchParams, 'get' | 'getAll'>): TopQuery | QueryProblem {
  const get = (name: string): string | null => query.get(name)
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
  const clusters = readClusters(query)
  return 'problem' in clusters ? clusters : { by, sort, minutes, limit, ...clusters }
}

/** The clusters that `cluster`, which may be repeated, and `selector` stand for. */
export function readClusters(
  query: Pick<URLSearchParams, 'get' | 'getAll'>,
): Pick<TopQuery, 'cluster' | 'choice'> | QueryProblem {
  const names = query.getAll('cluster').filter((name) => name !== '')
  const selector = query.get('selector') ?? undefined
  const [cluster = '', ...others] = names
  if (selector === undefined && others.length === 0 && !isGlob(cluster)) return { cluster, choice: undefined }
  if (names.length > MAX_CHOSEN) return { problem: `cluster: more than ${MAX_CHOSEN} names and globs` }
  const choice = { names, selector, all: false, except: [] }
  try {
    readChoice(choice)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return { problem: `cluster: ${error.message}` }
  }
  return { cluster: '', choice }
}
