// The subjects that can be left out, in the main thread: their components, and what these say once they run.

import type { PodProtectionInForce } from '../../gateway/api/pod-protection-in-force.ts'
import { type Component, Started } from '../../process/components/component.ts'
import type { LoadedSubjects } from './load.ts'
import type { RunningSubject, SubjectMain } from './subject.ts'

export class RunningSubjects {
  readonly #started: readonly { readonly state: string; readonly component: Started<RunningSubject> }[]

  constructor({ components }: Pick<LoadedSubjects, 'components'>, main: SubjectMain) {
    this.#started = components.map(({ name, state, start }) => {
      return { state, component: new Started(name, () => start(main)) }
    })
  }

  /** In the order of the list. */
  get components(): readonly Component[] {
    return this.#started.map(({ component }) => component)
  }

  /** Resolves when all that they must know before the first request is known, or after `withinMs`. */
  async known(withinMs: number): Promise<void> {
    await Promise.all(this.#running.map((subject) => subject.known?.(withinMs)))
  }

  /** For /debug/config, by name; null = not running. */
  describe(): Readonly<Record<string, object | null>> {
    return Object.fromEntries(
      this.#started.map(({ state, component }) => [state, component.running?.describe?.() ?? null]),
    )
  }

  /** The port of the one that has a webhook; 0 = not open. */
  get webhookPort(): number {
    return this.#running.find(({ webhookPort = 0 }) => webhookPort !== 0)?.webhookPort ?? 0
  }

  /** undefined = none protects pods, or it does not run yet. */
  get podProtection(): PodProtectionInForce | undefined {
    return this.#running.find(({ podProtection }) => podProtection !== undefined)?.podProtection
  }

  get #running(): readonly RunningSubject[] {
    return this.#started.flatMap(({ component }) => component.running ?? [])
  }
}
