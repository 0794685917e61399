// What choosing victims reads from a cluster, for the gateway on a write, or for a command on behalf of its user.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'

/** The victims can't be chosen; the message is for people. */
export class UnavailableError extends Error {}

export interface ClusterReads {
  /** @returns undefined if it does not exist. @throws {UnavailableError} */
  get(path: string): Promise<JsonObject | undefined>
  /**
   * @param query the part after the question mark
   * @throws {UnavailableError} also if there are more than `most`
   */
  list(path: string, query: string, most: number): Promise<readonly JsonObject[]>
}

/** Concurrent calls of one scale-down. */
const AT_ONCE = 8

/** Runs `work` with bounded concurrency; after an error no more are started, and running ones are awaited. @throws the first error */
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
