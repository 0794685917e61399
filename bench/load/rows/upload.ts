// Large bodies from many clients at once, as fast as they go, and the proxy's memory meanwhile: `list` in the other direction.

import { type Bench, Samples } from '../bench.ts'
import { residentBytes } from '../processes.ts'
import { bothHAProxies, perCore, type Transfer, TUNED_HAPROXY, transfer } from './list.ts'

const BODY_BYTES = 100_000_000
const AT_ONCE = 20
const PATH = '/api/v1/namespaces/default/configmaps/large'
const FLAGS = ['-method=PUT', `-connections=${AT_ONCE}`, `-upload=${BODY_BYTES}`, `-path=${PATH}`]
const MIB = 1024 * 1024

export async function upload(bench: Bench): Promise<void> {
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
    for (const server of servers) samples.add(server.name, await transfer(bench, server, 'upload', FLAGS))
  }
  const growth = (name: string): number => (samples.median(name, highest) - (before.get(name) ?? 0)) / MIB
  bench.report.table(
    `${AT_ONCE} uploads of ${BODY_BYTES / 1e6} MB at once; the proxy on one core, client and upstream on the other`,
    ['', 'MB/s', 'growth of memory MiB', 'cores used', 'MB/s and core'],
    samples.names.map((name) => [
      name,
      (samples.median(name, (sample) => sample.bytesPerSecond) / 1e6).toFixed(0),
      growth(name).toFixed(1),
      samples.median(name, (sample) => sample.cores).toFixed(2),
      (samples.median(name, perCore) / 1e6).toFixed(0),
    ]),
  )
  const best = Math.max(samples.median('HAProxy', perCore), samples.median(TUNED_HAPROXY, perCore))
  bench.report.result('upload.throughput', samples.median('Portcullis', perCore) / best)
  bench.report.result('upload.memory', growth('Portcullis'))
}

const highest = (sample: Transfer): number => sample.highest
