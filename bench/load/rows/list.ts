// A list of 200 MB, as fast as it comes, and the proxy's memory meanwhile. HAProxy as it comes and with buffers and windows
// for large answers; the better one is what Portcullis is measured against.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, Samples } from '../bench.ts'
import { cpuSeconds, residentBytes, type Server } from '../processes.ts'

const LIST_BYTES = 200_000_000
export const LIST_PATH: string = `/api/v1/pods?bytes=${LIST_BYTES}`
const SAMPLE_MS = 10
const MIB = 1024 * 1024

/** What went through a server, and what it took. */
export interface Transfer {
  readonly bytes: number
  readonly bytesPerSecond: number
  /** Highest resident memory while it streams. */
  readonly highest: number
  readonly cores: number
}

export async function list(bench: Bench): Promise<void> {
  const upstream = await bench.upstream()
  const servers = [
    ...(await bothHAProxies(bench, upstream.port)),
    await bench.portcullis({ upstreamPort: upstream.port }),
  ]
  const before = new Map<string, number>()
  for (const server of servers) {
    await bench.warmUp(server)
    before.set(server.name, residentBytes(server.pid))
  }
  const samples = new Samples<Transfer>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of servers) samples.add(server.name, await download(bench, server))
  }
  const growth = (name: string): number => (samples.median(name, highest) - (before.get(name) ?? 0)) / MIB
  bench.report.table(
    `A list of ${LIST_BYTES / 1e6} MB; the proxy on one core, client and upstream on the other`,
    ['', 'MB/s', 'growth of memory MiB', 'cores used', 'MB/s and core'],
    samples.names.map((name) => [
      name,
      (samples.median(name, bytesPerSecond) / 1e6).toFixed(0),
      growth(name).toFixed(1),
      samples.median(name, (sample) => sample.cores).toFixed(2),
      (samples.median(name, perCore) / 1e6).toFixed(0),
    ]),
  )
  const best = Math.max(samples.median('HAProxy', perCore), samples.median(TUNED_HAPROXY, perCore))
  bench.report.result('list.throughput', samples.median('Portcullis', perCore) / best)
  bench.report.result('list.memory', growth('Portcullis'))
}

/** HAProxy twice: with its defaults, and with buffers and windows for large answers. */
export async function bothHAProxies(bench: Bench, upstreamPort: number): Promise<Server[]> {
  return [await bench.haproxy(upstreamPort), await bench.haproxy(upstreamPort, { tuned: true, name: TUNED_HAPROXY })]
}

export const TUNED_HAPROXY = 'HAProxy, tuned for lists'

const bytesPerSecond = (sample: Transfer): number => sample.bytesPerSecond
// A proxy that the client cannot keep busy is not slower for that.
export const perCore = (sample: Transfer): number => sample.bytesPerSecond / Math.min(sample.cores, 1)
const highest = (sample: Transfer): number => sample.highest

async function download(bench: Bench, server: Server): Promise<Transfer> {
  const transferred = await transfer(bench, server, 'list', ['-connections=1', `-path=${LIST_PATH}`])
  if (transferred.bytes !== LIST_BYTES) throw new Error(`${transferred.bytes} bytes arrived`)
  return transferred
}

/** @param mode of the load client, which says how many bytes went through in how many seconds */
export async function transfer(
  bench: Bench,
  server: Server,
  mode: string,
  flags: readonly string[],
): Promise<Transfer> {
  const client = bench.client(server, mode, flags)
  try {
    await client.next()
    const cpuBefore = cpuSeconds(server.pid)
    let highest = 0
    let done = false
    client.go()
    const line = client.next<{ bytes: number; seconds: number }>().finally(() => {
      done = true
    })
    while (!done) {
      highest = Math.max(highest, residentBytes(server.pid))
      await sleep(SAMPLE_MS)
    }
    const { bytes, seconds } = await line
    const cores = (cpuSeconds(server.pid) - cpuBefore) / seconds
    return { bytes, bytesPerSecond: bytes / seconds, highest, cores }
  } catch (error) {
    throw new Error(`${server.name}: ${error instanceof Error ? error.message : error}`, { cause: error })
  } finally {
    await client.stop()
  }
}
