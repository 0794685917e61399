// Thousands of clients that arrive, or come back, in the same second: each a client-go reflector with a TLS connection and a client
// certificate. What it takes until all are watching, against the CPU of the gateway for the same clients one after the other; and what
// a client feels that was there before.

import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Crowd,
  type CrowdStats,
  startCrowd,
  startStormUpstream,
} from '../../../test/harness/storms/storm-program.ts'
import { type Bench, type Gateway, Samples } from '../bench.ts'
import { HOST } from '../material.ts'
import { cpuSeconds, freePort, residentBytes } from '../processes.ts'

const CLIENTS = Number(process.env['STORM_CLIENTS'] ?? 5_000)
/** Enough to keep the gateway busy. */
const AT_ONCE = 16
const RATE = 500
const CONNECTIONS = 4
const USER_PATH = '/api/v1/namespaces/default/configmaps/small'
const IDLE_SECONDS = 2
const KIB = 1024
/** Behind the established user, whose latency is measured. */
const CROWD = ['taskset', '-c', '1', 'nice', '-n', '10']

interface Sample {
  /** Until the last one watches: from the command to start, or from when the gateway listens again. */
  readonly seconds: number
  /** CPU time of the gateway, until then. */
  readonly cpu: number
  readonly stats: CrowdStats
  readonly bytesEach: number
}

interface UserSample {
  readonly p99: number
  readonly idle: number
  readonly errors: number
}

const IN_TURNS = 'one after the other'
const ARRIVAL = 'all at once'
const RESTART = 'back after kill -9'

export async function storm(bench: Bench): Promise<void> {
  const samples = new Samples<Sample>()
  const users = new Samples<UserSample>()
  for (let round = 0; round < bench.rounds; round++) {
    const port = freePort()
    const files = { cert: bench.material.path('server.pem'), key: bench.material.path('server.key') }
    const upstream = await startStormUpstream({ port, ...files, launch: ['taskset', '-c', '1'] })
    await oneRound(bench, port, samples, users)
    await upstream.kill()
  }
  bench.report.table(
    `${CLIENTS} clients with a connection and a watch each; the gateway on one core`,
    ['', 's until all watch', 'CPU s of the gateway', 'KiB each', 'connections', 'handshakes', 'lists', 'watches'],
    samples.names.map((name) => [
      name,
      samples.median(name, ({ seconds }) => seconds).toFixed(2),
      samples.median(name, ({ cpu }) => cpu).toFixed(2),
      samples.median(name, ({ bytesEach }) => bytesEach / KIB).toFixed(0),
      ...(['dials', 'handshakes', 'lists', 'watches'] as const).map((what) =>
        samples.median(name, ({ stats }) => stats[what]).toFixed(0),
      ),
    ]),
  )
  bench.report.table(
    `${RATE} requests a second of another user beside ${CLIENTS} newcomers`,
    ['', 'p99 ms idle', 'p99 ms beside', 'failures'],
    [
      [
        ARRIVAL,
        users.median(ARRIVAL, ({ idle }) => idle).toFixed(2),
        users.median(ARRIVAL, ({ p99 }) => p99).toFixed(2),
        users.median(ARRIVAL, ({ errors }) => errors).toFixed(0),
      ],
    ],
  )
  const ratio = (name: string): number =>
    samples.median(name, ({ seconds }) => seconds) / samples.median(IN_TURNS, ({ cpu }) => cpu)
  bench.report.result('storm.arrival', ratio(ARRIVAL))
  bench.report.result('storm.restart', ratio(RESTART))
  bench.report.result(
    'storm.failures',
    users.median(ARRIVAL, ({ errors }) => errors),
  )
}

async function oneRound(
  bench: Bench,
  upstreamPort: number,
  samples: Samples<Sample>,
  users: Samples<UserSample>,
): Promise<void> {
  const start = (port: number): Promise<Gateway> => bench.portcullis({ upstreamPort, port })
  const port = freePort()
  let gateway = await start(port)
  let crowd = await crowdOf(bench, port)
  const inTurns = await measure(gateway, crowd, () => crowd.command(`start ${AT_ONCE}`))
  samples.add(IN_TURNS, inTurns)
  await crowd.kill()
  await gateway.stop()

  gateway = await start(port)
  crowd = await crowdOf(bench, port)
  const load = { rate: RATE, connections: CONNECTIONS, path: USER_PATH, tolerated: 1 } as const
  const idle = await bench.load(gateway, { ...load, seconds: IDLE_SECONDS })
  const arrival = measure(gateway, crowd, () => crowd.command('start'))
  const beside = await bench.load(gateway, { ...load, seconds: inTurns.cpu, warmUp: 0 })
  samples.add(ARRIVAL, await arrival)
  users.add(ARRIVAL, { p99: beside.p99, idle: idle.p99, errors: beside.errors })

  const markMs = performance.now()
  await crowd.command('mark')
  await gateway.stop()
  gateway = await start(port)
  const restart = await measure(gateway, crowd, () => crowd.command('stats'))
  samples.add(RESTART, { ...restart, seconds: restart.seconds - (gateway.listensSinceMs - markMs) / 1000 })
  await crowd.kill()
  await gateway.stop()
}

function crowdOf(bench: Bench, port: number): Promise<Crowd> {
  return startCrowd({
    servers: [`127.0.0.1:${port}`],
    host: HOST,
    ca: { cert: bench.material.path('ca.pem'), key: bench.material.path('ca.key') },
    clients: CLIENTS,
    launch: CROWD,
  })
}

async function measure(gateway: Gateway, crowd: Crowd, begin: () => Promise<CrowdStats>): Promise<Sample> {
  const cpu = cpuSeconds(gateway.pid)
  const bytes = residentBytes(gateway.pid)
  let stats = await begin()
  while (stats.watching < stats.clients) {
    await sleep(100)
    stats = await crowd.command('stats')
  }
  return {
    seconds: stats.backLast / 1000,
    cpu: cpuSeconds(gateway.pid) - cpu,
    stats,
    bytesEach: (residentBytes(gateway.pid) - bytes) / stats.clients,
  }
}
