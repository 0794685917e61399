// A part of the gateway from the process' point of view. All parts are in one list: they start in this order and stop in reverse, and what the
// process reports about itself (readiness, metrics, certificates, reloaded files) is collected over the list.

import { type Exposition, expositionText, sharedText } from '../../gateway/metrics/exposition.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { Check } from '../api/check.ts'
import type { OwnCertificate } from '../certificates/own-certificates.ts'

/** Capabilities of a running part. */
export interface Running {
  /** Also called if the part has not started, or not completely. */
  stop?(): void | Promise<void>
  /** Conditions for /readyz to succeed. */
  checks?(): readonly Check[]
  /** Adds its metrics to a scrape. */
  exposeMetrics?(into: Exposition): void | Promise<void>
  /** The certificates in use. */
  readonly certificates?: readonly OwnCertificate[]
  /** Files that are reread when they change, by label: whether their content is in force. */
  readonly reloads?: ReadonlyMap<string, boolean>
}

export interface Component extends Running {
  /** For the log. */
  readonly name: string
  /** @throws {UserError} if the gateway cannot start */
  start?(): void | Promise<void>
}

/** A component that is created when it starts. */
export class Started<T extends Running> implements Component {
  readonly name: string
  readonly #create: () => T | undefined | Promise<T | undefined>
  #running: T | undefined

  /** @param create undefined = disabled */
  constructor(name: string, create: () => T | undefined | Promise<T | undefined>) {
    this.name = name
    this.#create = create
  }

  /** undefined = not started, or disabled. */
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

  /** Appends them to the list. @param components undefined = disabled */
  add(...components: readonly (Component | undefined)[]): void {
    this.#list.push(...components.filter((one) => one !== undefined))
  }

  /** @throws the first error; later components are not started, and nothing is stopped */
  async start(): Promise<void> {
    for (const component of this.#list) await component.start?.()
  }

  /** Stops each of them, even if another one fails. @throws the first error */
  stop(): Promise<void> {
    return stopInReverse(this.#list, this.#log)
  }

  checks(): readonly Check[] {
    return this.#list.flatMap((one) => one.checks?.() ?? [])
  }

  /** The metrics of all components in the Prometheus text format. Concurrent calls share one rendering. */
  readonly metricsText: () => Promise<string> = sharedText(() =>
    expositionText(...this.#list.map((one) => (into: Exposition) => one.exposeMetrics?.(into))),
  )

  get certificates(): readonly OwnCertificate[] {
    return this.#list.flatMap((one) => one.certificates ?? [])
  }

  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#list.flatMap((one) => [...(one.reloads ?? [])]))
  }
}

/** Stops them sequentially, last first, each even if another one fails. @throws the first error */
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
