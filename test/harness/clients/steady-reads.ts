// Reads at a fixed rate through a gateway, each of which has to bring a whole answer, while apiservers are killed under them.

import type { ClientHttp2Session } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestCluster } from '../clusters/cluster.ts'
import type { TestGateway } from '../gateways/gateway.ts'
import { waitFor } from '../wait.ts'
import { h2Request } from './h2-client.ts'

export const READS_PER_SECOND = 500
const SESSIONS = 4
/** However far behind the machine is: all that are lost at once have to find room in the retry budget. */
const READS_AT_ONCE = 200

export interface ReadTarget {
  readonly path: string
  /** Bytes of the answer; undefined = any. */
  readonly size?: number
}

/** Reads until it is stopped; counts outcomes. */
export class SteadyReads {
  /** By code; `cut off` = begun and reset, `short` = not of its size. */
  readonly outcomes: Map<string, number> = new Map()
  readonly #firsts = new Map<string, string>()
  readonly #sessions: readonly ClientHttp2Session[]
  readonly #authority: string
  readonly #targets: readonly ReadTarget[]
  readonly #pending = new Set<Promise<void>>()
  #running = true
  #done: Promise<void> | undefined

  constructor(connect: () => ClientHttp2Session, authority: string, targets: readonly ReadTarget[]) {
    this.#sessions = Array.from({ length: SESSIONS }, connect)
    this.#authority = authority
    this.#targets = targets
  }

  start(): void {
    this.#done = this.#run()
  }

  get whole(): number {
    return this.outcomes.get('200') ?? 0
  }

  /** Each outcome but 200: how often, and what the first one looked like. */
  failures(): [string, number, string][] {
    const failed = [...this.outcomes].filter(([outcome]) => outcome !== '200')
    return failed.map(([outcome, count]) => [outcome, count, this.#firsts.get(outcome) ?? ''])
  }

  async #run(): Promise<void> {
    const started = performance.now()
    for (let sent = 0; this.#running; ) {
      const due = Math.floor(((performance.now() - started) * READS_PER_SECOND) / 1000)
      for (; sent < due && this.#pending.size < READS_AT_ONCE; sent++) {
        const read: Promise<void> = this.#read(sent).finally(() => this.#pending.delete(read))
        this.#pending.add(read)
      }
      await sleep(5)
    }
    await Promise.all(this.#pending)
  }

  async #read(index: number): Promise<void> {
    const session = this.#sessions[index % SESSIONS]
    const target = this.#targets[Math.floor(index / SESSIONS) % this.#targets.length]
    if (session === undefined || target === undefined) return
    const answer = await h2Request(session, [':path', target.path, ':authority', this.#authority])
    let outcome = String(answer.status)
    if (answer.status === 200) {
      if (answer.resetCode !== 0) outcome = 'cut off'
      else if (target.size !== undefined && answer.body.length !== target.size) outcome = 'short'
    }
    if (outcome !== '200' && !this.#firsts.has(outcome)) {
      this.#firsts.set(outcome, `${new Date().toISOString()} ${target.path}: ${answer.body.toString().slice(0, 300)}`)
    }
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#done
    for (const session of this.#sessions) session.destroy()
  }
}

/** How many requests an endpoint has answered, from the gateway's own metrics. */
export async function answeredBy(gateway: TestGateway, url: string): Promise<number> {
  const text = await gateway.metrics()
  const lines = text.split('\n').filter((line) => line.startsWith('portcullis_upstream_requests_total{'))
  const own = lines.filter((line) => line.includes(`endpoint="${url}"`))
  return own.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** `kill -9` of one apiserver after the other under these reads, each of which is back in use before the next one goes. */
export async function killInTurns(
  cluster: TestCluster,
  gateway: TestGateway,
  reads: SteadyReads,
  kills: number,
  report: (what: string) => void = () => undefined,
): Promise<void> {
  for (let kill = 0; kill < kills; kill++) {
    const victim = cluster.apiservers[kill % cluster.apiservers.length]
    if (victim === undefined) return
    const before = reads.whole
    await waitFor('traffic', () => reads.whole > before + READS_PER_SECOND / 2)
    report(`kill of ${victim.url}`)
    await victim.kill('SIGKILL')
    const after = reads.whole
    await waitFor('traffic after the kill', () => reads.whole > after + READS_PER_SECOND)
    await victim.restart()
    report('ready again')
    const back = await answeredBy(gateway, victim.url)
    await waitFor('traffic on it again', async () => (await answeredBy(gateway, victim.url)) > back + 100)
  }
}
