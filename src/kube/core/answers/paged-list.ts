// Lists a collection of an API server page by page. A page that is too large, or finds no room, is requested again with half as many
// objects, down to one, and the pages of this list do not grow again.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { listOf, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { type AnswerLimits, OBJECT, PAGE } from './answer-limits.ts'
import { AnswerTooLargeError, NoRoomError } from './call-errors.ts'

/** Objects per page: 200 pods with two containers are 1.4 MiB. */
const PAGE_SIZE = 200

/**
 * @param limit query parameter `limit`
 * @param next query parameter `continue`; '' = the first page
 * @throws {AnswerTooLargeError} if it is larger than `limits`
 */
export type ReadPage<P> = (limit: number, next: string, limits: AnswerLimits) => Promise<P>

/** The parts of a page that are needed. */
export interface PageEnd {
  /** '' = the last page. */
  readonly next: string
  readonly objects: number
}

/**
 * Pages of at most `most` objects in total, and at most as many pages, whatever the server says about the rest.
 * @throws whatever `read` throws; {AnswerTooLargeError} if a single object is too large
 */
export async function* listPages<P>(
  read: ReadPage<P>,
  most: number,
  endOf: (page: P) => PageEnd,
): AsyncGenerator<P, void> {
  let size = PAGE_SIZE
  let next = ''
  let left = most
  while (left > 0) {
    const limit = Math.min(size, left)
    const page = await pageOf(read, limit, next)
    if (page === undefined) {
      size = Math.floor(limit / 2)
      continue
    }
    yield page
    const end = endOf(page)
    next = end.next
    if (next === '') return
    // A page without objects counts as one: a server could send such pages forever.
    left -= Math.max(1, end.objects)
  }
}

/** undefined = a page of fewer objects may be small enough. */
async function pageOf<P>(read: ReadPage<P>, limit: number, next: string): Promise<P | undefined> {
  try {
    return await read(limit, next, limit === 1 ? OBJECT : PAGE)
  } catch (error) {
    if (limit > 1 && isTooMuch(error)) return undefined
    throw error
  }
}

function isTooMuch(error: unknown): boolean {
  return error instanceof AnswerTooLargeError || (error instanceof NoRoomError && error.belowShare)
}

/** Items may be of any type. */
export function itemsOf({ items }: JsonObject): readonly unknown[] {
  return listOf(items)
}

/** The end of a page that was parsed. */
export function endOf(page: JsonObject): PageEnd {
  return { next: textOf(recordOf(page['metadata'])['continue']), objects: itemsOf(page).length }
}
