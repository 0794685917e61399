// UpstreamCluster -> CompiledCluster: defaults applied, bytes decoded, names turned into indexes.

import type { ResolvedCluster } from '../../api/ports/ports.ts'
import { parseFeatureGates } from '../../api/upstream-cluster/feature-gates.ts'
import type { DispatchPolicy } from '../../api/upstream-cluster/upstream-cluster.ts'
import { FEATURE_GATES_ANNOTATION } from '../../api/upstream-cluster/upstream-cluster.ts'
import { canonicalIp } from '../../api/validation/ip-address.ts'
import { compileProtection } from './compile-protection.ts'
import { compileAccess, compileRule } from './compile-rules.ts'
import {
  compileAuthentication,
  compileClient,
  compileDegrade,
  compileEndpoints,
  compileHealthCheck,
  compilePair,
  compileSchema,
  decode,
} from './compile-settings.ts'
import type { CompiledCluster, CompiledEndpoint, CompiledPolicy, CompiledSchema } from './compiled-cluster.ts'

/**
 * Everything that the request path needs, with all defaults applied. Does not throw on an object that validation
 * accepts, and fails closed on what it would not: an unknown endpoint in a subset serves nothing.
 */
export function compileCluster(resolved: ResolvedCluster): CompiledCluster {
  const { metadata, spec } = resolved.object
  const gates = parseFeatureGates(metadata.annotations?.[FEATURE_GATES_ANNOTATION] ?? '').enabled
  const endpoints = compileEndpoints(spec.servers)
  const schemas = (spec.flowControl?.flowControlSchemas ?? []).map(compileSchema)
  return {
    name: metadata.name,
    revision: resolved.revision,
    hosts: hostNames([metadata.name, ...(spec.secureServing?.serverNames ?? [])]),
    ips: spec.addresses?.ips ?? [],
    ports: spec.addresses?.ports ?? [],
    isDefault: spec.default ?? false,
    endpoints,
    client: compileClient(spec.clientConfig ?? {}, endpoints),
    serving: {
      ...compilePair(spec.secureServing ?? {}),
      clientCA: decode(spec.secureServing?.clientCAData),
    },
    schemas,
    policies: spec.dispatchPolicies.map((policy, index) => compilePolicy(policy, index, endpoints, schemas)),
    logMode: spec.logging?.mode ?? '',
    healthCheck: compileHealthCheck(spec.healthCheck ?? {}),
    access: spec.accessControl === undefined ? undefined : compileAccess(spec.accessControl),
    degrade: compileDegrade(spec.degrade ?? {}, gates.has('DenyAllRequests')),
    authentication: compileAuthentication(spec.authentication ?? {}),
    protection: spec.podProtection === undefined ? undefined : compileProtection(spec.podProtection, metadata.name),
    closeWhenIdle: gates.has('CloseConnectionWhenIdle'),
  }
}

function hostNames(names: readonly string[]): readonly string[] {
  // The checks have said that an address is none: an IP in spec.addresses is.
  const [own = '', ...others] = names
  const hosts = [own, ...others.filter((name) => canonicalIp(name) === undefined)]
  return [...new Set(hosts.map((name) => name.toLowerCase().replace(/\.$/, '')))]
}

function compilePolicy(
  policy: DispatchPolicy,
  index: number,
  endpoints: readonly CompiledEndpoint[],
  schemas: readonly CompiledSchema[],
): CompiledPolicy {
  const subset = policy.upstreamSubset ?? []
  const indexes = subset.map((url) => endpoints.findIndex((endpoint) => endpoint.url === url))
  const schemaName = policy.flowControlSchemaName ?? ''
  return {
    index,
    rules: policy.rules.map(compileRule),
    strategy: policy.strategy ?? 'RoundRobin',
    endpoints: subset.length === 0 ? [...endpoints.keys()] : [...new Set(indexes.filter((at) => at >= 0))],
    schema: schemaName === '' ? -1 : schemas.findIndex((schema) => schema.name === schemaName),
    logMode: policy.logMode ?? '',
    deny: policy.action === 'Deny',
    shadow: policy.shadow ?? false,
  }
}
