// Small GETs with and without large lists beside them. The lists' readers have a pace, as clients that parse have, so that
// the machine is busy but not full: what is measured is whether a large list holds up others, not who gets the last core.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, type LoadSample, Samples } from '../bench.ts'
import type { Server } from '../processes.ts'
import { bothHAProxies, LIST_PATH, TUNED_HAPROXY } from './list.ts'

const LISTS = 20
const BYTES_PER_SECOND_EACH = 4_000_000
const RATE = 1_000
const SECONDS = 4

export async function mixed(bench: Bench): Promise<void> {
  const upstream = await bench.upstream()
  const gateway = await bench.portcullis({ upstreamPort: upstream.port })
  const servers = [...(await bothHAProxies(bench, upstream.port)), gateway]
  await bench.warmUp(gateway)
  const samples = new Samples<LoadSample>()
  for (let round = 0; round < bench.rounds; round++) {
    for (const server of servers) {
      samples.add(server.name, await small(bench, server))
      samples.add(besideLists(server.name), await withLists(bench, server, () => small(bench, server)))
    }
  }
  bench.report.table(
    `${RATE} small GETs a second, alone and beside ${LISTS} lists of ${BYTES_PER_SECOND_EACH / 1e6} MB/s each`,
    ['', 'p50 ms', 'p99 ms', 'cores used'],
    samples.names.map((name) => [
      name,
      samples.median(name, (sample) => sample.p50).toFixed(3),
      samples.median(name, p99).toFixed(3),
      samples.median(name, (sample) => sample.cores).toFixed(2),
    ]),
  )
  bench.report.result('mixed.p99', samples.ratio(besideLists('Portcullis'), 'Portcullis', p99))
  for (const name of ['HAProxy', TUNED_HAPROXY]) {
    bench.report.note(`${name}: p99 grows by ${samples.ratio(besideLists(name), name, p99).toFixed(2)} x.`)
  }
}

const p99 = (sample: LoadSample): number => sample.p99

function besideLists(name: string): string {
  return `${name}, lists beside`
}

function small(bench: Bench, server: Server): Promise<LoadSample> {
  return bench.load(server, { rate: RATE, seconds: SECONDS, connections: 8 })
}

async function withLists<T>(bench: Bench, server: Server, measure: () => Promise<T>): Promise<T> {
  const flags = [`-connections=${LISTS}`, '-lists=0', `-pace=${BYTES_PER_SECOND_EACH}`, `-path=${LIST_PATH}`]
  const lists = bench.client(server, 'list', flags)
  try {
    await lists.next()
    lists.go()
    await sleep(500)
    return await measure()
  } finally {
    await lists.stop()
  }
}
