// UpstreamCluster -> CompiledCluster: defaults applied, bytes decoded, names turned into indexes.

import {
  type Complete,
  complete,
  fieldOf,
  itemOf,
  type Schema,
  type ValueOf,
} from '../../../kit/api/json/json-schema.ts'
import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import { parseDuration } from '../../../kit/core/text/duration.ts'
import type { ResolvedCluster } from '../../api/resource-source.ts'
import { AUDIT_SCHEMA } from '../../api/upstream-cluster/audit-schema.ts'
import { parseFeatureGates } from '../../api/upstream-cluster/feature-gates.ts'
import { clusterOfMember } from '../../api/upstream-cluster/federation/federation.ts'
import { bytesOf, READ_CACHE_SCHEMA, type ReadCache } from '../../api/upstream-cluster/read-cache/read-cache.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../api/upstream-cluster/schema.ts'
import {
  type DispatchPolicy,
  FEATURE_GATES_ANNOTATION,
  type UpstreamClusterSpec,
} from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileProtection, compileScaleProtection } from './compile-protection.ts'
import { compileAccess, compileRule, compileWeight } from './compile-rules.ts'
import {
  compileAuthentication,
  compileAutoscaler,
  compileClient,
  compileDegrade,
  compileEndpoints,
  compileHealthCheck,
  compileListGuard,
  compilePair,
  compileSchema,
  decode,
  NO_ADDRESSES,
  type ServerAddresses,
} from './compile-settings.ts'
import type {
  CompiledCachedResource,
  CompiledCluster,
  CompiledEndpoint,
  CompiledFederation,
  CompiledPolicy,
  CompiledSchema,
  CompiledSessionRecording,
} from './compiled-cluster.ts'

/**
 * Everything the request path needs, with the schema's defaults. Does not throw on an object that passed validation, and fails closed on
 * one that would not: an unknown endpoint in a subset serves nothing.
 */
export function compileCluster(
  resolved: ResolvedCluster,
  schema: Schema<UpstreamClusterSpec> = UPSTREAM_CLUSTER_SPEC_SCHEMA,
  addresses: ServerAddresses = NO_ADDRESSES,
): CompiledCluster {
  const { metadata, spec } = resolved.object
  const gates = parseFeatureGates(metadata.annotations?.[FEATURE_GATES_ANNOTATION] ?? '').enabled
  // With members it has none; normalizing adds the empty list, and commands compile objects as the API server returns them.
  const endpoints = compileEndpoints(spec.servers ?? [], fieldOf(schema, 'servers'), addresses)
  const limit = itemOf(fieldOf(fieldOf(schema, 'flowControl'), 'flowControlSchemas'))
  const schemas = (spec.flowControl?.flowControlSchemas ?? []).map((one) => compileSchema(one, limit))
  const policy = itemOf(fieldOf(schema, 'dispatchPolicies'))
  return {
    name: metadata.name,
    labels: metadata.labels ?? {},
    revision: compiledRevision(resolved, addresses),
    hosts: hostNames([metadata.name, ...(spec.secureServing?.serverNames ?? [])]),
    ips: spec.addresses?.ips ?? [],
    ports: spec.addresses?.ports ?? [],
    isDefault: complete(schema, spec).default,
    endpoints,
    followsSlice: complete(schema, spec).followEndpointSlice,
    client: compileClient(spec.clientConfig, endpoints, fieldOf(schema, 'clientConfig')),
    serving: {
      ...compilePair(spec.secureServing ?? {}),
      clientCA: decode(spec.secureServing?.clientCAData),
    },
    schemas,
    policies: spec.dispatchPolicies.map((one, index) =>
      compilePolicy(complete(policy, one), index, endpoints, schemas),
    ),
    logMode: spec.logging?.mode ?? '',
    healthCheck: compileHealthCheck(spec.healthCheck, fieldOf(schema, 'healthCheck')),
    access:
      spec.accessControl === undefined
        ? undefined
        : compileAccess(spec.accessControl, fieldOf(schema, 'accessControl')),
    degrade: compileDegrade(spec.degrade, gates.has('DenyAllRequests'), fieldOf(schema, 'degrade')),
    authentication: compileAuthentication(spec.authentication, fieldOf(schema, 'authentication')),
    listGuard:
      spec.listGuard === undefined ? undefined : compileListGuard(spec.listGuard, fieldOf(schema, 'listGuard')),
    weights: (spec.shares?.weights ?? []).map(compileWeight),
    learnsLists: spec.listGuard !== undefined || schemas.some(({ cost }) => cost),
    protection:
      spec.podProtection === undefined
        ? undefined
        : compileProtection(spec.podProtection, metadata.name, fieldOf(schema, 'podProtection')),
    autoscaler:
      spec.autoscaler === undefined ? undefined : compileAutoscaler(spec.autoscaler, fieldOf(schema, 'autoscaler')),
    scaleProtection:
      spec.scaleProtection === undefined
        ? undefined
        : compileScaleProtection(spec.scaleProtection, fieldOf(schema, 'scaleProtection')),
    controllerManager: complete(fieldOf(schema, 'controllerManager'), spec.controllerManager ?? {}),
    federation: compileFederation(spec, schema),
    cache: spec.cache === undefined ? undefined : compileReadCache(spec.cache, fieldOf(schema, 'cache')),
    sessionRecording: compileSessionRecording(spec.audit, fieldOf(schema, 'audit')),
    closeWhenIdle: gates.has('CloseConnectionWhenIdle'),
  }
}

/** Differs between any two objects, and for one object with other addresses. */
export function compiledRevision({ revision }: Pick<ResolvedCluster, 'revision'>, addresses: ServerAddresses): string {
  if (addresses.size === 0) return revision
  return [revision, ...[...addresses].map(([server, all]) => `${server}=${all.join(',')}`)].join(' ')
}

function hostNames(names: readonly string[]): readonly string[] {
  // An IP address is not a host name (validation warns); it belongs in spec.addresses.
  const [own = '', ...others] = names
  const hosts = [own, ...others.filter((name) => canonicalIp(name) === undefined)]
  return [...new Set(hosts.map((name) => name.toLowerCase().replace(/\.$/, '')))]
}

function isOfServer({ url, of, also = [] }: CompiledEndpoint, server: string): boolean {
  return url === server || of?.url === server || also.some((other) => other.url === server)
}

function compilePolicy(
  policy: Complete<DispatchPolicy>,
  index: number,
  endpoints: readonly CompiledEndpoint[],
  schemas: readonly CompiledSchema[],
): CompiledPolicy {
  const subset = policy.upstreamSubset ?? []
  // A named server stands for all its addresses.
  const indexes = subset.flatMap((url) => {
    return [...endpoints.entries()].flatMap(([at, endpoint]) => (isOfServer(endpoint, url) ? [at] : []))
  })
  const { flowControlSchemaName: schemaName, strategy, logMode, shadow } = policy
  return {
    index,
    rules: policy.rules.map(compileRule),
    strategy,
    endpoints: subset.length === 0 ? [...endpoints.keys()] : [...new Set(indexes)],
    schema: schemaName === '' ? -1 : schemas.findIndex((schema) => schema.name === schemaName),
    logMode,
    deny: policy.action === 'Deny',
    shadow,
  }
}

type Audit = ValueOf<typeof AUDIT_SCHEMA>

/** spec.audit. undefined = sessions are not recorded. */
function compileSessionRecording(
  audit: Audit | undefined,
  schema: Schema<Audit> = AUDIT_SCHEMA,
): CompiledSessionRecording | undefined {
  if (audit?.sessions === undefined) return undefined
  const { record, portForwards, whenFull } = complete(fieldOf(schema, 'sessions'), audit.sessions)
  return { input: record === 'InputAndOutput', portForwards, isRequired: whenFull === 'Block' }
}

/** spec.members and spec.federation. undefined = the cluster has servers of its own. */
function compileFederation(
  { members = [], federation }: UpstreamClusterSpec,
  schema: Schema<UpstreamClusterSpec>,
): CompiledFederation | undefined {
  if (members.length === 0) return undefined
  const ofFederation = fieldOf(schema, 'federation')
  const resource = itemOf(fieldOf(ofFederation, 'resources'))
  const { mode, partial, denied, resources = [] } = complete(ofFederation, federation ?? {})
  return {
    members: members.map((member) => ({
      name: member.name,
      cluster: clusterOfMember(member),
      trustsUsers: complete(itemOf(fieldOf(schema, 'members')), member).trustUsers,
    })),
    mode,
    resources: resources.map((one) => complete(resource, one)),
    omitsUnread: partial === 'Omit',
    omitsDenied: denied === 'Omit',
  }
}

const ALL_NAMESPACES = ['']
const ENCODINGS = { JSON: 'json', Protobuf: 'protobuf' } as const
const ALL_ENCODINGS = ['JSON', 'Protobuf'] as const

/** spec.cache. undefined = no resource is named. What cannot be read allows nothing: the resource is forwarded. */
function compileReadCache(
  cache: ReadCache,
  schema: Schema<ReadCache> = READ_CACHE_SCHEMA,
): readonly CompiledCachedResource[] | undefined {
  if (cache.length === 0) return undefined
  return cache.map((entry) => {
    const {
      group = '',
      version,
      resource,
      namespaces = [],
      encodings = [],
      ...amounts
    } = complete(itemOf(schema), entry)
    const { maxBytes, maxStaleness } = amounts
    const named = encodings.length === 0 ? ALL_ENCODINGS : encodings
    return {
      group,
      version,
      resource,
      namespaces: namespaces.length === 0 ? ALL_NAMESPACES : [...new Set(namespaces)],
      encodings: [...new Set(named)].map((encoding) => ENCODINGS[encoding]),
      maxBytes: bytesOf(maxBytes) ?? 0,
      maxStalenessMs: parseDuration(maxStaleness) ?? 0,
    }
  })
}
