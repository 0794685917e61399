// Configuration that changes all the time, at 80 % of what the gateway can do: 100 changes a minute through its embedded API server, every
// second one of the cluster that is asked. Against the same load while nothing changes.

import type { ClientHttp2Session } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, type Gateway, type LoadSample, Samples } from '../bench.ts'
import { connectControl, patchObject } from '../control.ts'
import { HOST } from '../material.ts'

const CHANGES_A_MINUTE = 100
const OTHER_CLUSTERS = 20
const BUSY = 0.8
const BUSY_TOLERANCE = 0.04
const FIRST_RATE = 5_000
const SEARCH_STEPS = 8
const SEARCH_SECONDS = 2
const CONNECTIONS = 8
const QUIET = 'nothing changes'
const CHANGING = `${CHANGES_A_MINUTE} changes a minute`

/** One round, however many: it is as long as many. */
export async function churn(bench: Bench, seconds: number): Promise<void> {
  const upstream = await bench.nghttpd()
  const options = { upstreamPort: upstream.port, embedded: true, otherClusters: OTHER_CLUSTERS }
  const gateway = await bench.portcullis(options)
  await bench.warmUp(gateway)
  const rate = await rateOf(bench, gateway)
  const session = connectControl(gateway)
  const policies = bench.material.objects(options)[0]?.spec.dispatchPolicies ?? []
  const samples = new Samples<LoadSample>()
  const load = { rate, seconds, connections: CONNECTIONS }
  samples.add(QUIET, await bench.load(gateway, load))
  const changing = new Changes(session, policies)
  samples.add(CHANGING, await bench.load(gateway, load))
  const changes = await changing.stop()
  session.destroy()
  bench.report.table(
    `${rate} requests a second, ${seconds} s each, ${1 + OTHER_CLUSTERS} clusters; ${changes} changes`,
    ['', 'p50 ms', 'p99 ms', 'CPU us/request', 'cores used'],
    samples.names.map((name) => [
      name,
      samples.median(name, (sample) => sample.p50).toFixed(3),
      samples.median(name, p99).toFixed(3),
      samples.median(name, (sample) => sample.cpuMicros).toFixed(2),
      samples.median(name, (sample) => sample.cores).toFixed(2),
    ]),
  )
  bench.report.result('churn.p99', samples.ratio(CHANGING, QUIET, p99))
}

const p99 = (sample: LoadSample): number => sample.p99

/** The rate at which it uses 80 % of its core: requests that come one by one cost more than those of a closed loop, the more the fewer. */
async function rateOf(bench: Bench, gateway: Gateway): Promise<number> {
  let rate = FIRST_RATE
  for (let step = 0; step < SEARCH_STEPS; step++) {
    const { cores, perSecond } = await bench.load(gateway, { rate, seconds: SEARCH_SECONDS, connections: CONNECTIONS })
    if (Math.abs(cores - BUSY) <= BUSY_TOLERANCE) return rate
    if (perSecond < rate * 0.9) {
      rate = Math.round(perSecond * BUSY)
      bench.report.note(
        `The client cannot send more than ${perSecond.toFixed(0)} requests a second: 80 % of these are sent.`,
      )
      return rate
    }
    rate = Math.round(rate * Math.min(Math.max(BUSY / cores, 0.5), 2))
  }
  bench.report.note(`No rate was found at which the gateway uses ${BUSY} cores: ${rate} requests a second are sent.`)
  return rate
}

/** One after the other, each at its time, from now on until `stop`, which says how many there were. */
class Changes {
  readonly #session: ClientHttp2Session
  readonly #policies: readonly object[]
  #count = 0
  #stopped = false
  readonly #running: Promise<void>

  constructor(session: ClientHttp2Session, policies: readonly object[]) {
    this.#session = session
    this.#policies = policies
    this.#running = this.#run()
    // It is awaited at the end, which is long after a failure.
    this.#running.catch(() => undefined)
  }

  async stop(): Promise<number> {
    this.#stopped = true
    await this.#running
    return this.#count
  }

  async #run(): Promise<void> {
    const startMs = performance.now()
    while (!this.#stopped) {
      const other = `other-${this.#count % OTHER_CLUSTERS}.example.com`
      await patchObject(this.#session, this.#count % 2 === 0 ? HOST : other, {
        spec: { dispatchPolicies: this.#changed() },
      })
      this.#count++
      await sleep(Math.max(startMs + (this.#count * 60_000) / CHANGES_A_MINUTE - performance.now(), 0))
    }
  }

  /** A first policy that matches nothing asked for here, another one each time. */
  #changed(): object[] {
    const users = [`user-${this.#count}`]
    return [
      { rules: [{ verbs: ['get'], apiGroups: ['apps'], resources: ['kind0'], users }] },
      ...this.#policies.slice(1),
    ]
  }
}
