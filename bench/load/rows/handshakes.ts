// New connections with a client certificate. The client signs, too, and is the slower one: what counts is the proxy's CPU.

import { type Bench, Samples } from '../bench.ts'
import type { Keys } from '../material.ts'
import { cpuSeconds, type Server } from '../processes.ts'

const SECONDS = 3
const WORKERS = 8

interface Sample {
  readonly perSecond: number
  readonly perCpuSecond: number
  readonly cores: number
}

const KEYS: readonly { readonly id: string; readonly keys: Keys; readonly name: string }[] = [
  { id: 'handshakes', keys: 'rsa', name: 'RSA 2048' },
  { id: 'handshakes.p256', keys: 'p256', name: 'P-256' },
]

export async function handshakes(bench: Bench): Promise<void> {
  const upstream = await bench.nghttpd()
  for (const { id, keys, name } of KEYS) {
    const servers = [
      await bench.haproxy(upstream.port, { keys }),
      await bench.portcullis({ upstreamPort: upstream.port, keys }),
    ]
    for (const server of servers) await measure(bench, server, keys)
    const samples = new Samples<Sample>()
    for (let round = 0; round < bench.rounds; round++) {
      for (const server of servers) samples.add(server.name, await measure(bench, server, keys))
    }
    bench.report.table(
      `New connections: TLS 1.3, X25519, ${name} on both sides, no resumption, SETTINGS exchanged`,
      ['', 'per second and core', 'per second', 'cores used'],
      samples.names.map((server) => [
        server,
        samples.median(server, perCpuSecond).toFixed(0),
        samples.median(server, (sample) => sample.perSecond).toFixed(0),
        samples.median(server, (sample) => sample.cores).toFixed(2),
      ]),
    )
    for (const server of servers) await server.stop()
    bench.report.result(id, samples.ratio('Portcullis', 'HAProxy', perCpuSecond))
  }
}

const perCpuSecond = (sample: Sample): number => sample.perCpuSecond

async function measure(bench: Bench, server: Server, keys: Keys): Promise<Sample> {
  const flags = [`-workers=${WORKERS}`, `-seconds=${SECONDS}`]
  const client = bench.client(server, 'handshakes', flags, { keys })
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
