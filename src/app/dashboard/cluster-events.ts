// Events about UpstreamClusters, out of the API server of the objects: read when somebody looks, and at most once in ten seconds.

import type { Change } from '../../api/insight/overview.ts'
import { EVENTS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { recordOf, textOf } from '../../api/kube/object-shape.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import { clip } from '../../core/insight/change-log.ts'

/** Where Events of cluster-scoped objects are. */
const NAMESPACE = 'default'
const KEPT_MS = 10_000
const PATIENCE_MS = 2_000
const RECENT_MS = 30 * 60 * 1000

export class ClusterEvents {
  readonly #client: ObjectClient | undefined
  readonly #clock: { now(): number; monotonic(): number }
  #known: readonly Change[] = []
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  constructor(client: ObjectClient | undefined, clock: { now(): number; monotonic(): number }) {
    this.#client = client
    this.#clock = clock
  }

  /** Of the last half hour. What was known before, where the API server does not answer. */
  async of(cluster: string): Promise<readonly Change[]> {
    const reading = this.#refresh()
    if (reading !== undefined) {
      let timer: NodeJS.Timeout | undefined
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, PATIENCE_MS)
      })
      await Promise.race([reading, patience])
      clearTimeout(timer)
    }
    return this.#recent().filter((event) => event.cluster === cluster)
  }

  /** Of the last half hour, of all clusters, as known: nobody waits for the API server, the next look knows more. */
  ofAll(): readonly Change[] {
    void this.#refresh()
    return this.#recent()
  }

  #recent(): readonly Change[] {
    const since = this.#clock.now() - RECENT_MS
    return this.#known.filter(({ at }) => at >= since)
  }

  /** undefined = what is known is fresh. */
  #refresh(): Promise<void> | undefined {
    if (this.#clock.monotonic() - this.#readAtMs <= KEPT_MS) return undefined
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    try {
      const { items = [] } = (await this.#client?.list(EVENTS, NAMESPACE)) ?? {}
      this.#known = items.flatMap(changeOf)
    } catch {
      // They are an extra: the gateway may not have the right to read them.
    }
    this.#readAtMs = this.#clock.monotonic()
  }
}

function changeOf(event: JsonObject): Change[] {
  const about = recordOf(event['involvedObject'])
  if (about['kind'] !== 'UpstreamCluster') return []
  const at = Date.parse(textOf(event['lastTimestamp']))
  if (Number.isNaN(at)) return []
  const count = typeof event['count'] === 'number' && event['count'] > 1 ? ` (${event['count']} times)` : ''
  const text = clip(`${textOf(event['reason'])}: ${textOf(event['message'])}${count}`)
  const severity = event['type'] === 'Warning' ? 'bad' : 'neutral'
  return [{ at, kind: 'event', cluster: textOf(about['name']), severity, text, by: '' }]
}
