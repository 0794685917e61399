// New connections with a client certificate. The client signs, too, and is the slower one: what counts is the proxy's CPU.

import { type Bench, Samples } from '../bench.ts'
import { cpuSeconds, type Server } from '../processes.ts'

const SECONDS = 3
const WORKERS = 8

interface Sample {
  readonly perSecond: number
  readonly perCpuSecond: number
  readonly cores: number
}

export async function handshakes(bench: Bench): Promise<void> {
  const upstream = await bench.nghttpd()
  const servers = [await bench.haproxy(upstream.port), await bench.portcullis({ upstreamPort: upstream.port })]
  for (const server of servers) await measure(bench, server)
  const samples = new Samples<Sample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of servers) samples.add(server.name, await measure(bench, server))
  }
  bench.report.table(
    'New connections: TLS 1.3, X25519, RSA 2048 on both sides, no resumption, SETTINGS exchanged',
    ['', 'per second and core', 'per second', 'cores used'],
    samples.names.map((name) => [
      name,
      samples.median(name, perCpuSecond).toFixed(0),
      samples.median(name, (sample) => sample.perSecond).toFixed(0),
      samples.median(name, (sample) => sample.cores).toFixed(2),
    ]),
  )
  bench.report.result('handshakes', samples.ratio('Portcullis', 'HAProxy', perCpuSecond))
}

const perCpuSecond = (sample: Sample): number => sample.perCpuSecond

async function measure(bench: Bench, server: Server): Promise<Sample> {
  const client = bench.client(server, 'handshakes', [`-workers=${WORKERS}`, `-seconds=${SECONDS}`])
  try {
    await client.next()
    const before = cpuSeconds(server.pid)
    client.go()
    const line = await client.next<{ handshakes: number; seconds: number }>()
    const used = cpuSeconds(server.pid) - before
    return {
      perSecond: line.handshakes / line.seconds,
      perCpuSecond: line.handshakes / used,
      cores: used / line.seconds,
    }
  } finally {
    await client.stop()
  }
}
