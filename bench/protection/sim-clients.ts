// What the controllers of a process see of the API servers: the core, which holds the PodProtectors, and a cell with its pods. Each
// answer takes its time, may be lost, and may come too late for a process that is gone.

import type { CellClocks } from '../../src/gateway/core/clocks/cell-clock.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { FollowEvents, Following, ObjectClient, ObjectList } from '../../src/kube/api/object-client.ts'
import { statusError } from '../../src/kube/api/status.ts'
import type { PodProtector } from '../../src/protection/api/pod-protector.ts'
import { CellWatch, EPOCH_MS, type TrueCell } from './sim-cell.ts'
import { type CoreStore, keyOf, type SeenVersions } from './sim-core.ts'
import type { SimProcess } from './sim-process.ts'
import type { SimQueue, SimRandom } from './sim-queue.ts'

const FOLLOWING: Following = { stop: () => Promise.resolve() }
const PROBE_MS = 5_000

function unused(): never {
  throw new Error('not used by the simulation')
}

/** A client for PodProtectors alone. */
export class SimCoreClient implements ObjectClient {
  /** Aggregations that a reservation was written against, by protector and pod. */
  readonly shown: Map<string, SeenVersions> = new Map()
  readonly #core: CoreStore
  readonly #process: SimProcess
  readonly #lagMs: number
  readonly #random: SimRandom
  /** For an aggregator: the version of its cell's pods that a write shows. */
  readonly #counted: ((object: PodProtector) => { cell: string; version: number }) | undefined

  constructor(
    core: CoreStore,
    process: SimProcess,
    lagMs: number,
    random: SimRandom,
    counted?: (object: PodProtector) => { cell: string; version: number },
  ) {
    this.#core = core
    this.#process = process
    this.#lagMs = lagMs
    this.#random = random
    this.#counted = counted
  }

  get(_kind: unknown, { namespace, name }: { namespace: string; name: string }): Promise<JsonObject> {
    return this.#process.answer((resolve, reject) => {
      this.#core.read(`${namespace}/${name}`, (object) => {
        if (object === undefined) reject(statusError('NotFound', 'there is none'))
        else resolve(object as unknown as JsonObject)
      })
    })
  }

  update(_kind: unknown, object: JsonObject): Promise<JsonObject> {
    const next = object as unknown as PodProtector
    return this.#process.answer((resolve, reject) => {
      const { status } = next
      if (status === undefined) return unused()
      this.#core.write(next, status, this.#counted?.(next), ({ result, object: written, seen }) => {
        if (result === 'lost') return reject(new Error('no answer'))
        if (written === undefined) return reject(statusError('Conflict', 'another client has written it'))
        this.#note(written, seen)
        resolve(written as unknown as JsonObject)
      })
    })
  }

  #note(written: PodProtector, seen: SeenVersions): void {
    if (this.#counted !== undefined) return
    for (const { admissionHistory } of written.status?.cells ?? []) {
      for (const { podUID, startTime } of admissionHistory?.buckets ?? []) {
        if (podUID === undefined) continue
        const key = `${keyOf(written)} ${podUID} ${startTime}`
        if (!this.shown.has(key)) this.shown.set(key, seen)
      }
    }
  }

  follow(_kind: unknown, _namespace: string, events: FollowEvents): Following {
    const process = this.#process
    process.after(0, () => {
      events.onReplace(this.#core.objects() as unknown as JsonObject[])
      events.onState(true, '')
    })
    this.#core.follow(this.#lagMs, this.#random, (object) =>
      process.run(() => events.onChange('MODIFIED', object as unknown as JsonObject)),
    )
    return FOLLOWING
  }

  list(): Promise<ObjectList> {
    return unused()
  }
  create(): Promise<JsonObject> {
    return unused()
  }
  patch(): Promise<JsonObject> {
    return unused()
  }
  delete(): Promise<void> {
    return unused()
  }
}

/** A client for the pods of one cell. */
export class SimCellClient implements ObjectClient {
  readonly #cell: TrueCell
  readonly #process: SimProcess
  readonly #queue: SimQueue
  readonly #random: SimRandom

  constructor(cell: TrueCell, process: SimProcess, queue: SimQueue, random: SimRandom) {
    this.#cell = cell
    this.#process = process
    this.#queue = queue
    this.#random = random
  }

  follow(_kind: unknown, _namespace: string, events: FollowEvents, choice: { transform?: Transform } = {}): Following {
    const { transform = (pod) => pod } = choice
    const process = this.#process
    let current = false
    const target = {
      onList: (version: number, pods: readonly JsonObject[]): void =>
        process.run(() => {
          events.onReplace(pods.map(transform))
          events.onVersion?.(String(version))
          if (!current) events.onState(true, '')
          current = true
        }),
      onEvent: ({ version, gone, object }: { version: number; gone: boolean; object: JsonObject }): void =>
        process.run(() => {
          events.onChange(gone ? 'DELETED' : 'MODIFIED', transform(object))
          events.onVersion?.(String(version))
        }),
      onBookmark: (version: number): void => process.run(() => events.onVersion?.(String(version))),
    }
    const watch = new CellWatch(this.#cell, this.#queue, target, this.#random)
    return {
      stop: () => {
        watch.close()
        return Promise.resolve()
      },
    }
  }

  currentVersion(): Promise<string> {
    return this.#process.answer((resolve) => {
      this.#queue.after(this.#random.wait(10, 500), () => {
        const version = String(this.#cell.version)
        this.#queue.after(this.#random.wait(10, 500), () => resolve(version))
      })
    })
  }

  get(): Promise<JsonObject> {
    return unused()
  }
  list(): Promise<ObjectList> {
    return unused()
  }
  create(): Promise<JsonObject> {
    return unused()
  }
  update(): Promise<JsonObject> {
    return unused()
  }
  patch(): Promise<JsonObject> {
    return unused()
  }
  delete(): Promise<void> {
    return unused()
  }
}

type Transform = (object: JsonObject) => JsonObject

/** Health checks of a cell, by which a process knows what its clock says. @param trusts it believes its own wall clock instead */
export function probeClocks(
  clocks: CellClocks,
  cell: TrueCell,
  process: SimProcess,
  queue: SimQueue,
  random: SimRandom,
  trusts: boolean,
): void {
  const probe = (): void => {
    const sentMs = process.clock.monotonic()
    queue.after(random.wait(5, 2_000), () => {
      const wallMs = trusts ? process.clock.now() : EPOCH_MS + queue.now + cell.skewOf('apiserver', queue.now)
      const date = new Date(wallMs).toUTCString()
      queue.after(random.wait(5, 2_000), () =>
        process.run(() => clocks.observe(cell.id, 'apiserver', date, sentMs, process.clock.monotonic())),
      )
    })
    process.after(PROBE_MS * random.between(0.9, 1.1), probe)
  }
  probe()
}
