// A part of the gateway as the process sees it. All parts stand in one list: they start in its order and stop in the reverse order, and
// what the process tells about itself (readiness, metrics, certificates, files that it reads again) is collected over the list.

import { type Exposition, sharedText, textOf } from '../../gateway/metrics/exposition.ts'
import type { Check } from '../../insight/admin/routes.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { OwnCertificate } from '../certificates/own-certificates.ts'

/** What a part does once it runs. */
export interface Running {
  /** Also called when the part has not started, or not completely. */
  stop?(): void | Promise<void>
  /** What must be true before /readyz succeeds. */
  checks?(): readonly Check[]
  /** Adds its metrics to a scrape. */
  exposeMetrics?(into: Exposition): void | Promise<void>
  /** The certificates in use. */
  readonly certificates?: readonly OwnCertificate[]
  /** Files that are read again when they change, by label: whether their content is in force. */
  readonly reloads?: ReadonlyMap<string, boolean>
}

export interface Component extends Running {
  /** For the log. */
  readonly name: string
  /** @throws {UserError} when the gateway cannot start */
  start?(): void | Promise<void>
}

/** A component that is created when it starts. */
export class Started<T extends Running> implements Component {
  readonly name: string
  readonly #create: () => T | undefined | Promise<T | undefined>
  #running: T | undefined

  /** @param create undefined = it is switched off */
  constructor(name: string, create: () => T | undefined | Promise<T | undefined>) {
    this.name = name
    this.#create = create
  }

  /** undefined = it has not started, or is switched off. */
  get running(): T | undefined {
    return this.#running
  }

  async start(): Promise<void> {
    this.#running = await this.#create()
  }

  stop(): void | Promise<void> {
    return this.#running?.stop?.()
  }

  checks(): readonly Check[] {
    return this.#running?.checks?.() ?? []
  }

  exposeMetrics(into: Exposition): void | Promise<void> {
    return this.#running?.exposeMetrics?.(into)
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#running?.certificates ?? []
  }

  get reloads(): ReadonlyMap<string, boolean> {
    return this.#running?.reloads ?? new Map()
  }
}

export class Components {
  readonly #list: Component[] = []
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  /** Adds them behind those that are there. @param components undefined = switched off */
  add(...components: readonly (Component | undefined)[]): void {
    this.#list.push(...components.filter((one) => one !== undefined))
  }

  /** @throws what the first one throws that cannot start; those behind it are not started, and nothing is stopped */
  async start(): Promise<void> {
    for (const component of this.#list) await component.start?.()
  }

  /** Stops each of them, whether or not another one fails. @throws the first error */
  stop(): Promise<void> {
    return stopInReverse(this.#list, this.#log)
  }

  checks(): readonly Check[] {
    return this.#list.flatMap((one) => one.checks?.() ?? [])
  }

  /** The metrics of all of them in the Prometheus text format. Concurrent calls share one rendering. */
  readonly metricsText: () => Promise<string> = sharedText(() =>
    textOf(...this.#list.map((one) => (into: Exposition) => one.exposeMetrics?.(into))),
  )

  get certificates(): readonly OwnCertificate[] {
    return this.#list.flatMap((one) => one.certificates ?? [])
  }

  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#list.flatMap((one) => [...(one.reloads ?? [])]))
  }
}

/** One after the other, the last first, each whether or not another one fails. @throws the first error */
export async function stopInReverse(
  parts: readonly ({ readonly name?: string; stop?(): void | Promise<void> } | undefined)[],
  log: Logger,
): Promise<void> {
  const errors: unknown[] = []
  for (const part of parts.toReversed()) {
    if (part?.stop === undefined) continue
    const { name } = part
    try {
      await part.stop()
      if (name !== undefined) log.debug('a part of the gateway has stopped', { part: name })
    } catch (error) {
      log.error('a part of the gateway could not be stopped', { ...(name !== undefined && { part: name }), error })
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}
