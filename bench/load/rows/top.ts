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
  const ratio = await compare(bench, 'one user', ONE, [])
  bench.report.result('top.cpu', ratio)
}

/** Takes five minutes: each sample opens all connections again. */
export async function topUsers(bench: Bench): Promise<void> {
  const ratio = await compare(bench, `${USERS} users`, MANY, MANY_OF_ONE_ADDRESS)
  bench.report.result('top.users', ratio)
}

async function compare(bench: Bench, users: string, load: LoadOptions, flags: readonly string[]): Promise<number> {
  const upstream = await bench.upstream()
  // Processes of the same program differ by a few per cent, and by which was started first.
  const servers: { readonly server: Server; readonly counts: boolean }[] = []
  for (const counts of [true, false, false, true]) {
    const server = await bench.portcullis({ upstreamPort: upstream.port, flags: [...flags, `--top=${counts}`] })
    await bench.warmUp(server, ['x509', 'token'])
    if (load === MANY) await bench.load(server, REVIEWS)
    servers.push({ server, counts })
  }
  const samples = new Samples<LoadSample>()
  const name = (counts: boolean): string => `Portcullis, ${counts ? 'top talkers counted' : 'not counted'}, ${users}`
  for (let round = 0; round < bench.rounds; round++) {
    for (const { server, counts } of round % 2 === 0 ? servers : servers.toReversed())
      samples.add(name(counts), await bench.load(server, load))
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
  return samples.ratio(name(true), name(false), cpuMicros)
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros
