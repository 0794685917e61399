// The parts of an UpstreamCluster that are no rules, compiled: endpoints, limits, credentials, health check, degrade
// switch, authentication. All defaults that src/api/upstream-cluster/upstream-cluster.ts documents are applied here.

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

const DEFAULT_WEIGHT = 100
const DEFAULT_PORTS = { http: 80, https: 443 } as const
const SECOND_MS = 1000

const ENDPOINT = /^(https?):\/\/(?:\[([^\]]*)\]|([^:/?#]*))(?::(\d+))?/i

/** An endpoint that is named twice counts once, as the first time. */
export function compileEndpoints(servers: readonly UpstreamServer[]): readonly CompiledEndpoint[] {
  const endpoints = new Map<string, CompiledEndpoint>()
  for (const server of servers) {
    if (!endpoints.has(server.endpoint)) endpoints.set(server.endpoint, compileEndpoint(server))
  }
  return [...endpoints.values()]
}

function compileEndpoint(server: UpstreamServer): CompiledEndpoint {
  const [, scheme = '', ipv6, name = '', port] = ENDPOINT.exec(server.endpoint) ?? []
  const known = scheme.toLowerCase() === 'http' ? 'http' : 'https'
  return {
    url: server.endpoint,
    scheme: known,
    host: ipv6 ?? name,
    port: port === undefined ? DEFAULT_PORTS[known] : Number(port),
    disabled: server.disabled ?? false,
    weight: server.weight ?? DEFAULT_WEIGHT,
  }
}

/** A `global*` limit stands beside its local one, and a request needs both. */
export function compileSchema(schema: FlowControlSchema): CompiledSchema {
  const { qps, burst } = schema.tokenBucket ?? { qps: 0, burst: 0 }
  const { max } = schema.maxRequestsInflight ?? { max: 0 }
  return {
    name: schema.name,
    kind: kindOf(schema),
    qps,
    burst,
    max,
    perUser: schema.perUser ?? false,
    maxWatches: schema.maxWatches ?? 0,
    shadow: schema.shadow ?? false,
    strategy: schema.strategy ?? '',
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
export function compileClient(client: ClientConfig, endpoints: readonly CompiledEndpoint[]): CompiledClient {
  const ca = decode(client.caData)
  const inClear = endpoints.some(({ scheme }) => scheme === 'http')
  const divisor = client.qpsDivisor ?? 0
  const qps = (client.qps ?? 0) / (divisor > 1 ? divisor : 1)
  return {
    insecure: client.insecure === true && ca === '',
    // Token files end with a newline, which no header can carry.
    bearerToken: inClear ? '' : decode(client.bearerToken).trim(),
    ...compilePair(client),
    ca,
    serverName: client.serverName ?? '',
    qps,
    burst: client.burst ?? 0,
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

export function compileHealthCheck(check: HealthCheck): CompiledHealthCheck {
  return {
    path: check.path ?? '/readyz',
    intervalMs: (check.intervalSeconds ?? 5) * SECOND_MS,
    timeoutMs: (check.timeoutSeconds ?? 3) * SECOND_MS,
    healthyThreshold: check.healthyThreshold ?? 1,
    unhealthyThreshold: check.unhealthyThreshold ?? 2,
  }
}

/** KubeGateway's switch, when thrown, outranks spec.degrade: it may only be stricter. Exempt rules stay in force. */
export function compileDegrade(degrade: Degrade, denyAllRequests: boolean): CompiledDegrade {
  const exempt = (degrade.exempt ?? []).map(compileRule)
  const shadow = degrade.shadow ?? false
  if (denyAllRequests) {
    const reason = `annotation ${FEATURE_GATES_ANNOTATION}: DenyAllRequests=true`
    return { mode: 'Freeze', reason, expiresAtMs: 0, expiresAt: '', exempt, shadow: false }
  }
  const expiresAt = degrade.expiresAt ?? ''
  const expiresAtMs = Date.parse(expiresAt)
  return {
    mode: degrade.mode ?? 'Off',
    reason: degrade.reason ?? '',
    expiresAtMs: Number.isNaN(expiresAtMs) ? 0 : expiresAtMs,
    expiresAt,
    exempt,
    shadow,
  }
}

export function compileAuthentication(authentication: Authentication): CompiledAuthentication {
  return {
    audiences: authentication.audiences ?? [],
    successTtlMs: (authentication.tokenSuccessTTLSeconds ?? 60) * SECOND_MS,
    failureTtlMs: (authentication.tokenFailureTTLSeconds ?? 10) * SECOND_MS,
    anonymous: authentication.anonymous ?? true,
    revoked: compileRevocation(authentication.revoked ?? []),
  }
}
