// Calls of a command to an API server, some at a time.

/** Enough to keep an API server busy, and few for its limits on a user (API Priority and Fairness). */
const AT_ONCE = 16

/** Calls `action` with each item, in order, a bounded number at a time. After one has failed none is begun; those under way are waited for. */
export async function inParallel<T>(items: readonly T[], action: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  let failed = false
  const run = async (): Promise<void> => {
    for (const item of left) {
      if (failed) return
      try {
        await action(item)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const outcomes = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, items.length) }, run))
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}
