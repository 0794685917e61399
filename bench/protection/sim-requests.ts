// The deletions of a run, each from its client to upstream and back: through the filter, past it with the webhook, or both.

import { meansNotDeleted } from '../../src/protection/core/ledger/verdicts.ts'
import type { SimPod, TrueCell } from './sim-cell.ts'
import type { SimReplica, SimVerdict, World } from './sim-ledger.ts'
import { SimRandom } from './sim-queue.ts'
import type { SimWave } from './sim-scenario.ts'
import type { Admitted, Truth } from './sim-truth.ts'

export interface RequestsDeps {
  readonly world: World
  readonly truth: Truth
  readonly cells: readonly TrueCell[]
  readonly replicas: readonly SimReplica[]
  /** All deletions are evaluated by the webhook only. */
  readonly webhookOnly: boolean
}

interface Asked {
  readonly random: SimRandom
  readonly wave: SimWave
  readonly cell: TrueCell
  readonly pod: SimPod
  readonly via: 'filter' | 'webhook' | 'both'
  readonly eviction: boolean
  retries: number
}

const REVIEW_TIMEOUT_MS = 10_000
const REPEATS = 5

export class SimRequests {
  private readonly deps: RequestsDeps
  private lastPod: SimPod | undefined

  constructor(deps: RequestsDeps) {
    this.deps = deps
    const { world } = deps
    world.scenario.waves.forEach((wave, index) => {
      for (let i = 0; i < wave.size; i++) {
        const random = new SimRandom(world.scenario.seed, `request ${index} ${i}`)
        world.queue.at(wave.atMs + random.next() * wave.spanMs, () => this.ask(wave, random))
      }
    })
  }

  private ask(wave: SimWave, random: SimRandom): void {
    const { cells, webhookOnly } = this.deps
    const cell = cells[wave.cell ?? random.integer(0, cells.length - 1)]
    if (cell === undefined) return
    const living = cell.pods.filter(({ gone, facts }) => !gone && !facts.terminating)
    const again = random.chance(wave.samePod)
    const drawn = random.next()
    const pod = again && this.lastPod !== undefined ? this.lastPod : living[Math.floor(drawn * living.length)]
    const via = random.next()
    const eviction = random.chance(wave.eviction)
    if (pod === undefined) return
    this.lastPod = pod
    const path = via < wave.viaWebhook ? 'webhook' : via < wave.viaWebhook + wave.viaBoth ? 'both' : 'filter'
    const owner = cells[pod.cell] ?? cell
    this.begin({ random, wave, cell: owner, pod, via: webhookOnly ? 'webhook' : path, eviction, retries: wave.retries })
  }

  private begin(asked: Asked): void {
    this.deps.truth.asked++
    if (asked.via === 'webhook') this.reachUpstream(asked)
    else this.getPod(asked, REPEATS)
  }

  /** The filter: it reads the pod, asks, forwards. */
  private getPod(asked: Asked, repeats: number): void {
    const { random, pod, cell } = asked
    const { queue, settings } = this.deps.world
    queue.after(this.latency(random), () => {
      if (pod.gone) return
      const { facts } = pod
      const replica = this.replica(random)
      if (replica === undefined || repeats === 0) return this.onRefusal(asked, undefined)
      const { incarnation } = replica
      queue.after(this.latency(random), () => {
        if (replica.incarnation !== incarnation) return
        this.trace(asked, 'is reviewed by the filter')
        replica.review(cell.id, facts, REVIEW_TIMEOUT_MS, (verdict) => {
          if (verdict.outcome !== 'admitted') return this.onRefusal(asked, verdict)
          this.trace(asked, `is admitted: ${verdict.reason}`)
          const admitted = this.deps.truth.admit(pod, verdict.seen)
          const gate = { replica, incarnation, verdict, admitted }
          queue.after(this.latency(random), () => {
            if (replica.incarnation !== incarnation) return this.deps.truth.abandon(admitted)
            const precondition = settings.versionPrecondition && verdict.free ? facts.resourceVersion : undefined
            this.forward(asked, gate, precondition, repeats)
          })
        })
      })
    })
  }

  private forward(asked: Asked, gate: Gate, precondition: string | undefined, repeats: number): void {
    const { random, pod } = asked
    const { queue, settings } = this.deps.world
    const answer = (refused: boolean, status: number): void => {
      if (refused) this.deps.truth.abandon(gate.admitted)
      const lost = random.chance(asked.wave.answerLost)
      // The connection breaks, and the gateway tries once more: it hears what the second try meets.
      const resent = lost && random.chance(0.5)
      queue.after(this.latency(random), () => {
        if (gate.replica.incarnation !== gate.incarnation) return
        if (status === 409 && !lost) {
          if (settings.releaseWhenGone) gate.verdict.release()
          return this.getPod(asked, repeats - 1)
        }
        const gone = status === 404 || (resent && pod.gone)
        if (gone ? settings.releaseWhenGone && (!lost || resent) : !lost && meansNotDeleted(status))
          gate.verdict.release()
      })
    }
    queue.after(this.upstreamLatency(random), () => {
      if (pod.gone) return answer(true, 404)
      if (this.refusedUpstream(asked)) return answer(true, 429)
      if (precondition !== undefined && pod.facts.resourceVersion !== precondition) return answer(true, 409)
      if (asked.via !== 'both') {
        this.commit(asked, gate.admitted)
        return answer(false, 200)
      }
      this.webhookReview(asked, REPEATS, gate.admitted, (committed) => answer(!committed, committed ? 200 : 429))
    })
  }

  /** A deletion that no filter has seen. */
  private reachUpstream(asked: Asked): void {
    const { random, pod } = asked
    this.deps.world.queue.after(this.upstreamLatency(random), () => {
      if (!pod.gone) this.webhookReview(asked, REPEATS, undefined, () => {})
    })
  }

  /** kube-apiserver asks for the object that it is going to change, and once more when that changed meanwhile. */
  private webhookReview(
    asked: Asked,
    repeats: number,
    byFilter: Admitted | undefined,
    done: (committed: boolean) => void,
  ): void {
    const { random, pod, cell } = asked
    const { queue } = this.deps.world
    const replica = this.replica(random)
    const fail = (verdict: SimVerdict | undefined): void => {
      done(false)
      this.onRefusal(asked, verdict)
    }
    if (replica === undefined || repeats === 0) {
      fail(undefined)
      return
    }
    const { facts } = pod
    const { incarnation } = replica
    let open = true
    const once = (act: () => void) => (): void => {
      if (open) act()
      open = false
    }
    queue.after(
      REVIEW_TIMEOUT_MS,
      once(() => fail(undefined)),
    )
    queue.after(this.latency(random), () => {
      if (replica.incarnation !== incarnation) return
      replica.review(cell.id, facts, REVIEW_TIMEOUT_MS, (verdict) => {
        queue.after(
          this.latency(random),
          once(() => {
            if (verdict.outcome !== 'admitted') return fail(verdict)
            if (pod.gone) return done(false)
            if (this.refusedUpstream(asked)) return done(false)
            if (pod.facts !== facts) return this.webhookReview(asked, repeats - 1, byFilter, done)
            this.trace(asked, `is admitted by the webhook: ${verdict.reason}`)
            this.commit(asked, byFilter ?? this.deps.truth.admit(pod, verdict.seen))
            done(true)
          }),
        )
      })
    })
  }

  private commit(asked: Asked, admitted: Admitted): void {
    const before = this.deps.truth.overAdmissions
    this.deps.truth.commit(admitted)
    asked.cell.commitDeletion(asked.pod)
    const over = this.deps.truth.overAdmissions > before
    this.trace(asked, over ? `is committed: OVER-ADMISSION ${this.deps.truth.explanations.at(-1)}` : 'is committed')
  }

  private onRefusal(asked: Asked, verdict: SimVerdict | undefined): void {
    const { truth, world } = this.deps
    this.trace(asked, `is refused: ${verdict?.reason ?? 'no replica'}`)
    if (verdict !== undefined) truth.refuse(asked.pod, verdict.limited)
    if (asked.retries === 0) return
    asked.retries--
    world.queue.after(asked.random.between(500, 5_000), () => {
      if (!asked.pod.gone && !asked.pod.facts.terminating) this.begin(asked)
    })
  }

  private refusedUpstream({ random, wave, eviction }: Asked): boolean {
    return (eviction && random.chance(wave.refusedByPDB)) || random.chance(wave.refusedByOthers)
  }

  private replica(random: SimRandom): SimReplica | undefined {
    const { replicas } = this.deps
    const first = random.integer(0, replicas.length - 1)
    return [...replicas.slice(first), ...replicas.slice(0, first)].find(({ up }) => up)
  }

  private latency(random: SimRandom): number {
    return random.wait(3, 200)
  }

  private upstreamLatency(random: SimRandom): number {
    const { upstreamLatencyMs, upstreamSlow } = this.deps.world.scenario
    return random.wait(upstreamLatencyMs, 5_000) + (random.chance(upstreamSlow) ? random.between(1_000, 40_000) : 0)
  }

  private trace({ pod, via, cell }: Asked, text: string): void {
    this.deps.world.trace(() => `${via} deletion of ${cell.id}/${pod.facts.name} ${text}`)
  }
}

interface Gate {
  readonly replica: SimReplica
  readonly incarnation: number
  readonly verdict: SimVerdict
  readonly admitted: Admitted
}
