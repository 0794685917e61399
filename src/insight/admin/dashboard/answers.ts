// Read-only JSON for the dashboard.

import { type AdminRoute, jsonResponse, PLAIN_TEXT } from '../../../admin/io/server/route.ts'
import type { ExplainInput, ExplainOutput } from '../../../gateway/core/explain/explain-request.ts'
import type { PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import type { ClusterPage } from '../../api/cluster-page.ts'
import type { Overview } from '../../api/overview.ts'
import { type ClusterPart, type ClusterPartAnswer, type OverviewPart, PART_FORMAT } from '../../api/parts.ts'
import { readTileChoice, type TileChoice } from '../../core/dashboard/choose-tiles.ts'
import { withTag } from './assets.ts'

interface DashboardSource {
  /** @param all include all replicas, not just this one */
  overview(choice: TileChoice, all: boolean): Promise<Overview>
  /** This replica's part, for the replica that merges them. */
  overviewPart(): OverviewPart
  /** undefined = no such cluster. @param all as above */
  cluster(name: string, all: boolean): Promise<ClusterPage | undefined>
  /** null = unknown to this replica. */
  clusterPart(name: string): Promise<ClusterPart | null>
  explain(input: ExplainInput): ExplainOutput
}

const CLUSTERS = '/api/v1/clusters/'
/** metadata.name. */
const MAX_NAME = 253
/** More groups than any token has. */
const MAX_GROUPS = 1000

export function dashboardRoutes(source: DashboardSource): readonly AdminRoute[] {
  return [
    {
      path: '/api/v1/overview',
      method: 'GET',
      access: 'view',
      replicas: true,
      answer: (request) => overviewAnswer(request, source),
    },
    {
      path: `${CLUSTERS}*`,
      method: 'GET',
      access: 'view',
      replicas: true,
      answer: (request) => clusterAnswer(request, source),
    },
    { path: '/api/v1/explain', method: 'GET', access: 'view', answer: (request) => explainAnswer(request, source) },
  ]
}

async function overviewAnswer(request: PlainRequest, source: DashboardSource): Promise<PlainResponse> {
  if (asksForPart(request)) return json(request, source.overviewPart())
  return json(request, await source.overview(readTileChoice(request.query), asksAll(request)))
}

/** Another replica requests this part in order to merge it. */
function asksForPart({ query }: PlainRequest): boolean {
  return query.get('part') === String(PART_FORMAT)
}

function asksAll({ query }: PlainRequest): boolean {
  return query.get('replicas') === 'all'
}

async function clusterAnswer(request: PlainRequest, source: DashboardSource): Promise<PlainResponse> {
  const name = decoded(request.path.slice(CLUSTERS.length))
  const valid = name !== undefined && name.length <= MAX_NAME
  if (valid && asksForPart(request)) {
    const answer: ClusterPartAnswer = { format: PART_FORMAT, cluster: await source.clusterPart(name) }
    return json(request, answer)
  }
  const page = valid ? await source.cluster(name, asksAll(request)) : undefined
  if (page === undefined) return { code: 404, contentType: PLAIN_TEXT, body: 'There is no such cluster.\n' }
  return json(request, page)
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

function explainAnswer(request: PlainRequest, source: DashboardSource): PlainResponse {
  const { query } = request
  const target = query.get('target') ?? ''
  const input: ExplainInput = { method: query.get('method') ?? 'GET', target }
  if (!target.startsWith('/')) return { code: 400, contentType: PLAIN_TEXT, body: 'target must begin with /\n' }
  for (const key of ['host', 'user', 'userAgent', 'remoteAddress'] as const) {
    const value = query.get(key)
    if (value !== null) input[key] = value
  }
  const groups = query.getAll('group').slice(0, MAX_GROUPS)
  if (groups.length > 0) input.groups = groups
  return json(request, source.explain(input))
}

function json(request: PlainRequest, value: object): PlainResponse {
  return withTag(request, jsonResponse(value))
}
