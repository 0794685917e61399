// What differs between two versions of a cluster, or of what is known of it, in words.

import type { ChangeKind } from '../../api/insight/overview.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { clip } from './change-log.ts'

/** Without time, place and user. */
export interface Difference {
  readonly kind: ChangeKind
  readonly severity: 'good' | 'neutral' | 'bad'
  readonly text: string
}

/** What of a cluster is watched beside its object. */
export interface Watched {
  /** In force: Off when it has expired. */
  readonly mode: string
  readonly shadow: boolean
  readonly reason: string
  /** By endpoint: whether it takes requests. */
  readonly endpoints: ReadonlyMap<string, boolean>
}

/** Parts of a spec by their names there, as far as they are compiled. */
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

/** @param before, after undefined = there is none. The mode is told by `watchedDifferences`. */
export function objectDifference(
  before: CompiledCluster | undefined,
  after: CompiledCluster | undefined,
): Difference | undefined {
  if (before === undefined) return { kind: 'cluster', severity: 'neutral', text: 'added' }
  if (after === undefined) return { kind: 'cluster', severity: 'bad', text: 'removed' }
  const changed = PARTS.filter(([, part]) => textOf(part(before)) !== textOf(part(after))).map(([name]) => name)
  if (changed.length === 0) return undefined
  return { kind: 'cluster', severity: 'neutral', text: `changed: ${changed.join(', ')}` }
}

export function watchedDifferences(before: Watched, after: Watched): readonly Difference[] {
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

/** Plain data with sets in it. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner instanceof Set || inner instanceof Map ? [...inner] : inner instanceof Uint8Array ? [...inner] : inner,
  )
}
