// One cell as it truly is: pods with their versions in etcd, a controller that replaces what is deleted, kubelets. And the
// watch of it: late, in order, stalling, listing again.

import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { PodFacts } from '../../src/protection/api/protection.ts'
import { podFacts } from '../../src/protection/core/quota/pod-facts.ts'
import { type SimQueue, SimRandom } from './sim-queue.ts'
import type { Scenario, SimCell } from './sim-scenario.ts'

/** Wall clock of the true time 0. */
export const EPOCH_MS: number = Date.UTC(2026, 0, 2, 3, 4, 5)

export interface CellEvent {
  readonly version: number
  readonly gone: boolean
  readonly facts: PodFacts
  readonly object: JsonObject
}

export interface SimPod {
  readonly cell: number
  readonly state: PodState
  /** As the API has it now; the last version stays when it is gone. */
  object: JsonObject
  facts: PodFacts
  /** True time since when it is ready, whatever clocks say; meaningful while it is. */
  readyAtMs: number
  gone: boolean
  /** Version at which it last became unready by itself; 0 = never. */
  unreadyVersion: number
  /** Alive in the API and not yet seen as deleted by its controller. */
  deleted: boolean
}

/** What there is to say of a pod, with times as its API server and its kubelet have stamped them. */
interface PodState {
  readonly name: string
  readonly app: string
  readonly createdMs: number
  startedMs: number
  readySinceMs: number
  readyWrittenMs: number
  terminating: boolean
  scheduled: boolean
  running: boolean
  ready: boolean
}

/** True times: since when the pods of the beginning are ready, and what they took for it. */
const SETTLED_MS = -60_000
const START_UP_MS = 5_000

export class TrueCell {
  readonly pods: SimPod[] = []
  readonly byUid: Map<string, SimPod> = new Map()
  version = 1_000
  readonly watches: Set<CellWatch> = new Set()
  readonly spec: SimCell
  private readonly index: number
  private readonly scenario: Scenario
  private readonly queue: SimQueue
  private readonly random: SimRandom
  private count = 0

  constructor(index: number, scenario: Scenario, queue: SimQueue, spec: SimCell) {
    this.index = index
    this.scenario = scenario
    this.queue = queue
    this.spec = spec
    this.random = new SimRandom(scenario.seed, `cell ${index}`)
    for (let i = 0; i < spec.podsA; i++) this.create('a', true)
    for (let i = 0; i < spec.podsB; i++) this.create('b', true)
    if (scenario.flapping) for (const pod of this.pods) this.flapLater(pod)
  }

  get id(): string {
    return `cell-${this.index}`
  }

  private create(app: string, ready: boolean): void {
    const name = `${app}-${this.index}-${this.count++}`
    const since = ready ? SETTLED_MS : 0
    const state: PodState = {
      name,
      app,
      createdMs: this.stampOf('apiserver', since - START_UP_MS),
      startedMs: ready ? this.stampOf('kubelet', since - START_UP_MS) : 0,
      readySinceMs: ready ? this.stampOf('kubelet', since) : 0,
      readyWrittenMs: ready ? this.stampOf('apiserver', since) : 0,
      terminating: false,
      scheduled: ready,
      running: ready,
      ready,
    }
    const made = { state, ...this.written(state) }
    const pod: SimPod = { cell: this.index, ...made, gone: false, unreadyVersion: 0, deleted: false, readyAtMs: since }
    this.pods.push(pod)
    this.byUid.set(pod.facts.uid, pod)
    this.change(pod, {})
    if (!ready) this.bringUp(pod)
  }

  private bringUp(pod: SimPod): void {
    const { random, queue } = this
    const scheduledAfter = random.wait(50, 500)
    queue.after(scheduledAfter, () => this.change(pod, { scheduled: true, startedMs: this.stampOf('kubelet') }))
    const readyAfter = random.wait(this.scenario.readyAfterMs, 30_000) + 500
    queue.after(readyAfter - 1, () => this.change(pod, { running: true }))
    queue.after(readyAfter, () => {
      this.becomeReady(pod)
      if (this.scenario.flapping) this.flapLater(pod)
    })
  }

  private becomeReady(pod: SimPod): void {
    pod.readyAtMs = this.queue.now
    const readySinceMs = this.stampOf('kubelet')
    this.change(pod, { ready: true, readySinceMs, readyWrittenMs: this.stampOf('apiserver') })
  }

  /** metav1.Time has whole seconds. @param atMs true time; default: now */
  private stampOf(clock: 'apiserver' | 'kubelet', atMs: number = this.queue.now): number {
    return Math.floor((EPOCH_MS + atMs + this.skewOf(clock, atMs)) / 1_000) * 1_000
  }

  /** By how much the clock is ahead. */
  skewOf(clock: 'apiserver' | 'kubelet', atMs: number): number {
    const { apiserverSkewMs, apiserverStep, kubeletSkewMs, kubeletStep } = this.spec
    const [skewMs, step] = clock === 'kubelet' ? [kubeletSkewMs, kubeletStep] : [apiserverSkewMs, apiserverStep]
    return skewMs + (atMs > step.atMs ? step.byMs : 0)
  }

  private flapLater(pod: SimPod): void {
    this.queue.after(this.random.wait(60_000, 300_000), () => {
      if (pod.gone) return
      this.change(pod, { ready: false, readySinceMs: 0 })
      pod.unreadyVersion = this.version
      this.queue.after(this.random.wait(4_000, 60_000), () => {
        if (pod.gone) return
        this.becomeReady(pod)
        this.flapLater(pod)
      })
    })
  }

  /** Other resources take versions too. */
  private nextVersion(): number {
    this.version += this.random.integer(1, 4)
    return this.version
  }

  private change(pod: SimPod, change: Partial<PodState>): void {
    if (pod.gone) return
    Object.assign(pod.state, change)
    this.nextVersion()
    Object.assign(pod, this.written(pod.state))
    this.publish({ version: this.version, gone: false, facts: pod.facts, object: pod.object })
  }

  /** As an API server hands it out. */
  private written(state: PodState): { object: JsonObject; facts: PodFacts } {
    const object = podObject(state, this.version, this.scenario.criterion)
    const facts = podFacts(object)
    if (facts === undefined) throw new Error('a pod without a uid')
    return { object, facts }
  }

  private publish(event: CellEvent): void {
    for (const watch of this.watches) watch.push(event)
  }

  /** A deletion that upstream commits now. */
  commitDeletion(pod: SimPod): void {
    if (pod.gone || pod.facts.terminating) return
    pod.deleted = true
    const immediate = this.spec.graceMs === 0 || !pod.facts.scheduled
    if (immediate) this.remove(pod)
    else {
      this.change(pod, { terminating: true })
      this.queue.after(this.random.between(0.2, 1) * this.spec.graceMs, () => this.remove(pod))
    }
    if (!this.scenario.replaces) return
    const app = pod.facts.labels['app'] ?? ''
    this.queue.after(this.random.wait(300, 5_000), () => this.create(app, false))
  }

  private remove(pod: SimPod): void {
    if (pod.gone) return
    this.nextVersion()
    pod.gone = true
    pod.state.terminating = true
    Object.assign(pod, this.written(pod.state))
    this.publish({ version: this.version, gone: true, facts: pod.facts, object: pod.object })
  }

  /** A consistent read, as LIST without resourceVersion is. */
  list(): { version: number; pods: JsonObject[] } {
    return { version: this.version, pods: this.pods.filter(({ gone }) => !gone).map(({ object }) => object) }
  }
}

export interface WatchTarget {
  onList(version: number, pods: readonly JsonObject[]): void
  onEvent(event: CellEvent): void
  onBookmark(version: number): void
}

const BOOKMARK_MS = 15_000

/** One watch stream. It starts with a list. */
export class CellWatch {
  private readonly cell: TrueCell
  private readonly queue: SimQueue
  private readonly target: WatchTarget
  private readonly random: SimRandom
  private last = 0
  private version = 0
  private listed = false
  /** What came between the end of one stream and the list that starts the next. */
  private readonly held: (() => void)[] = []
  private open = true

  constructor(cell: TrueCell, queue: SimQueue, target: WatchTarget, random: SimRandom) {
    this.cell = cell
    this.queue = queue
    this.target = target
    this.random = random
    cell.watches.add(this)
    this.list()
    for (const { untilMs, relist } of cell.spec.stalls) {
      if (relist && untilMs > queue.now) queue.at(untilMs, () => this.list())
    }
    queue.after(BOOKMARK_MS, () => this.bookmark())
  }

  close(): void {
    this.open = false
    this.cell.watches.delete(this)
  }

  private list(): void {
    if (!this.open) return
    this.listed = false
    this.queue.after(this.random.wait(20, 500), () => {
      const { version, pods } = this.cell.list()
      this.queue.after(this.random.wait(20, 500), () => {
        if (!this.open || version < this.version) return
        this.version = version
        this.listed = true
        this.last = Math.max(this.last, this.queue.now)
        this.target.onList(version, pods)
        for (const act of this.held.splice(0)) act()
      })
    })
  }

  private bookmark(): void {
    if (!this.open) return
    const { version } = this.cell
    this.deliver(() => {
      if (version <= this.version) return
      this.version = version
      this.target.onBookmark(version)
    })
    this.queue.after(BOOKMARK_MS, () => this.bookmark())
  }

  push(event: CellEvent): void {
    this.deliver(() => {
      if (event.version <= this.version) return
      this.version = event.version
      this.target.onEvent(event)
    })
  }

  private deliver(act: () => void): void {
    const { spec } = this.cell
    const burst = this.random.chance(spec.lagBurst) ? this.random.between(500, 5_000) : 0
    let at = Math.max(this.last, this.queue.now + this.random.wait(spec.lagMs, 5_000) + burst)
    for (const { atMs, untilMs } of spec.stalls) if (at >= atMs && at < untilMs) at = untilMs
    this.last = at
    this.queue.at(at, () => {
      if (!this.open) return
      if (this.listed) act()
      else this.held.push(act)
    })
  }
}

function podObject(state: PodState, version: number, criterion: string): JsonObject {
  const { name, app, createdMs, startedMs, readySinceMs, readyWrittenMs, terminating, scheduled, running, ready } =
    state
  const time = (ms: number): string => new Date(ms).toISOString()
  const owner = {
    time: time(readyWrittenMs),
    fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } } },
  }
  const condition = (type: string, status: boolean, sinceMs: number): object => {
    return { type, status: status ? 'True' : 'False', ...(sinceMs > 0 && { lastTransitionTime: time(sinceMs) }) }
  }
  return {
    metadata: {
      namespace: 'default',
      name,
      uid: `uid-${name}`,
      resourceVersion: String(version),
      labels: { app },
      creationTimestamp: time(createdMs),
      ...(criterion !== 'Available' && { annotations: { 'podseidon.kubewharf.io/health-criterion': criterion } }),
      ...(terminating && { deletionTimestamp: time(createdMs) }),
      managedFields: readyWrittenMs === 0 ? [] : [owner],
    },
    status: {
      phase: running ? 'Running' : 'Pending',
      ...(startedMs > 0 && { startTime: time(startedMs) }),
      conditions: [condition('PodScheduled', scheduled, 0), condition('Ready', ready, readySinceMs)],
    },
  }
}
