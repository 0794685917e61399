// The overview: all clusters at a glance, one page of tiles at a time.

import type { SourceError } from '../../../gateway/api/resource-source.ts'
import { certificateEnds } from '../../../gateway/controllers/status/certificates.ts'
import type { LiveCluster } from '../../../gateway/state/clusters.ts'
import { short } from '../../../kit/core/text/figures.ts'
import { certificateTimes } from '../../../pki/io/certificate-validity.ts'
import type { OwnCertificate } from '../../../process/certificates/own-certificates.ts'
import type { CertificateRow, Change, ProblemRow, ShownRefusals } from '../../api/overview.ts'
import { MAX_PART_ROWS, type OverviewPart, PART_FORMAT, type TotalsPart } from '../../api/parts.ts'
import { type ChangeLog, clip } from '../../core/dashboard/change-log.ts'
import type { ClusterSample, Samples } from './samples.ts'
import { type TileDeps, tileOf } from './tiles.ts'

export interface OverviewDeps extends TileDeps {
  readonly clusters: { values(): Iterable<LiveCluster>; readonly generation: number }
  readonly samples: Samples
  readonly changes: Pick<ChangeLog, 'recent'>
  readonly version: string
  problems(): readonly SourceError[]
  /** Known Events about clusters in the API server. */
  recentEvents(): readonly Change[]
  /** The gateway's own certificates. */
  certificates(): readonly OwnCertificate[]
}

const DAY_MS = 24 * 60 * 60 * 1000
const SOON_MS = 30 * DAY_MS

/** What this replica knows about all clusters. */
export function overviewPart(deps: OverviewDeps): OverviewPart {
  const { samples, clock, changes, clusters, version } = deps
  const lists = {
    changes: [...changes.recent(clock.now()), ...deps.recentEvents()].sort((a, b) => b.at - a.at),
    refusals: refusalsOf(samples),
    certificates: endingSoon(deps),
    problems: deps.problems().map(problemRow),
  }
  const omitted = Object.entries(lists).flatMap(([name, list]): [string, number][] =>
    list.length > MAX_PART_ROWS ? [[name, list.length - MAX_PART_ROWS]] : [],
  )
  return {
    format: PART_FORMAT,
    sampledAt: samples.takenAt,
    version,
    totals: totalsOf(samples),
    tiles: [...clusters.values()].map((live) => tileOf(live, deps)),
    changes: lists.changes.slice(0, MAX_PART_ROWS),
    refusals: lists.refusals.slice(0, MAX_PART_ROWS),
    certificates: lists.certificates.slice(0, MAX_PART_ROWS),
    problems: lists.problems.slice(0, MAX_PART_ROWS),
    omitted: Object.fromEntries(omitted),
  }
}

function totalsOf({ all, takenAt }: Samples): TotalsPart {
  return {
    requestsPerSecond: short(all.requests.last),
    errorsPerSecond: short(all.errors.last),
    refusedPerSecond: short(all.refused.last),
    inFlight: all.totals?.inFlight ?? 0,
    watches: all.totals?.watches ?? 0,
    series: all.series(takenAt),
  }
}

function refusalsOf(samples: Samples): readonly ShownRefusals[] {
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
