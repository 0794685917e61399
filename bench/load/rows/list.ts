// A list of 200 MB, as fast as it comes, and the proxy's memory meanwhile.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, Samples } from '../bench.ts'
import { cpuSeconds, residentBytes, type Server } from '../processes.ts'

const LIST_BYTES = 200_000_000
export const LIST_PATH: string = `/api/v1/pods?bytes=${LIST_BYTES}`
const SAMPLE_MS = 10
const MIB = 1024 * 1024

interface Sample {
  readonly bytesPerSecond: number
  /** Highest resident memory while it streams. */
  readonly highest: number
  readonly cores: number
}

export async function list(bench: Bench): Promise<void> {
  const upstream = await bench.upstream()
  const servers = [await bench.haproxy(upstream.port), await bench.portcullis({ upstreamPort: upstream.port })]
  const before = new Map<string, number>()
  for (const server of servers) {
    await bench.warmUp(server)
    before.set(server.name, residentBytes(server.pid))
  }
  const samples = new Samples<Sample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of servers) samples.add(server.name, await download(bench, server))
  }
  const growth = (name: string): number => (samples.median(name, highest) - (before.get(name) ?? 0)) / MIB
  bench.report.table(
    `A list of ${LIST_BYTES / 1e6} MB; the proxy on one core, client and upstream on the other`,
    ['', 'MB/s', 'growth of memory MiB', 'cores used'],
    samples.names.map((name) => [
      name,
      (samples.median(name, bytesPerSecond) / 1e6).toFixed(0),
      growth(name).toFixed(1),
      samples.median(name, (sample) => sample.cores).toFixed(2),
    ]),
  )
  bench.report.result('list.throughput', samples.ratio('Portcullis', 'HAProxy', bytesPerSecond))
  bench.report.result('list.memory', growth('Portcullis'))
}

const bytesPerSecond = (sample: Sample): number => sample.bytesPerSecond
const highest = (sample: Sample): number => sample.highest

async function download(bench: Bench, server: Server): Promise<Sample> {
  const client = bench.client(server, 'list', ['-connections=1', `-path=${LIST_PATH}`])
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
    if (bytes !== LIST_BYTES) throw new Error(`${bytes} bytes arrived`)
    const cores = (cpuSeconds(server.pid) - cpuBefore) / seconds
    return { bytesPerSecond: bytes / seconds, highest, cores }
  } catch (error) {
    throw new Error(`${server.name}: ${error instanceof Error ? error.message : error}`, { cause: error })
  } finally {
    await client.stop()
  }
}
