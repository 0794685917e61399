// What a request costs when there is more configuration: policies before the one that matches, clusters that others use.

import { type Bench, type LoadSample, Samples } from '../bench.ts'
import type { ClusterOptions } from '../material.ts'
import type { Server } from '../processes.ts'

const FEW_POLICIES = 10
const MANY_POLICIES = 1_000
const MANY_CLUSTERS = 5_000
const SECONDS = 2

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
