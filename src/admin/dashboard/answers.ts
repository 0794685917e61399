// The JSON that the dashboard asks for. It only reads.

import type { ClusterPage } from '../../api/insight/cluster-page.ts'
import type { Overview } from '../../api/insight/overview.ts'
import type { ExplainInput, ExplainOutput } from '../../core/explain/explain-request.ts'
import { readTileChoice, type TileChoice } from '../../core/insight/choose-tiles.ts'
import type { PlainRequest, PlainResponse } from '../../io/listener/http-plain.ts'
import { type AdminRoute, jsonResponse, TEXT } from '../route.ts'
import { withTag } from './assets.ts'

export interface DashboardSource {
  overview(choice: TileChoice): Overview
  /** undefined = there is no such cluster. */
  cluster(name: string): Promise<ClusterPage> | undefined
  explain(input: ExplainInput): ExplainOutput
}

const CLUSTERS = '/api/v1/clusters/'
/** metadata.name. */
const MAX_NAME = 253
/** More groups than a token has. */
const MAX_GROUPS = 1000

export function dashboardRoutes(source: DashboardSource): readonly AdminRoute[] {
  return [
    {
      path: '/api/v1/overview',
      method: 'GET',
      access: 'view',
      answer: (request) => json(request, source.overview(readTileChoice(request.query))),
    },
    { path: `${CLUSTERS}*`, method: 'GET', access: 'view', answer: (request) => clusterAnswer(request, source) },
    { path: '/api/v1/explain', method: 'GET', access: 'view', answer: (request) => explainAnswer(request, source) },
  ]
}

async function clusterAnswer(request: PlainRequest, source: DashboardSource): Promise<PlainResponse> {
  const name = decoded(request.path.slice(CLUSTERS.length))
  const page = name === undefined || name.length > MAX_NAME ? undefined : await source.cluster(name)
  if (page === undefined) return { code: 404, contentType: TEXT, body: 'There is no such cluster.\n' }
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
  if (!target.startsWith('/')) return { code: 400, contentType: TEXT, body: 'target must begin with /\n' }
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
