// Full load: CPU per request and requests per second of one thread, against HAProxy, against the same gateway on
// node:http2, and with a token instead of a certificate.

import { baseline } from '../baseline.ts'
import { type Bench, type Identity, type LoadSample, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'

/** node:http2 resets a few streams in a thousand when it has too little CPU. */
const BASELINE_TOLERATED = 0.05
const BASELINE = 'Portcullis on node:http2, x509'

interface Case {
  readonly name: string
  readonly server: Server
  readonly identity: Identity
  readonly tolerated?: number
}

export async function cpu(bench: Bench): Promise<void> {
  const upstream = await bench.nghttpd()
  const cases: Case[] = [{ name: 'HAProxy, x509', server: await bench.haproxy(upstream.port), identity: 'x509' }]
  const gateway = await bench.portcullis({ upstreamPort: upstream.port })
  await bench.warmUp(gateway, ['x509', 'token'])
  cases.push({ name: 'Portcullis, x509', server: gateway, identity: 'x509' })
  cases.push({ name: 'Portcullis, token', server: gateway, identity: 'token' })
  const old = await startBaseline(bench, upstream.port)
  if (old !== undefined) cases.push({ name: BASELINE, server: old, identity: 'x509', tolerated: BASELINE_TOLERATED })

  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const one of cases) samples.add(one.name, await bench.load(one.server, one))
  }
  // A proxy that the client cannot keep busy is not slower for that.
  const perCore = (sample: LoadSample): number => sample.perSecond / Math.min(sample.cores, 1)
  const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
  bench.report.table(
    'Full load: GET of 1 KiB, 4 connections with 16 streams each, the proxy on one core, client and upstream on the other',
    ['', 'CPU us/request', 'requests/s', 'cores used', 'requests/s and core'],
    samples.names.map((name) => [
      name,
      samples.median(name, cpuMicros).toFixed(2),
      samples.median(name, (sample) => sample.perSecond).toFixed(0),
      samples.median(name, (sample) => sample.cores).toFixed(2),
      samples.median(name, perCore).toFixed(0),
    ]),
  )
  bench.report.result('cpu.haproxy', samples.ratio('Portcullis, x509', 'HAProxy, x509', cpuMicros))
  bench.report.result('cpu.node', samples.ratio('Portcullis, x509', BASELINE, cpuMicros))
  bench.report.result('cpu.throughput', samples.ratio('Portcullis, x509', 'HAProxy, x509', perCore))
  bench.report.result('cpu.token', samples.ratio('Portcullis, token', 'Portcullis, x509', cpuMicros))
}

/** undefined, with a note, where the history or a dependency of that time is missing. */
async function startBaseline(bench: Bench, upstreamPort: number): Promise<Server | undefined> {
  try {
    const root = baseline(bench.material.path('baseline'))
    const server = await bench.portcullis({ upstreamPort, root, name: BASELINE })
    await bench.warmUp(server, ['x509'])
    return server
  } catch (error) {
    const reason = error instanceof Error ? (error.message.trim().split('\n')[0] ?? '') : String(error)
    bench.report.note(`The comparison with node:http2 is left out: ${reason}`)
    return undefined
  }
}
