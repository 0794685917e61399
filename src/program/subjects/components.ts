// The subjects that can be left out, in the main thread: their components, and what these say.

import type { AdminRoute, CreateBrowserLogins } from '../../admin/io/server/route.ts'
import type { PodProtectionInForce } from '../../gateway/api/pod-protection-in-force.ts'
import type { ReadCacheInForce } from '../../gateway/api/upstream-cluster/read-cache/read-cache-in-force.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { stopInReverse } from '../../process/components/component.ts'
import type { LoadedSubjects } from './load.ts'
import type { SubjectComponent, SubjectMain } from './subject.ts'

export class SubjectComponents {
  /** In the order of the list. */
  readonly list: readonly SubjectComponent[]
  readonly #log: Logger

  /** @throws {UserError} for errors that the operator can fix */
  constructor(components: LoadedSubjects['components'], main: SubjectMain) {
    this.list = components.map((create) => create(main))
    this.#log = main.log
  }

  /** Resolves when all that they must know before the first request is known, or after `withinMs`. */
  async known(withinMs: number): Promise<void> {
    await Promise.all(this.list.map((one) => one.known?.(withinMs)))
  }

  /** For /debug/config, by name; null = there is nothing to say. */
  describe(): Readonly<Record<string, object | null>> {
    return Object.fromEntries(
      this.list.flatMap((one) => (one.state === undefined ? [] : [[one.state, one.describe?.() ?? null]])),
    )
  }

  /** Those that start before the gateway threads. */
  get beforeThreads(): readonly SubjectComponent[] {
    return this.list.filter(({ outlivesThreads = false }) => outlivesThreads)
  }

  get afterThreads(): readonly SubjectComponent[] {
    return this.list.filter(({ outlivesThreads = false }) => !outlivesThreads)
  }

  /** What they add to the admin listener. */
  get routes(): readonly AdminRoute[] {
    return this.list.flatMap(({ routes }) => routes ?? [])
  }

  /** undefined = browsers cannot log in at the admin listener. */
  get browserLogins(): CreateBrowserLogins | undefined {
    return this.list.find(({ browserLogins }) => browserLogins !== undefined)?.browserLogins
  }

  /** The port of the one that has a webhook; 0 = not open. */
  get webhookPort(): number {
    return this.list.find(({ webhookPort = 0 }) => webhookPort !== 0)?.webhookPort ?? 0
  }

  /** undefined = none protects pods. */
  get podProtection(): PodProtectionInForce | undefined {
    return this.list.find(({ podProtection }) => podProtection !== undefined)?.podProtection
  }

  /** undefined = none answers reads. */
  get readCache(): ReadCacheInForce | undefined {
    return this.list.find(({ readCache }) => readCache !== undefined)?.readCache
  }

  stop(): Promise<void> {
    return stopInReverse(this.list, this.#log)
  }
}
