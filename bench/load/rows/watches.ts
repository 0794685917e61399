// Idle watches: what each costs the process, everything included.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, Samples } from '../bench.ts'
import { residentBytes, type Server } from '../processes.ts'

const WATCHES = 50_000
const STREAMS = 100
export const WATCH_PATH = '/api/v1/pods?watch=1'
/** Apiservers, as many would need them: a gateway opens a limited number of connections to each. */
export const WATCH_ENDPOINTS = 10
/** Memory is read when it has not changed for this long. */
const QUIET_SECONDS = 3
const QUIET_AT_MOST_SECONDS = 20
const KIB = 1024

/** Watches or connections that are open and quiet. */
export interface Opened {
  readonly open: number
  readonly bytesEach: number
  readonly openSeconds: number
}

export async function watches(bench: Bench): Promise<void> {
  const flags = [`-connections=${WATCHES / STREAMS}`, `-streams=${STREAMS}`, `-path=${WATCH_PATH}`]
  const samples = new Samples<Opened>()
  for (let round = 0; round < bench.rounds; round++) {
    // A fresh process each time: memory that was freed does not go back to the system.
    for (const start of [haproxy, portcullis]) {
      const upstream = await bench.upstream(WATCH_ENDPOINTS)
      const server = await start(bench, upstream.port)
      samples.add(server.name, await memoryOf(bench, server, 'watch', flags))
      await server.stop()
      await upstream.stop()
    }
  }
  bench.report.table(
    `${WATCHES} idle watches, ${STREAMS} on each connection`,
    ['', 'KiB each', 'seconds until all are open'],
    samples.names.map((name) => [
      name,
      (samples.median(name, (sample) => sample.bytesEach) / KIB).toFixed(1),
      samples.median(name, (sample) => sample.openSeconds).toFixed(1),
    ]),
  )
  bench.report.result(
    'watches.open',
    samples.median('Portcullis', (sample) => sample.open),
  )
  bench.report.result('watches.memory', samples.median('Portcullis', (sample) => sample.bytesEach) / KIB)
}

const haproxy = (bench: Bench, upstreamPort: number): Promise<Server> =>
  bench.haproxy(upstreamPort, { endpoints: WATCH_ENDPOINTS })
const portcullis = (bench: Bench, upstreamPort: number): Promise<Server> =>
  bench.portcullis({ upstreamPort, endpoints: WATCH_ENDPOINTS })

/** @param mode of the load client, which says how many it has opened and keeps them open */
export async function memoryOf(bench: Bench, server: Server, mode: string, flags: readonly string[]): Promise<Opened> {
  const before = await quietBytes(server.pid)
  const start = performance.now()
  const client = bench.client(server, mode, flags)
  try {
    const { open } = await client.next<{ open: number }>()
    const openSeconds = (performance.now() - start) / 1000
    return { open, openSeconds, bytesEach: ((await quietBytes(server.pid)) - before) / open }
  } catch (error) {
    throw new Error(`${server.name}: ${error instanceof Error ? error.message : error}`, { cause: error })
  } finally {
    await client.stop()
  }
}

/** Resident memory when it has been quiet. */
export async function quietBytes(pid: number): Promise<number> {
  let bytes = residentBytes(pid)
  for (let second = 0, quiet = 0; second < QUIET_AT_MOST_SECONDS && quiet < QUIET_SECONDS; second++) {
    await sleep(1000)
    const next = residentBytes(pid)
    quiet = Math.abs(next - bytes) < bytes / 100 ? quiet + 1 : 0
    bytes = next
  }
  return bytes
}
