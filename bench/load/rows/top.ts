// What it costs to count top talkers (portcullis top): at full load with one user, and with 5,000 users on connections of their own.

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
/** By default 4,000 connections may be without a credential, as all are before the first request, and 4,096 requests in flight. */
const MANY_OF_ONE_ADDRESS = [
  '--max-connections-per-address=0',
  '--max-unauthenticated-connections=0',
  '--max-requests-inflight=0',
]

export async function top(bench: Bench): Promise<void> {
  const upstream = await bench.upstream()
  // Processes of the same program differ by a few per cent, and by which was started first.
  const servers: { readonly server: Server; readonly counts: boolean }[] = []
  for (const counts of [true, false, false, true]) {
    const flags = [...MANY_OF_ONE_ADDRESS, `--top=${counts}`]
    const server = await bench.portcullis({ upstreamPort: upstream.port, flags })
    await bench.warmUp(server, ['x509', 'token'])
    await bench.load(server, REVIEWS)
    servers.push({ server, counts })
  }
  const samples = new Samples<LoadSample>()
  const name = (counts: boolean, users: string): string =>
    `Portcullis, ${counts ? 'top talkers counted' : 'not counted'}, ${users}`
  for (let round = 0; round < bench.rounds; round++) {
    for (const { server, counts } of round % 2 === 0 ? servers : servers.toReversed()) {
      samples.add(name(counts, 'one user'), await bench.load(server, ONE))
      samples.add(name(counts, `${USERS} users`), await bench.load(server, MANY))
    }
  }
  bench.report.table(
    'Counting top talkers; the proxy on one core, client and upstream on the other',
    ['', 'CPU us/request', 'requests/s', 'cores used'],
    samples.names.map((row) => [
      row,
      samples.median(row, cpuMicros).toFixed(2),
      samples.median(row, (sample) => sample.perSecond).toFixed(0),
      samples.median(row, (sample) => sample.cores).toFixed(2),
    ]),
  )
  bench.report.result('top.cpu', samples.ratio(name(true, 'one user'), name(false, 'one user'), cpuMicros))
  const [many, none] = [name(true, `${USERS} users`), name(false, `${USERS} users`)]
  bench.report.result('top.users', samples.ratio(many, none, cpuMicros))
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
