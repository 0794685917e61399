// A fixed rate that no proxy here finds hard: latency, and what an answer costs when few come together.

import { type Bench, type LoadSample, Samples } from '../bench.ts'

const RATE = 2_000
const SECONDS = 5
const LOAD = { rate: RATE, connections: 8 }

export async function latency(bench: Bench): Promise<void> {
  const upstream = await bench.nghttpd()
  const gateway = await bench.portcullis({ upstreamPort: upstream.port })
  const nghttpx = await bench.nghttpx(upstream.port)
  const others = nghttpx === undefined ? [] : [nghttpx]
  const servers = [upstream, await bench.haproxy(upstream.port), ...others, gateway]
  await bench.warmUp(gateway)
  await bench.warmUp(gateway, ['x509'], LOAD)
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of servers) {
      samples.add(server.name, await bench.load(server, { ...LOAD, seconds: SECONDS }))
    }
  }
  bench.report.table(
    `${RATE} requests a second, GET of 1 KiB, 8 connections; the proxy on one core, client and upstream on the other`,
    ['', 'p50 ms', 'p99 ms', 'CPU us/request'],
    samples.names.map((name) => [
      name,
      samples.median(name, p50).toFixed(3),
      samples.median(name, p99).toFixed(3),
      samples.median(name, (sample) => sample.cpuMicros).toFixed(2),
    ]),
  )
  bench.report.result(
    'latency.cpu',
    samples.ratio('Portcullis', 'HAProxy', (sample) => sample.cpuMicros),
  )
  bench.report.result('latency.p50', samples.ratio('Portcullis', 'HAProxy', p50))
  bench.report.result('latency.p99', samples.ratio('Portcullis', 'HAProxy', p99))
}

const p50 = (sample: LoadSample): number => sample.p50
const p99 = (sample: LoadSample): number => sample.p99
