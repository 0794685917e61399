// The `cpu` row of two checkouts in one run: what a change has made of the price of a request. Numbers of two runs, or of two machines, cannot
// be compared; those of one run can, also on a machine that does something else meanwhile.

import { type Bench, type Gateway, type LoadOptions, type LoadSample, Samples } from '../bench.ts'

const THIS = 'this checkout'
const OTHER = 'the other checkout'
const HAPROXY = 'HAProxy'
/** Many short ones, of which the undisturbed count. */
const PIECE: LoadOptions = { seconds: 0.5 }
/** Whatever else a machine does makes requests dearer, never cheaper: the samples that are lower than three of four are the program's own. */
const QUANTILE = 0.25

export interface Compared {
  /** CPU per request of this checkout divided by that of the other. */
  readonly toOther: number
  /** CPU per request of this checkout divided by HAProxy's. */
  readonly toHAProxy: number
}

/** @param root the other checkout, with its dependencies installed */
export async function against(bench: Bench, root: string): Promise<Compared> {
  const upstream = await bench.nghttpd()
  const haproxy = await bench.haproxy(upstream.port, { name: HAPROXY })
  // Processes of the same program differ by a few per cent, and by which was started first.
  const gateways: Gateway[] = []
  for (const name of [THIS, OTHER, OTHER, THIS]) {
    const at = name === THIS ? bench.root : root
    const gateway = await bench.portcullis({ name, upstreamPort: upstream.port, root: at })
    await bench.warmUp(gateway)
    gateways.push(gateway)
  }
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    samples.add(HAPROXY, await bench.load(haproxy, PIECE))
    for (const gateway of round % 2 === 0 ? gateways : gateways.toReversed()) {
      samples.add(gateway.name, await bench.load(gateway, PIECE))
    }
  }
  bench.report.table(
    'Two checkouts at full load: GET of 1 KiB, 4 connections with 16 streams each',
    ['', 'CPU us/request', 'x HAProxy', 'cores used'],
    samples.names.map((name) => [
      name,
      samples.quantile(name, QUANTILE, cpuMicros).toFixed(2),
      ratio(samples, name, HAPROXY).toFixed(2),
      samples.median(name, (sample) => sample.cores).toFixed(2),
    ]),
  )
  return { toOther: ratio(samples, THIS, OTHER), toHAProxy: ratio(samples, THIS, HAPROXY) }
}

function ratio(samples: Samples<LoadSample>, name: string, to: string): number {
  return samples.quantile(name, QUANTILE, cpuMicros) / samples.quantile(to, QUANTILE, cpuMicros)
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
