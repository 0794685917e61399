// What a request costs when there is more configuration: policies before the one that matches, clusters that others use.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, type LoadSample, Samples } from '../bench.ts'
import type { ClusterOptions } from '../material.ts'
import { cpuSeconds, type Server } from '../processes.ts'

const FEW_POLICIES = 10
/** The most that an UpstreamCluster may have. */
const MANY_POLICIES = 512
const MANY_CLUSTERS = 5_000
const SECONDS = 2
const QUIET_SAMPLE_SECONDS = 2
const QUIET_CORES = 0.05
const QUIET_AT_MOST_SECONDS = 120

export function policies(bench: Bench): Promise<void> {
  return compare(bench, 'policies', { policies: FEW_POLICIES }, { policies: MANY_POLICIES }, 'policies', [
    FEW_POLICIES,
    MANY_POLICIES,
  ])
}

export function clusters(bench: Bench): Promise<void> {
  const many = { otherClusters: MANY_CLUSTERS - 1 }
  return compare(bench, 'clusters', {}, many, 'UpstreamClusters', [1, MANY_CLUSTERS])
}

type Options = Omit<ClusterOptions, 'upstreamPort'>

async function compare(
  bench: Bench,
  id: string,
  few: Options,
  many: Options,
  noun: string,
  counts: readonly [number, number],
): Promise<void> {
  const upstream = await bench.nghttpd()
  const servers: Server[] = []
  const startSeconds: number[] = []
  for (const [i, options] of [few, many].entries()) {
    const start = performance.now()
    servers.push(await bench.portcullis({ upstreamPort: upstream.port, name: `${counts[i]} ${noun}`, ...options }))
    startSeconds.push((performance.now() - start) / 1000)
  }
  for (const server of servers) await quiet(bench, server)
  for (const server of servers) await bench.warmUp(server)
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of servers) samples.add(server.name, await bench.load(server, { seconds: SECONDS }))
  }
  bench.report.table(
    `Full load, ${noun}; the proxy on one core, client and upstream on the other`,
    ['', 'CPU us/request', 'requests/s', 'seconds until it serves'],
    samples.names.map((name, i) => [
      name,
      samples.median(name, cpuMicros).toFixed(2),
      samples.median(name, (sample) => sample.perSecond).toFixed(0),
      startSeconds[i]?.toFixed(1) ?? '',
    ]),
  )
  bench.report.result(id, samples.ratio(`${counts[1]} ${noun}`, `${counts[0]} ${noun}`, cpuMicros))
}

const cpuMicros = (sample: LoadSample): number => sample.cpuMicros

/** Waits until the start is over: the first probes of thousands of clusters go on after the first answer. */
async function quiet(bench: Bench, server: Server): Promise<void> {
  const start = performance.now()
  for (;;) {
    const before = cpuSeconds(server.pid)
    await sleep(QUIET_SAMPLE_SECONDS * 1000)
    const cores = (cpuSeconds(server.pid) - before) / QUIET_SAMPLE_SECONDS
    const seconds = (performance.now() - start) / 1000
    if (cores < QUIET_CORES) {
      if (seconds > 2 * QUIET_SAMPLE_SECONDS)
        bench.report.note(`${server.name}: quiet after another ${seconds.toFixed(0)} s.`)
      return
    }
    if (seconds > QUIET_AT_MOST_SECONDS) {
      bench.report.note(`${server.name}: still uses ${cores.toFixed(2)} cores ${seconds.toFixed(0)} s after the start.`)
      return
    }
  }
}
