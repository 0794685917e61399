// What it costs to count who asks most (portcullis top): at full load with one user, and with 5,000 users on connections of their own.

import { type Bench, type LoadOptions, type LoadSample, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'

const USERS = 5_000
const ONE: LoadOptions = { seconds: 2 }
const MANY: LoadOptions = {
  seconds: 4,
  connections: USERS,
  streams: 1,
  identity: 'tokens',
  tokens: 'top',
  warmUp: USERS,
}

/** No faster than tokens are reviewed. */
const REVIEWS: LoadOptions = { ...MANY, rate: 1_000, seconds: 8, warmUp: 0 }
const MANY_OF_ONE_ADDRESS = ['--max-connections-per-address=0']

export async function top(bench: Bench): Promise<void> {
  const upstream = await bench.upstream()
  const on = await bench.portcullis({ upstreamPort: upstream.port, flags: [...MANY_OF_ONE_ADDRESS, '--top=true'] })
  const off = await bench.portcullis({ upstreamPort: upstream.port, flags: [...MANY_OF_ONE_ADDRESS, '--top=false'] })
  for (const server of [on, off]) {
    await bench.warmUp(server, ['x509', 'token'])
    await bench.load(server, REVIEWS)
  }
  const samples = new Samples<LoadSample>()
  const name = (counted: Server, users: string): string =>
    `Portcullis, ${counted === on ? 'who asks most is counted' : 'not counted'}, ${users}`
  for (let round = 0; round < bench.rounds; round++) {
    // Whoever comes second finds another machine: they take turns in that, too.
    for (const server of round % 2 === 0 ? [on, off] : [off, on]) {
      samples.add(name(server, 'one user'), await bench.load(server, ONE))
      samples.add(name(server, `${USERS} users`), await bench.load(server, MANY))
    }
  }
  bench.report.table(
    'Counting who asks most; the proxy on one core, client and upstream on the other',
    ['', 'CPU us/request', 'requests/s', 'cores used'],
    samples.names.map((row) => [
      row,
      samples.median(row, cpuMicros).toFixed(2),
      samples.median(row, (sample) => sample.perSecond).toFixed(0),
      samples.median(row, (sample) => sample.cores).toFixed(2),
    ]),
  )
  bench.report.result('top.cpu', samples.ratio(name(on, 'one user'), name(off, 'one user'), cpuMicros))
  bench.report.result('top.users', samples.ratio(name(on, `${USERS} users`), name(off, `${USERS} users`), cpuMicros))
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
