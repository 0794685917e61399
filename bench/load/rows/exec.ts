// Upgraded connections: sessions of exec with a little each second, and one port-forward as fast as it goes, to a server that sends back
// what it gets. HAProxy joins two connections (`mode tcp`) with TLS on both sides and the client's certificate verified, and reads nothing.

import { type Bench, Samples } from '../bench.ts'
import { type Transfer, transfer } from './list.ts'

const SESSIONS = 1_000
const SECONDS = 10
const FORWARDED_BYTES = 1_000_000_000
const POD = '/api/v1/namespaces/default/pods/web-0'
/** All sessions come from one address and belong to one user. */
const FLAGS = ['--max-connections-per-address=0', '--max-unauthenticated-connections=0', '--max-watches=0']

const KINDS: readonly { readonly id: string; readonly name: string; readonly flags: readonly string[] }[] = [
  {
    id: 'exec.sessions',
    name: `${SESSIONS} sessions`,
    flags: [`-connections=${SESSIONS}`, `-seconds=${SECONDS}`, `-path=${POD}/exec?command=sh&stdin=true&stdout=true`],
  },
  {
    id: 'exec.forward',
    name: 'one port-forward',
    flags: ['-connections=1', `-upload=${FORWARDED_BYTES}`, `-path=${POD}/portforward`],
  },
]

export async function exec(bench: Bench): Promise<void> {
  const upstream = await bench.upstream(1, ['-kubernetes'])
  const servers = [
    await bench.haproxy(upstream.port, { splice: true }),
    await bench.portcullis({ upstreamPort: upstream.port, flags: FLAGS }),
  ]
  const measure = (server: (typeof servers)[number], flags: readonly string[]): Promise<Transfer> =>
    transfer(bench, server, 'exec', ['-method=POST', ...flags])
  // Requests are no warm-up for what happens after an upgrade.
  for (const server of servers) for (const { flags } of KINDS) await measure(server, flags)
  const samples = new Samples<Transfer>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const { name, flags } of KINDS) {
      for (const server of servers) samples.add(`${server.name}, ${name}`, await measure(server, flags))
    }
  }
  bench.report.table(
    `${SESSIONS} sessions of 1 KB a second each, and ${FORWARDED_BYTES / 1e9} GB through one; all of it comes back`,
    ['', 'CPU us/KB there and back', 'MB/s each way', 'cores used'],
    samples.names.map((name) => [
      name,
      samples.median(name, cpuMicrosPerKB).toFixed(2),
      (samples.median(name, (sample) => sample.bytesPerSecond) / 1e6).toFixed(1),
      samples.median(name, (sample) => sample.cores).toFixed(2),
    ]),
  )
  for (const { id, name } of KINDS) {
    bench.report.result(id, samples.ratio(`Portcullis, ${name}`, `HAProxy, ${name}`, cpuMicrosPerKB))
  }
}

const cpuMicrosPerKB = ({ cores, bytesPerSecond }: Transfer): number => (cores * 1e6) / (bytesPerSecond / 1000)
