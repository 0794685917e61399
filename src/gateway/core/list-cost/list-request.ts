// A list, or a watch that begins with one: what it requests, and its estimated cost.

import { isInt64 } from '../../../kit/core/text/int64.ts'
import type { ListRequest, ListSize } from '../../api/list-request.ts'
import { isTrue, readListQuery } from '../request/list-options.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { ASSUMED_ITEM_BYTES, type ListSizes } from './list-sizes.ts'
import { seatsOf } from './seats.ts'
import { type SelectorShape, selectorShape } from './selector-shape.ts'

/** A larger limit does not count as paging: most lists are shorter. */
const MAX_PAGE = 5_000

/**
 * undefined = it costs as much as any other request: not a list, or a list of one object by name, or a watch that begins without one
 * (list_work_estimator.go: with initial events, or without a version or from 0, it costs as much as a list).
 */
export function listRequestOf(info: RequestInfo, target: string, sizes: ListSizes): ListRequest | undefined {
  const { verb, name, isResourceRequest, subresource } = info
  if ((verb !== 'list' && verb !== 'watch') || !isResourceRequest || name !== '' || subresource !== '') return undefined
  const isWatch = verb === 'watch'
  const queryAt = target.indexOf('?')
  const query = queryAt < 0 ? NO_OPTIONS : readListQuery(target.slice(queryAt + 1))
  const { resourceVersion = '' } = query
  if (isWatch && resourceVersion !== '' && resourceVersion !== '0' && !isTrue(query.sendInitialEvents)) return undefined
  return new AskedList(info, isWatch, limitOf(query.limit), query.continued, resourceVersion === '0', sizes)
}

class AskedList implements ListRequest {
  readonly isWatch: boolean
  readonly limit: number
  readonly continued: boolean
  readonly anyVersion: boolean
  readonly size: ListSize | undefined
  readonly bytes: number
  readonly seats: number
  charged = false
  outcome: ListRequest['outcome'] = ''
  answer: ListRequest['answer'] = undefined
  readonly #info: RequestInfo
  #shape: SelectorShape | undefined = undefined

  constructor(
    info: RequestInfo,
    isWatch: boolean,
    limit: number,
    continued: boolean,
    anyVersion: boolean,
    sizes: ListSizes,
  ) {
    this.#info = info
    this.isWatch = isWatch
    this.limit = limit
    this.continued = continued
    this.anyVersion = anyVersion
    const size = sizes.find(info, this)
    this.size = size
    this.bytes = size === undefined ? 0 : expectedBytes(size, isWatch || anyVersion ? 0 : limit)
    this.seats = seatsOf(this.bytes)
  }

  get shape(): SelectorShape {
    this.#shape ??= selectorShape(this.#info.fieldSelector, this.#info.labelSelector)
    return this.#shape
  }
}

/** Whether the whole collection will be returned at once: without a page limit, and not from the current cache. */
export function isUnlimited({ isWatch, limit, anyVersion }: ListRequest): boolean {
  return !isWatch && !anyVersion && (limit === 0 || limit > MAX_PAGE)
}

const NO_OPTIONS = readListQuery('')

/** 0 also for what is not a number: kube-apiserver refuses or ignores it. */
function limitOf(text: string | undefined): number {
  if (text === undefined || !isInt64(text)) return 0
  return Math.max(0, Number(text))
}

function expectedBytes({ bytes, items, itemBytes }: ListSize, limit: number): number {
  if (limit === 0 || (items > 0 && limit >= items)) return bytes
  const each = itemBytes > 0 ? itemBytes : items > 0 ? bytes / items : ASSUMED_ITEM_BYTES
  return Math.min(bytes, Math.round(limit * each))
}
