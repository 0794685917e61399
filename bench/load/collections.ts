// Preloaded into every thread of a gateway that is measured (`--import`): a line of JSON in a file for each garbage collection of V8, as
// node:perf_hooks tells of them. Nothing of it is in the product.

import { appendFileSync } from 'node:fs'
import { constants, type NodeGCPerformanceDetail, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

/** Names the file. */
export const COLLECTIONS_FILE = 'PORTCULLIS_BENCH_COLLECTIONS'
/** Lines are written together: a write for each would be a pause of its own. */
export const WRITTEN_EVERY_MS = 500

export interface Collection {
  readonly thread: 'main' | 'worker'
  readonly generation: 'young' | 'old'
  readonly ms: number
  /** When it began, CLOCK_MONOTONIC. */
  readonly micros: number
}

/** As Node makes them; its types do not say so. */
type CollectionEntry = PerformanceEntry & { readonly detail: NodeGCPerformanceDetail }

const file = process.env[COLLECTIONS_FILE]
if (file !== undefined) {
  let lines = ''
  new PerformanceObserver((list) => {
    const nowMicros = Number(process.hrtime.bigint() / 1_000n)
    const nowMs = performance.now()
    for (const { startTime, duration, detail } of list.getEntries() as CollectionEntry[]) {
      const collection: Collection = {
        thread: isMainThread ? 'main' : 'worker',
        generation: detail.kind === constants.NODE_PERFORMANCE_GC_MINOR ? 'young' : 'old',
        ms: duration,
        micros: nowMicros - Math.round((nowMs - startTime) * 1000),
      }
      lines += `${JSON.stringify(collection)}\n`
    }
  }).observe({ entryTypes: ['gc'] })
  setInterval(() => {
    if (lines !== '') appendFileSync(file, lines)
    lines = ''
  }, WRITTEN_EVERY_MS).unref()
}
