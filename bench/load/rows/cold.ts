// Latency directly after a start: the first request that a process gets, and the first thousand, against a thousand at the same rate after
// it has been warmed up.

import { type Bench, type LoadOptions, type LoadSample, Samples } from '../bench.ts'

/** In each round. */
const PROCESSES = 2
/** A thousand requests. */
const LOAD: LoadOptions = { rate: 500, seconds: 2, connections: 4, warmUp: 0 }
const COLD = 'the first 1,000 after a start'
const WARM = '1,000 when warm'
/** Each process has one first request: with few processes this is the slowest of them. */
const P99 = 0.99

export async function cold(bench: Bench): Promise<void> {
  const upstream = await bench.nghttpd()
  const samples = new Samples<LoadSample>()
  for (let i = 0; i < bench.rounds * PROCESSES; i++) {
    const gateway = await bench.portcullis({ upstreamPort: upstream.port, untouched: true })
    samples.add(COLD, await bench.load(gateway, LOAD))
    await bench.warmUp(gateway)
    await bench.warmUp(gateway, ['x509'], LOAD)
    samples.add(WARM, await bench.load(gateway, LOAD))
    await gateway.stop()
  }
  const firstP99 = samples.quantile(COLD, P99, first)
  bench.report.table(
    `${LOAD.rate} requests a second, ${bench.rounds * PROCESSES} processes; the proxy on one core, client and upstream on the other`,
    ['', 'first request, median ms', 'first request, p99 ms', 'p50 ms', 'p99 ms', 'CPU us/request'],
    samples.names.map((name) => [
      name,
      ...(name === COLD ? [samples.median(name, first).toFixed(3), firstP99.toFixed(3)] : ['', '']),
      samples.median(name, (sample) => sample.p50).toFixed(3),
      samples.median(name, p99).toFixed(3),
      samples.median(name, (sample) => sample.cpuMicros).toFixed(2),
    ]),
  )
  bench.report.result('cold.first', firstP99 / samples.median(WARM, p99))
  bench.report.result('cold.thousand', samples.ratio(COLD, WARM, p99))
}

const first = (sample: LoadSample): number => sample.first
const p99 = (sample: LoadSample): number => sample.p99
