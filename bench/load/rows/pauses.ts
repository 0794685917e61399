// Full load for a minute, or as long as `--minutes` says: every garbage collection of V8 meanwhile, and how many of them stopped a thread for
// more than 5 ms.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { COLLECTIONS_FILE, type Collection, WRITTEN_EVERY_MS } from '../collections.ts'

const LONG_MS = 5
const PRELOADED = join(import.meta.dirname, '../collections.ts')

/** One gateway, however many rounds: a median of the worst would hide it. */
export async function pauses(bench: Bench, seconds: number): Promise<void> {
  const upstream = await bench.nghttpd()
  const file = bench.material.path('collections.jsonl')
  const gateway = await bench.portcullis({
    upstreamPort: upstream.port,
    nodeArgs: [`--import=${PRELOADED}`],
    env: { [COLLECTIONS_FILE]: file },
  })
  await bench.warmUp(gateway)
  const load = await bench.load(gateway, { seconds })
  await sleep(2 * WRITTEN_EVERY_MS)
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const collections = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Collection)
    .filter(({ micros }) => micros >= load.startMicros && micros <= load.endMicros)
  if (collections.length === 0) throw new Error(`no garbage collection in ${seconds} s: they are not seen`)
  bench.report.table(
    `${load.requests} requests in ${load.seconds.toFixed(0)} s at full load: V8's collections, by thread`,
    ['', 'how many', 'median ms', 'p99 ms', 'longest ms', `over ${LONG_MS} ms`, 'ms of each second'],
    [...groups(collections)].map(([name, ms]) => {
      const at = (part: number): string => (ms[Math.min(Math.floor(ms.length * part), ms.length - 1)] ?? 0).toFixed(2)
      const total = ms.reduce((sum, one) => sum + one, 0)
      return [name, ms.length, at(0.5), at(0.99), at(1), longOnes(ms), (total / load.seconds).toFixed(2)]
    }),
  )
  for (const generation of ['young', 'old'] as const) {
    const ms = collections.filter((one) => one.generation === generation).map((one) => one.ms)
    bench.report.result(`pauses.${generation}`, longOnes(ms))
  }
}

/** Sorted durations by thread and generation. */
function groups(collections: readonly Collection[]): Map<string, number[]> {
  const result = Map.groupBy(collections, ({ thread, generation }) => `${thread} thread, ${generation} generation`)
  return new Map([...result].sort().map(([name, all]) => [name, all.map(({ ms }) => ms).sort((a, b) => a - b)]))
}

function longOnes(ms: readonly number[]): number {
  return ms.filter((one) => one > LONG_MS).length
}
