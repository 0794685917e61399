// What choosing victims reads of a cluster, whoever reads it: the gateway for a write, or a command for the person who asks.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'

/** The victims cannot be chosen; why, for people. */
export class UnavailableError extends Error {}

export interface ClusterReads {
  /** @returns undefined when there is none. @throws {UnavailableError} */
  get(path: string): Promise<JsonObject | undefined>
  /**
   * @param query behind the question mark
   * @throws {UnavailableError} also when there are more than `most`
   */
  list(path: string, query: string, most: number): Promise<readonly JsonObject[]>
}

/** Calls of one scale-down at a time. */
const AT_ONCE = 8

/** Some at a time; after an error no more are begun, and those that run are waited for. @throws the first error */
export async function forEachAtOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) {
      await work(item).catch((error: unknown) => {
        next = items.length
        throw error
      })
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker))
  const failed = ended.find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
