// HTTP/1.1 on one side: first between client and proxy, then between proxy and upstream, each against HAProxy in the same place.

import { type Bench, type LoadOptions, type LoadSample, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'

const SECONDS = 2

interface Side {
  readonly id: string
  readonly name: string
  readonly load: LoadOptions
  readonly servers: readonly Server[]
}

export async function http1(bench: Bench): Promise<void> {
  const http2 = await bench.nghttpd()
  const older = await bench.upstream(1, ['-http1'])
  const sides: Side[] = [
    {
      id: 'http1.clients',
      name: 'HTTP/1.1 clients',
      // As many requests at once as four connections with 16 streams have.
      load: { http1: true, connections: 64, seconds: SECONDS },
      servers: [await bench.haproxy(http2.port), await bench.portcullis({ upstreamPort: http2.port })],
    },
    {
      id: 'http1.upstream',
      name: 'an HTTP/1.1 upstream',
      load: { seconds: SECONDS },
      servers: [
        await bench.haproxy(older.port, { upstreamProtocol: 'http/1.1' }),
        await bench.portcullis({ upstreamPort: older.port }),
      ],
    },
  ]
  for (const { load, servers } of sides) for (const server of servers) await bench.warmUp(server, ['x509'], load)
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const { name, load, servers } of sides) {
      for (const server of servers) samples.add(`${server.name}, ${name}`, await bench.load(server, load))
    }
  }
  bench.report.table(
    'Full load with HTTP/1.1 on one side, 64 requests at once; the proxy on one core, client and upstream on the other',
    ['', 'CPU us/request', 'requests/s', 'cores used', 'requests/s and core'],
    samples.names.map((name) => [
      name,
      samples.median(name, cpuMicros).toFixed(2),
      samples.median(name, (sample) => sample.perSecond).toFixed(0),
      samples.median(name, (sample) => sample.cores).toFixed(2),
      samples.median(name, (sample) => sample.perSecond / Math.min(sample.cores, 1)).toFixed(0),
    ]),
  )
  for (const { id, name } of sides) {
    bench.report.result(id, samples.ratio(`Portcullis, ${name}`, `HAProxy, ${name}`, cpuMicros))
  }
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
