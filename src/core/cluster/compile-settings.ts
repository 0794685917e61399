// The parts of an UpstreamCluster that are no rules, compiled: endpoints, limits, credentials, health check, degrade
// switch, authentication. Defaults come from the schema.

import { type Complete, complete, fieldOf, itemOf, type Schema } from '../../api/kube/json-schema.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../api/upstream-cluster/schema.ts'
import type {
  Authentication,
  ClientConfig,
  Degrade,
  FlowControlSchema,
  HealthCheck,
  UpstreamServer,
} from '../../api/upstream-cluster/upstream-cluster.ts'
import { FEATURE_GATES_ANNOTATION } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileRule } from './compile-rules.ts'
import type {
  CompiledAuthentication,
  CompiledClient,
  CompiledDegrade,
  CompiledEndpoint,
  CompiledHealthCheck,
  CompiledSchema,
  CompiledSharedLimit,
} from './compiled-cluster.ts'
import { compileRevocation } from './revocation.ts'

const DEFAULT_PORTS = { http: 80, https: 443 } as const
const SECOND_MS = 1000
const DEGRADE = fieldOf(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'degrade')

const ENDPOINT = /^(https?):\/\/(?:\[([^\]]*)\]|([^:/?#]*))(?::(\d+))?/i

/** An endpoint that is named twice counts once, as the first time. */
export function compileEndpoints(
  servers: readonly UpstreamServer[],
  schema: Schema<readonly UpstreamServer[]>,
): readonly CompiledEndpoint[] {
  const endpoints = new Map<string, CompiledEndpoint>()
  for (const server of servers) {
    if (!endpoints.has(server.endpoint))
      endpoints.set(server.endpoint, compileEndpoint(complete(itemOf(schema), server)))
  }
  return [...endpoints.values()]
}

function compileEndpoint({ endpoint, disabled, weight }: Complete<UpstreamServer>): CompiledEndpoint {
  const [, scheme = '', ipv6, name = '', port] = ENDPOINT.exec(endpoint) ?? []
  const known = scheme.toLowerCase() === 'http' ? 'http' : 'https'
  return {
    url: endpoint,
    scheme: known,
    host: ipv6 ?? name,
    port: port === undefined ? DEFAULT_PORTS[known] : Number(port),
    disabled,
    weight,
  }
}

/** A `global*` limit stands beside its local one, and a request needs both. */
export function compileSchema(schema: FlowControlSchema, of: Schema<FlowControlSchema>): CompiledSchema {
  const { name, perUser, maxWatches, shadow, strategy = '' } = complete(of, schema)
  const { qps, burst } = schema.tokenBucket ?? { qps: 0, burst: 0 }
  const { max } = schema.maxRequestsInflight ?? { max: 0 }
  return {
    name,
    kind: kindOf(schema),
    qps,
    burst,
    max,
    perUser,
    maxWatches,
    shadow,
    strategy,
    shared: sharedLimit(schema),
  }
}

/** What all replicas share; a limit of each user is never shared. */
function sharedLimit(schema: FlowControlSchema): CompiledSharedLimit | undefined {
  const { strategy, globalTokenBucket: bucket, globalMaxRequestsInflight: inflight } = schema
  if ((strategy !== 'globalAllocate' && strategy !== 'globalCount') || schema.perUser === true) return undefined
  const kind = kindOf(schema)
  if (kind === 'tokenBucket' && bucket !== undefined) return { qps: bucket.qps, burst: bucket.burst, max: 0 }
  if (kind === 'maxRequestsInflight' && inflight !== undefined) return { qps: 0, burst: 0, max: inflight.max }
  return undefined
}

function kindOf(schema: FlowControlSchema): CompiledSchema['kind'] {
  if (schema.tokenBucket !== undefined) return 'tokenBucket'
  return schema.maxRequestsInflight !== undefined ? 'maxRequestsInflight' : 'exempt'
}

/**
 * What the checks have warned about is in force as they said: a CA verifies whatever `insecure` says, a key without a certificate
 * is none. And whatever they said, no token leaves in clear.
 */
export function compileClient(
  given: ClientConfig | undefined,
  endpoints: readonly CompiledEndpoint[],
  schema: Schema<ClientConfig>,
): CompiledClient {
  const client = complete(schema, given)
  const ca = decode(client.caData)
  const inClear = endpoints.some(({ scheme }) => scheme === 'http')
  return {
    insecure: client.insecure && ca === '',
    // Token files end with a newline, which no header can carry.
    bearerToken: inClear ? '' : decode(client.bearerToken).trim(),
    ...compilePair(client),
    ca,
    serverName: client.serverName,
    qps: client.qps / Math.max(1, client.qpsDivisor),
    burst: client.burst,
  }
}

/** Key and certificate; neither where one of them is missing. */
export function compilePair({
  keyData = '',
  certData = '',
}: {
  readonly keyData?: string
  readonly certData?: string
}): {
  readonly key: string
  readonly cert: string
} {
  return keyData === '' || certData === '' ? { key: '', cert: '' } : { key: decode(keyData), cert: decode(certData) }
}

/** Base64 to text; '' when absent. */
export function decode(data: string | undefined): string {
  return data === undefined ? '' : Buffer.from(data, 'base64').toString('utf8')
}

export function compileHealthCheck(check: HealthCheck | undefined, schema: Schema<HealthCheck>): CompiledHealthCheck {
  const { intervalSeconds, timeoutSeconds, ...others } = complete(schema, check)
  return { ...others, intervalMs: intervalSeconds * SECOND_MS, timeoutMs: timeoutSeconds * SECOND_MS }
}

/** KubeGateway's switch, when thrown, outranks spec.degrade: it may only be stricter. Exempt rules stay in force. */
export function compileDegrade(
  degrade: Degrade | undefined,
  denyAllRequests: boolean,
  schema: Schema<Degrade> = DEGRADE,
): CompiledDegrade {
  const { exempt: rules = [], ...given } = complete(schema, degrade)
  const exempt = rules.map(compileRule)
  if (denyAllRequests) {
    const reason = `annotation ${FEATURE_GATES_ANNOTATION}: DenyAllRequests=true`
    return { mode: 'Freeze', reason, expiresAtMs: 0, expiresAt: '', exempt, shadow: false }
  }
  const expiresAtMs = Date.parse(given.expiresAt)
  return { ...given, expiresAtMs: Number.isNaN(expiresAtMs) ? 0 : expiresAtMs, exempt }
}

export function compileAuthentication(
  given: Authentication | undefined,
  schema: Schema<Authentication>,
): CompiledAuthentication {
  const { audiences = [], anonymous, revoked = [], ...ttl } = complete(schema, given)
  return {
    audiences,
    successTtlMs: ttl.tokenSuccessTTLSeconds * SECOND_MS,
    failureTtlMs: ttl.tokenFailureTTLSeconds * SECOND_MS,
    anonymous,
    revoked: compileRevocation(revoked),
  }
}
