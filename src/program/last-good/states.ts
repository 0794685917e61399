// The last good states stored below DATA_DIR/last-good, and reports while one is served because its source is down: in /readyz?verbose, in the
// metrics, and once a minute in the log.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readStoreKey } from '../../apiserver/io/store/key.ts'
import { LastGoodFile } from '../../gateway/io/last-good/file.ts'
import { lastGoodKey } from '../../gateway/io/last-good/format.ts'
import { LastGoodKeeper } from '../../gateway/io/last-good/keeper.ts'
import { controlPaths } from '../../gateway/io/listener/control-paths.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import { exposeLastGood } from '../../gateway/metrics/main-thread-series.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { metaTime } from '../../kit/core/text/meta-time.ts'
import type { Check } from '../../process/api/check.ts'
import type { Config } from '../../process/config/config.ts'

/** What is stored; name of the file, and of its metrics' label. */
type LastGoodName = 'objects' | 'protectors' | 'scale' | 'logouts' | 'replicas'

/** Total time that a start waits for all its sources before it uses stored states: it must serve within 5 s. */
const WAIT_MS = 2_000
/** Minimum wait for each of them. */
const LEAST_WAIT_MS = 100
const SAY_EVERY_MS = 60_000

/** Consequences of serving each one from disk, for the log. */
const CONSEQUENCES: Readonly<Record<LastGoodName, string>> = {
  objects: 'clusters are served as they were; changes come into force when the API server answers again',
  protectors: 'deletions of protected pods follow the failurePolicy of their cluster until the core cluster answers',
  scale: 'scale-up guards and ScaleDownPolicies are those of before',
  logouts: 'logouts that other replicas are told of end sessions here when the API server answers again',
  replicas: 'this replica keeps to its part of the shared limits until Redis answers',
}

export class LastGoodStates {
  readonly name = 'last-good'
  readonly #config: Config
  readonly #clock: Clock
  readonly #log: Logger
  readonly #keepers = new Map<LastGoodName, LastGoodKeeper>()
  readonly #said = new Set<LastGoodName>()
  readonly #dir: string
  readonly #startMs: number
  #key: Buffer | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(config: Config, clock: Clock, log: Logger) {
    this.#dir = join(config.dataDir, 'last-good')
    this.#startMs = clock.monotonic()
    this.#config = config
    this.#clock = clock
    this.#log = log
  }

  /** Whether a previous process stored a state, usable or not. */
  exists(name: LastGoodName): boolean {
    return existsSync(join(this.#dir, name)) || existsSync(join(this.#dir, `${name}.previous`))
  }

  /** Milliseconds that this start still waits for its sources. */
  get waitMs(): number {
    return Math.max(LEAST_WAIT_MS, this.#startMs + WAIT_MS - this.#clock.monotonic())
  }

  /** Whether one of them is served from disk. */
  get serves(): boolean {
    return [...this.#keepers.values()].some(({ status }) => status.servedFromMs !== 0)
  }

  /** @param source server it belongs to: a file of another one is rejected @throws {UserError} without a key */
  keeper(name: LastGoodName, source: string): LastGoodKeeper {
    const { dataDir, storeKeyFile } = this.#config
    this.#key ??= lastGoodKey(readStoreKey(storeKeyFile === '' ? controlPaths(dataDir).storeKey : storeKeyFile))
    const log = this.#log
    const file = new LastGoodFile({ dir: this.#dir, name, key: this.#key, source, log })
    const keeper = new LastGoodKeeper({ file, name, clock: this.#clock, log })
    this.#keepers.set(name, keeper)
    return keeper
  }

  /** Like keeper(), for optional states: undefined, with a log line, if the data directory is not writable. */
  keeperIfWritable(name: LastGoodName, source: string): LastGoodKeeper | undefined {
    try {
      return this.keeper(name, source)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#log.warn('a last good state is not kept', { state: name, why: error.message, fix: error.fix })
      return undefined
    }
  }

  /** Begins to log what is served from disk; call it once the sources have started. */
  report(): void {
    this.#say()
    this.#timer = setInterval(() => this.#say(), SAY_EVERY_MS).unref()
  }

  checks(): readonly Check[] {
    return [...this.#keepers].map(([name, { status }]): Check => {
      const { servedFromMs } = status
      const note =
        servedFromMs === 0 ? '' : `the last good state of ${metaTime(servedFromMs)} is served: ${CONSEQUENCES[name]}`
      return { name: `source-${name}`, ok: true, message: '', note }
    })
  }

  exposeMetrics(into: Exposition): void {
    const statuses = [...this.#keepers.values()].map(({ status }) => status)
    exposeLastGood(into, statuses, this.#clock.now())
  }

  /** Writes what is not on disk yet. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all([...this.#keepers.values()].map((keeper) => keeper.stop()))
  }

  #say(): void {
    for (const [name, { status }] of this.#keepers) {
      const { servedFromMs } = status
      if (servedFromMs === 0) {
        if (this.#said.delete(name)) this.#log.info('the last good state is not needed any more', { state: name })
        continue
      }
      this.#said.add(name)
      const ageSeconds = Math.max(0, Math.round((this.#clock.now() - servedFromMs) / 1000))
      const fields = { state: name, time: metaTime(servedFromMs), ageSeconds, consequence: CONSEQUENCES[name] }
      this.#log.warn('the last good state is served, because its source is away', fields)
    }
  }
}
