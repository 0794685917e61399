// Detects changes of clusters: of objects when a change is in force, of modes and endpoints by polling every two seconds, so that an expired mode is
// reported, too.

import type { ResolvedCluster } from '../../../gateway/api/resource-source.ts'
import { certificateEnds } from '../../../gateway/controllers/status/certificates.ts'
import type { CompiledCluster } from '../../../gateway/core/cluster/compiled-cluster.ts'
import { ejectable, isEjected } from '../../../gateway/core/endpoints/endpoint-health.ts'
import { effectiveMode } from '../../../gateway/core/policy/degrade.ts'
import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import type { EndpointSet } from '../../../gateway/state/endpoints.ts'
import type { Change, ChangeKind } from '../../api/overview.ts'
import { type ChangeLog, clip } from '../../core/dashboard/change-log.ts'
import { type SwitchedBy, type SwitchedHere, switchedBy } from './switched-by.ts'

interface WatchChangesDeps {
  readonly clusters: {
    values(): Iterable<LiveCluster>
    get(name: string): LiveCluster | undefined
    readonly size: number
  }
  readonly clock: { now(): number; monotonic(): number }
  readonly log: ChangeLog
  /** undefined = not set on this machine. */
  switchedHere(cluster: string): SwitchedHere | undefined
  /** The object in force; undefined = unknown. */
  object(cluster: string): ResolvedCluster | undefined
}

export class ChangeWatch {
  readonly #deps: WatchChangesDeps
  readonly #objects = new Map<string, CompiledCluster>()
  readonly #watched = new Map<string, Watched>()
  readonly #switches = new Map<string, SwitchedBy>()
  /** The initial state is not a change. */
  #primed = false

  constructor(deps: WatchChangesDeps) {
    this.#deps = deps
  }

  /** Who set the mode in force. */
  switchOf(cluster: string): SwitchedBy {
    return this.#switches.get(cluster) ?? { by: '', since: 0 }
  }

  /** @param changed clusters that may differ; undefined = any */
  applied(changed: ReadonlySet<string> | undefined): void {
    const { clusters } = this.#deps
    const names =
      changed ?? new Set([...this.#objects.keys(), ...[...clusters.values()].map(({ compiled }) => compiled.name)])
    for (const name of names) this.#compare(name, clusters.get(name)?.compiled)
    this.look()
    if (clusters.size > 0) this.#primed = true
  }

  /** Checks modes and endpoints. */
  look(): void {
    const { clusters, clock } = this.#deps
    const [nowMs, monotonicMs] = [clock.now(), clock.monotonic()]
    for (const live of clusters.values()) {
      const { name } = live.compiled
      const before = this.#watched.get(name)
      if (before !== undefined && isStill(before, live, nowMs, monotonicMs)) continue
      const after = watchedOf(live, nowMs, monotonicMs)
      this.#watched.set(name, after)
      if (before === undefined) this.#learnSwitch(name, after)
      else for (const difference of watchedDifferences(before, after)) this.#watchedChanged(name, after, difference)
    }
  }

  #compare(name: string, after: CompiledCluster | undefined): void {
    const before = this.#objects.get(name)
    if (after === undefined) {
      this.#objects.delete(name)
      this.#watched.delete(name)
      this.#switches.delete(name)
    } else this.#objects.set(name, after)
    if (!this.#primed || (before === undefined && after === undefined)) return
    const difference = objectDifference(before, after)
    if (difference !== undefined) this.#tell(name, difference, '')
    if (before !== undefined && after !== undefined) this.#tellCertificates(before, after)
  }

  #tellCertificates(before: CompiledCluster, after: CompiledCluster): void {
    const ends = new Map(certificateEnds(before))
    for (const [certificate, endsMs] of certificateEnds(after)) {
      if (ends.get(certificate) === endsMs || !ends.has(certificate)) continue
      const text = `certificate ${certificate} replaced; it ends ${new Date(endsMs).toISOString()}`
      this.#tell(after.name, { kind: 'certificate', severity: 'neutral', text }, '')
    }
  }

  #watchedChanged(name: string, after: Watched, difference: Difference): void {
    if (difference.kind !== 'degrade') {
      this.#tell(name, difference, '')
      return
    }
    const { by } = this.#learnSwitch(name, after)
    const expired = after.mode === 'Off' && this.#objects.get(name)?.degrade.mode !== 'Off'
    this.#tell(name, difference, expired ? 'its expiry' : by)
  }

  #learnSwitch(name: string, { mode }: Watched): SwitchedBy {
    const { switchedHere, object, clock } = this.#deps
    const known = switchedBy(switchedHere(name), object(name))
    if (mode === 'Off') this.#switches.delete(name)
    else this.#switches.set(name, known.since === 0 && this.#primed ? { ...known, since: clock.now() } : known)
    return known
  }

  #tell(cluster: string, difference: Difference, by: string): void {
    const change: Change = { at: this.#deps.clock.now(), cluster, by, ...difference }
    this.#deps.log.add(change)
  }
}

function watchedOf({ compiled, endpoints }: LiveCluster, nowMs: number, monotonicMs: number): Watched {
  const { degrade } = compiled
  const mode = effectiveMode(degrade, nowMs)
  const up = new Map<string, boolean>()
  for (const [i, { url }] of endpoints.all.entries()) {
    const isUp = takesRequests(endpoints, i, monotonicMs)
    if (isUp !== undefined) up.set(url, isUp)
  }
  return { mode, shadow: degrade.shadow, reason: degrade.reason, endpoints: up }
}

/** Whether `watchedOf` would be the same. Allocates nothing: thousands of clusters are looked at every two seconds. */
function isStill(before: Watched, { compiled, endpoints }: LiveCluster, nowMs: number, monotonicMs: number): boolean {
  const { degrade } = compiled
  if (before.shadow !== degrade.shadow || before.reason !== degrade.reason) return false
  if (before.mode !== effectiveMode(degrade, nowMs)) return false
  let seen = 0
  for (let i = 0; i < endpoints.all.length; i++) {
    const isUp = takesRequests(endpoints, i, monotonicMs)
    if (isUp === undefined) continue
    if (before.endpoints.get(endpoints.all[i]?.url ?? '') !== isUp) return false
    seen++
  }
  return seen === before.endpoints.size
}

/** undefined = the endpoint is disabled, or was not checked yet. */
function takesRequests({ all }: EndpointSet, index: number, nowMs: number): boolean | undefined {
  const endpoint = all[index]
  if (endpoint === undefined || endpoint.compiled.disabled) return undefined
  const { health } = endpoint
  if (health.state === 'unknown') return undefined
  return health.state === 'healthy' && !(isEjected(health, nowMs) && ejectable(all, index, nowMs))
}

// Differences between two versions of a cluster, or of its watched state, in words.

/** Without time, place and user. */
interface Difference {
  readonly kind: ChangeKind
  readonly severity: 'good' | 'neutral' | 'bad'
  readonly text: string
}

/** Watched state of a cluster besides its object. */
interface Watched {
  /** In force: Off if it has expired. */
  readonly mode: string
  readonly shadow: boolean
  readonly reason: string
  /** Keyed by endpoint: whether it takes requests. */
  readonly endpoints: ReadonlyMap<string, boolean>
}

/** Parts of a spec by name, in compiled form. */
const PARTS: readonly (readonly [string, (cluster: CompiledCluster) => unknown])[] = [
  ['servers', ({ endpoints }) => endpoints],
  ['names', ({ hosts, ips, ports, isDefault }) => [hosts, ips, ports, isDefault]],
  ['client credentials', ({ client }) => client],
  ['serving certificate', ({ serving }) => serving],
  ['limits', ({ schemas }) => schemas],
  ['policies', ({ policies }) => policies],
  ['access lists', ({ access }) => access],
  ['authentication', ({ authentication }) => authentication],
  ['health check', ({ healthCheck }) => healthCheck],
  ['pod protection', ({ protection, scaleProtection }) => [protection, scaleProtection]],
  ['log mode', ({ logMode }) => logMode],
]

/** @param before, after undefined = there is none. `watchedDifferences` reports the mode. */
function objectDifference(
  before: CompiledCluster | undefined,
  after: CompiledCluster | undefined,
): Difference | undefined {
  if (before === undefined) return { kind: 'cluster', severity: 'neutral', text: 'added' }
  if (after === undefined) return { kind: 'cluster', severity: 'bad', text: 'removed' }
  const changed = PARTS.filter(([, part]) => textOf(part(before)) !== textOf(part(after))).map(([name]) => name)
  if (changed.length === 0) return undefined
  return { kind: 'cluster', severity: 'neutral', text: `changed: ${changed.join(', ')}` }
}

function watchedDifferences(before: Watched, after: Watched): readonly Difference[] {
  const found: Difference[] = []
  if (before.mode !== after.mode || (after.mode !== 'Off' && before.shadow !== after.shadow)) {
    const shadow = after.shadow && after.mode !== 'Off' ? ' in shadow mode' : ''
    const why = after.mode === 'Off' || after.reason === '' ? '' : `: ${clip(after.reason)}`
    const severity = after.mode === 'Off' ? 'good' : 'bad'
    found.push({ kind: 'degrade', severity, text: `degrade mode ${before.mode} → ${after.mode}${shadow}${why}` })
  }
  for (const [url, up] of after.endpoints) {
    const was = before.endpoints.get(url)
    if (was === undefined || was === up) continue
    found.push({ kind: 'endpoint', severity: up ? 'good' : 'bad', text: `${url} ${up ? 'is up' : 'is down'}` })
  }
  return found
}

/** Plain data that may contain sets. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner instanceof Set || inner instanceof Map ? [...inner] : inner instanceof Uint8Array ? [...inner] : inner,
  )
}
