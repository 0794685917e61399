// Full load: CPU per request and requests per second of one thread, against HAProxy and, where it is installed, nghttpx,
// against the gateway that one gets off the shelf in Node, and with a token instead of a certificate.

import { type Bench, type Identity, type LoadSample, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'

/** node:http2 resets a few streams in a thousand when it has too little CPU. */
const SHELF_TOLERATED = 0.05
const NGHTTPX = 'nghttpx, x509'
const SHELF = 'http2-proxy, x509'

interface Case {
  readonly name: string
  readonly server: Server
  readonly identity: Identity
  readonly tolerated?: number
}

export async function cpu(bench: Bench): Promise<void> {
  const upstream = await bench.nghttpd()
  const cases: Case[] = [{ name: 'HAProxy, x509', server: await bench.haproxy(upstream.port), identity: 'x509' }]
  const nghttpx = await bench.nghttpx(upstream.port)
  if (nghttpx !== undefined) cases.push({ name: NGHTTPX, server: nghttpx, identity: 'x509' })
  const gateway = await bench.portcullis({ upstreamPort: upstream.port })
  await bench.warmUp(gateway, ['x509', 'token'])
  cases.push({ name: 'Portcullis, x509', server: gateway, identity: 'x509' })
  cases.push({ name: 'Portcullis, token', server: gateway, identity: 'token' })
  const shelf = await bench.nodeGateway()
  await bench.warmUp(shelf, ['x509', 'token'])
  cases.push({ name: SHELF, server: shelf, identity: 'x509', tolerated: SHELF_TOLERATED })
  cases.push({ name: 'http2-proxy, token', server: shelf, identity: 'token', tolerated: SHELF_TOLERATED })

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
  bench.report.result('cpu.nghttpx', samples.ratio('Portcullis, x509', NGHTTPX, cpuMicros))
  bench.report.result('cpu.node', samples.ratio('Portcullis, x509', SHELF, cpuMicros))
  bench.report.result('cpu.throughput', samples.ratio('Portcullis, x509', 'HAProxy, x509', perCore))
  bench.report.result('cpu.token', samples.ratio('Portcullis, token', 'Portcullis, x509', cpuMicros))
}
