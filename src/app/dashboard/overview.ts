// The overview: all clusters at one look, a page of tiles at a time.

import type {
  CertificateRow,
  Change,
  ClusterTile,
  Overview,
  ProblemRow,
  RefusalRow,
  SwitchInForce,
} from '../../api/insight/overview.ts'
import type { SourceError } from '../../api/ports/ports.ts'
import { certificateEnds } from '../../controllers/status/certificates.ts'
import { type ChangeLog, clip } from '../../core/insight/change-log.ts'
import { chooseTiles, type TileChoice } from '../../core/insight/choose-tiles.ts'
import { isHurting } from '../../core/insight/troubles.ts'
import { certificateTimes } from '../../io/pki/certificate-validity.ts'
import type { LiveCluster } from '../../state/clusters.ts'
import type { OwnCertificate } from '../certificates/own-certificates.ts'
import { type ClusterSample, type Samples, short } from './samples.ts'
import { type TileDeps, tileOf, withSpark } from './tiles.ts'

export interface OverviewDeps extends TileDeps {
  readonly clusters: { values(): Iterable<LiveCluster>; readonly generation: number }
  readonly samples: Samples
  readonly changes: Pick<ChangeLog, 'recent'>
  readonly version: string
  readonly replica: string
  problems(): readonly SourceError[]
  /** Of the gateway itself. */
  certificates(): readonly OwnCertificate[]
}

const DAY_MS = 24 * 60 * 60 * 1000
const SOON_MS = 30 * DAY_MS
/** Entries of each list. */
const MAX_ROWS = 50

export function overviewOf(deps: OverviewDeps, choice: TileChoice): Overview {
  const { samples, clock, changes, clusters } = deps
  const tiles = [...clusters.values()].map((live) => tileOf(live, deps))
  const { tiles: chosen, matching, page, pages } = chooseTiles(tiles, choice)
  const lists = {
    switches: switchesOf(tiles),
    changes: changes.recent(clock.now()),
    refusals: refusalsOf(samples),
    certificates: endingSoon(deps),
    problems: deps.problems().map(problemRow),
  }
  const omitted = Object.entries(lists).flatMap(([name, list]): [string, number][] =>
    list.length > MAX_ROWS ? [[name, list.length - MAX_ROWS]] : [],
  )
  const first = <T>(list: readonly T[]): readonly T[] => list.slice(0, MAX_ROWS)
  return {
    sampledAt: samples.takenAt,
    version: deps.version,
    replicas: [deps.replica],
    missing: [],
    totals: totalsOf(tiles, samples),
    clusters: chosen.map((tile) => withSpark(tile, samples.of(tile.name))),
    matching,
    page,
    pages,
    switches: first<SwitchInForce>(lists.switches),
    changes: first<Change>(lists.changes),
    refusals: first<RefusalRow>(lists.refusals),
    certificates: first<CertificateRow>(lists.certificates),
    problems: first<ProblemRow>(lists.problems),
    omitted: Object.fromEntries(omitted),
  }
}

function totalsOf(tiles: readonly ClusterTile[], { all, takenAt }: Samples): Overview['totals'] {
  return {
    clusters: tiles.length,
    hurting: tiles.filter(isHurting).length,
    switched: tiles.filter(({ degrade }) => degrade !== null).length,
    requestsPerSecond: short(all.requests.last),
    errorsPerSecond: short(all.errors.last),
    refusedPerSecond: short(all.refused.last),
    inFlight: all.totals?.inFlight ?? 0,
    watches: all.totals?.watches ?? 0,
    series: all.series(takenAt),
  }
}

/** Those that end next come first, then those without an end. */
function switchesOf(tiles: readonly ClusterTile[]): readonly SwitchInForce[] {
  const switches = tiles.flatMap(({ name, degrade }) => (degrade === null ? [] : [{ cluster: name, ...degrade }]))
  const end = ({ expiresAt }: SwitchInForce): number => (expiresAt === 0 ? Number.POSITIVE_INFINITY : expiresAt)
  return switches.sort((a, b) => (end(a) === end(b) ? (a.cluster < b.cluster ? -1 : 1) : end(a) - end(b)))
}

function refusalsOf(samples: Samples): readonly RefusalRow[] {
  const rows = [...samples.entries()].flatMap(([cluster, sample]: [string, ClusterSample]) => sample.refusals(cluster))
  return rows
    .map((row) => ({ ...row, rule: clip(row.rule), perSecond: short(row.perSecond) }))
    .sort((a, b) => b.count - a.count)
}

function endingSoon({ clusters, certificates, clock }: OverviewDeps): readonly CertificateRow[] {
  const own = certificates().flatMap(({ name, pem }): CertificateRow[] => {
    const [times] = certificateTimes(pem)
    return times === undefined ? [] : [{ cluster: '', certificate: name, endsAt: times.endsMs }]
  })
  const theirs = [...clusters.values()].flatMap(({ compiled }) =>
    certificateEnds(compiled).map(([certificate, endsAt]) => ({ cluster: compiled.name, certificate, endsAt })),
  )
  const soon = [...own, ...theirs].filter(({ endsAt }) => endsAt - clock.now() <= SOON_MS)
  return soon.sort((a, b) => a.endsAt - b.endsAt)
}

export function problemRow({ cluster = '', severity, path, message }: SourceError): ProblemRow {
  return { cluster, severity, message: clip(path === '' ? message : `${path}: ${message}`) }
}
