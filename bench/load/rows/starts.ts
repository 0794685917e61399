// Full load on one process after the other: what V8 concludes from the first requests stays for as long as a process lives, and a median
// of one process does not show it.

import type { Bench } from '../bench.ts'

const PROCESSES = 6

export async function starts(bench: Bench): Promise<void> {
  const upstream = await bench.nghttpd()
  const costs: number[] = []
  for (let i = 0; i < PROCESSES; i++) {
    const gateway = await bench.portcullis({ upstreamPort: upstream.port })
    await bench.warmUp(gateway)
    costs.push((await bench.load(gateway, {})).cpuMicros)
    await gateway.stop()
  }
  costs.sort((a, b) => a - b)
  bench.report.table(
    `Full load on ${PROCESSES} processes, one after the other`,
    ['CPU us/request, from the cheapest process to the dearest'],
    costs.map((cost) => [cost.toFixed(2)]),
  )
  bench.report.result('starts.spread', (costs.at(-1) ?? Number.NaN) / (costs[0] ?? Number.NaN))
}
