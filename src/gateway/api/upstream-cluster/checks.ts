// Every check of a single UpstreamCluster, reporting all errors at once. Start reading at checkUpstreamCluster.
// Accepts what KubeGateway accepts, except for errors that can only do harm; test/data/upstreamcluster-objects.json is the table.

import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { nameOf } from '../../../kit/api/json/json-object.ts'
import { complete, DURATION_PATTERN, fieldOf } from '../../../kit/api/json/json-schema.ts'
import { isRecord, type Loose, looseView, normalize } from '../../../kit/api/json/object-shape.ts'
import {
  FieldErrors,
  reportable,
  type SeverityCounts,
  shown,
  withoutPassword,
} from '../../../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../../../kit/api/validation/ip-address.ts'
import { ALLOW_LOCAL_FLAG, localServerMessage } from '../../../kit/api/validation/local-address.ts'
import { isTimestamp, parseEndpoint } from '../../../kit/api/validation/name-syntax.ts'
import { nearestName } from '../../../kit/api/validation/nearest-name.ts'
import { checkObjectHead } from '../../../kit/api/validation/object-head-checks.ts'
import type { PemChecks } from '../../../kit/api/validation/pem-checks.ts'
import { createSchemaCheck, MOST_SUGGESTIONS, type ShapeErrors } from '../../../kit/api/validation/schema-errors.ts'
import { checkAutoDegrade } from './auto-degrade.ts'
import { checkAutoscaler, checkPodProtection, checkScaleProtection } from './cluster-protection-checks.ts'
import { checkClientConfig, checkSecureServing, type ServerScheme } from './credential-checks.ts'
import { parseFeatureGates } from './feature-gates.ts'
import { checkFederation } from './federation/federation.ts'
import { checkFlowControlSchemas } from './flow-control-checks.ts'
import { checkJwt } from './jwt-checks.ts'
import { checkReadCache } from './read-cache/read-cache.ts'
import { checkRevocations } from './revocation-checks.ts'
import { checkAccessRules, checkRules, checkShareWeights } from './rule-checks.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from './schema.ts'
import {
  type DegradeLimit,
  type DegradeRecovery,
  type DispatchPolicy,
  FEATURE_GATES_ANNOTATION,
  UPSTREAM_CLUSTER_API_VERSION,
  UPSTREAM_CLUSTER_KIND,
  type UpstreamCluster,
  type UpstreamClusterSpec,
} from './upstream-cluster.ts'

const checkSpecShape = createSchemaCheck(UPSTREAM_CLUSTER_SPEC_SCHEMA)

/** Fields that are for subjects which can be left out of the program, with what it then lacks. */
const SUBJECT_FIELDS = {
  podProtection: 'pod protection',
  scaleProtection: 'scaling',
  'degrade.auto': 'incidents',
  'degrade.recovery': 'incidents',
  'degrade.mode': 'incidents',
  cache: 'the read cache',
  members: 'federated reads',
  'audit.sessions': 'recordings of sessions',
} as const

export type SubjectField = keyof typeof SUBJECT_FIELDS

/** Capabilities of the gateways that the object is for. */
export interface ClusterCheckOptions {
  /** Whether secret references may name files: only if the objects themselves come from files. Default true. */
  readonly fileReferences?: boolean
  /** Whether replicas can share limits; if not, each replica applies the local one. Default true. */
  readonly globalLimits?: boolean
  /** Whether a leader writes to the objects, and so carries out spec.degrade.recovery. Default true. */
  readonly recovery?: boolean
  /** Whether the program was built without the subject for which a field of the spec is. Default: it has all of them. */
  readonly withoutSubject?: (field: SubjectField) => boolean
  /** Why the gateway refuses to connect to this server; '' = it connects, or cannot know. Default: as if the operator had allowed nothing. */
  readonly serverRefusal?: (host: string, port: number) => string
}

/** Returns every error and warning, at most one error per path, and only the first ones of very many. Takes any JSON value and never throws. */
export function checkUpstreamCluster(
  object: unknown,
  pem: PemChecks,
  options: ClusterCheckOptions = {},
): readonly FieldError[] {
  const out = new FieldErrors()
  if (!isRecord(object)) {
    out.invalid('', 'is not an object', `write a map with apiVersion, kind ${UPSTREAM_CLUSTER_KIND}, metadata and spec`)
    return out.found
  }
  checkObjectHead(object, UPSTREAM_CLUSTER_API_VERSION, UPSTREAM_CLUSTER_KIND, out)
  checkFeatureGates(object, out)
  const spec = normalize(UPSTREAM_CLUSTER_SPEC_SCHEMA, object['spec'] ?? {})
  const shape = checkSpecShape(spec, 'spec')
  const problems = [...out.found, ...shape.problems]
  // The schema check has validated what is left in the view.
  const view = looseView(UPSTREAM_CLUSTER_SPEC_SCHEMA, spec) as Loose<UpstreamClusterSpec> | undefined
  const shapeMore = sum(shape.more, out.more)
  // The rules would only report consequences of errors that were not found.
  if (view === undefined || shape.ended) return reportable(problems, shapeMore, shape.ended)
  const rules = new FieldErrors()
  checkSpec(view, pem, options, rules)
  checkMembers(view, object, options, rules)
  const followsShape = consequencesOf(shape)
  const ofRules = rules.found.filter(({ path }) => !followsShape(path))
  return reportable([...problems, ...ofRules], sum(shapeMore, rules.more))
}

function sum(a: Readonly<SeverityCounts>, b: Readonly<SeverityCounts>): SeverityCounts {
  return { error: a.error + b.error, warning: a.warning + b.warning }
}

/**
 * Whether an error is merely a consequence of another: to the rules, a value of the wrong type looks absent. There may be as many of both as the
 * object has entries.
 */
function consequencesOf({ paths, mistyped }: ShapeErrors): (path: string) => boolean {
  const covered = new Set(paths)
  let limitsMistyped = false
  for (const wrong of mistyped) {
    // A key in brackets is user input: its dots separate nothing, and there may be any number of them.
    const key = wrong.search(/\[[^\d]/)
    const end = key < 0 ? wrong.length : key
    for (let dot = wrong.indexOf('.'); dot >= 0 && dot < end; dot = wrong.indexOf('.', dot + 1)) {
      covered.add(wrong.slice(0, dot))
    }
    if (wrong.startsWith('spec.flowControl')) limitsMistyped = true
  }
  return (path) => covered.has(path) || (limitsMistyped && path.endsWith('.flowControlSchemaName'))
}

/**
 * The effective form of an object without errors: nulls and empty choices removed, defaults filled in, shared limits turned into local ones if
 * replicas cannot share them.
 */
export function normalizeUpstreamCluster(
  object: unknown,
  { globalLimits = true }: ClusterCheckOptions = {},
): UpstreamCluster {
  // checkUpstreamCluster verified the type.
  const { apiVersion, kind, metadata, spec } = object as UpstreamCluster
  const { name, uid, resourceVersion, generation, creationTimestamp, labels, annotations } = metadata
  const optional = { uid, resourceVersion, generation, creationTimestamp, labels, annotations }
  const given = Object.entries(optional).filter(([, value]) => value !== undefined && value !== null)
  const normal = { ...EMPTY, ...(normalize(UPSTREAM_CLUSTER_SPEC_SCHEMA, spec) as UpstreamClusterSpec) }
  return {
    apiVersion,
    kind,
    metadata: { name, ...Object.fromEntries(given) },
    spec: globalLimits ? normal : withLocalLimits(normal),
  }
}

/** Members take the place of servers. */
const EMPTY: Pick<UpstreamClusterSpec, 'servers'> = { servers: [] }

/** Like KubeGateway without its limiter: every replica applies the local limit. */
function withLocalLimits(spec: UpstreamClusterSpec): UpstreamClusterSpec {
  const { flowControlSchemas } = spec.flowControl ?? {}
  if (flowControlSchemas === undefined) return spec
  const local = flowControlSchemas.map((schema) => ({ ...schema, strategy: 'local' as const }))
  return { ...spec, flowControl: { ...spec.flowControl, flowControlSchemas: local } }
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * Unknown fields of the manifest, which the API server has dropped: the response to the write reported them once, and only kubectl's own record of
 * what it applied still has them. Takes any JSON value and never throws.
 */
export function droppedFields(object: unknown): readonly FieldError[] {
  const metadata = isRecord(object) ? object['metadata'] : undefined
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined
  const text = isRecord(annotations) ? annotations[LAST_APPLIED] : undefined
  if (typeof text !== 'string') return []
  const applied = parsed(text)
  const { problems, more } = checkSpecShape(isRecord(applied) ? (applied['spec'] ?? {}) : {}, 'spec')
  const unknown = problems.filter(({ severity }) => severity === 'warning')
  return reportable(
    unknown.map((problem) => ({ ...problem, message: 'unknown field in the manifest that was applied, ignored' })),
    { error: 0, warning: more.warning },
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function checkFeatureGates(object: Readonly<Record<string, unknown>>, out: FieldErrors): void {
  const metadata = object['metadata']
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined
  const text = isRecord(annotations) ? annotations[FEATURE_GATES_ANNOTATION] : undefined
  if (typeof text !== 'string') return
  const { errors } = parseFeatureGates(text)
  if (errors.length === 0) return
  const fix = 'write a list such as DenyAllRequests=true,CloseConnectionWhenIdle=false'
  out.invalid(`metadata.annotations[${FEATURE_GATES_ANNOTATION}]`, errors.join('; '), fix)
}

function checkSpec(
  spec: Loose<UpstreamClusterSpec>,
  pem: PemChecks,
  options: ClusterCheckOptions,
  out: FieldErrors,
): void {
  const scheme = checkServers(spec, options, out)
  const material = { pem, fileReferences: options.fileReferences ?? true }
  checkClientConfig(spec.clientConfig ?? {}, scheme, 'spec.clientConfig', material, out)
  checkSecureServing(spec.secureServing ?? {}, 'spec.secureServing', material, out)
  const schemas = spec.flowControl?.flowControlSchemas ?? []
  checkFlowControlSchemas(schemas, 'spec.flowControl.flowControlSchemas', out, options.globalLimits ?? true)
  checkPolicies(spec, out)
  if (spec.followEndpointSlice === true) checkFollowing(spec, scheme, out)
  for (const [index, ip] of (spec.addresses?.ips ?? []).entries()) {
    if (ip === undefined || (!ip.includes('%') && canonicalIp(ip) !== undefined)) continue
    const fix = 'write an IPv4 or IPv6 address without brackets; host names go to spec.secureServing.serverNames'
    out.invalid(`spec.addresses.ips[${index}]`, `${shown(ip)} is not a valid IP address`, fix)
  }
  const probe = spec.healthCheck?.path
  if (probe !== undefined && !/^\/[\x21-\x22\x24-\x7e]*$/.test(probe)) {
    out.invalid(
      'spec.healthCheck.path',
      `${shown(probe)} is not a valid path`,
      'write a path that begins with /, such as /readyz',
    )
  }
  checkAccessRules(spec.accessControl?.allow ?? [], 'spec.accessControl.allow', out)
  checkAccessRules(spec.accessControl?.deny ?? [], 'spec.accessControl.deny', out)
  checkRules(spec.degrade?.exempt ?? [], 'spec.degrade.exempt', out)
  checkExpiry(spec.degrade?.expiresAt, 'spec.degrade.expiresAt', out)
  checkExpiry(spec.degrade?.before?.expiresAt, 'spec.degrade.before.expiresAt', out)
  if (spec.degrade?.limited !== undefined) checkLimited(spec.degrade.limited, out)
  const mode = spec.degrade?.mode
  if (mode === 'NoDisruption' || mode === 'Limited') hasEffect('degrade.mode', options, out)
  if (spec.degrade?.recovery !== undefined) {
    hasEffect('degrade.recovery', options, out)
    checkRecovery(spec.degrade.recovery, options, out)
  }
  if (spec.degrade?.auto !== undefined) {
    hasEffect('degrade.auto', options, out)
    checkAutoDegrade(spec.degrade.auto, 'spec.degrade.auto', out)
    if (options.recovery === false) {
      out.warning('spec.degrade.auto', 'has no effect: objects that are files have no leader', 'set spec.degrade.mode')
    }
  }
  for (const [index, audience] of (spec.authentication?.audiences ?? []).entries()) {
    if (audience === '') out.invalid(`spec.authentication.audiences[${index}]`, 'is empty', 'name an audience')
  }
  const { serverRefusal = localServerMessage } = options
  checkJwt(spec.authentication?.jwt ?? [], 'spec.authentication.jwt', { pem, serverRefusal }, out)
  checkRules(spec.listGuard?.exempt ?? [], 'spec.listGuard.exempt', out)
  checkShareWeights(spec.shares?.weights ?? [], 'spec.shares.weights', out)
  checkRevocations(spec.authentication?.revoked ?? [], 'spec.authentication.revoked', out)
  const { podProtection, autoscaler, scaleProtection, cache } = spec
  if (podProtection !== undefined) {
    hasEffect('podProtection', options, out)
    checkPodProtection(podProtection, 'spec.podProtection', out)
  }
  if (autoscaler !== undefined) checkAutoscaler(autoscaler, 'spec.autoscaler', out)
  if (scaleProtection !== undefined && hasEffect('scaleProtection', options, out))
    checkScaleProtection(scaleProtection, podProtection !== undefined, 'spec.scaleProtection', out)
  if (cache !== undefined && hasEffect('cache', options, out)) checkReadCache(cache, 'spec.cache', out)
  if (spec.audit?.sessions !== undefined) hasEffect('audit.sessions', options, out)
}

function checkMembers(
  spec: Loose<UpstreamClusterSpec>,
  object: Readonly<Record<string, unknown>>,
  options: ClusterCheckOptions,
  out: FieldErrors,
): void {
  const { servers, members = [], federation } = spec
  const fix = 'add servers: the kube-apiservers, or members: clusters that are read as one'
  if (servers === undefined && members.length === 0) out.required('spec.servers', 'is required', fix)
  if ((members.length > 0 || federation !== undefined) && hasEffect('members', options, out))
    checkFederation(spec, nameOf(object), out)
}

function checkExpiry(expiresAt: string | undefined, path: string, out: FieldErrors): void {
  if (expiresAt === undefined || isTimestamp(expiresAt)) return
  out.invalid(path, `${shown(expiresAt)} is not a valid time`, 'write RFC 3339, such as 2030-01-31T18:00:00Z')
}

/** If not, a warning says why. */
function hasEffect(field: SubjectField, { withoutSubject }: ClusterCheckOptions, out: FieldErrors): boolean {
  if (withoutSubject?.(field) !== true) return true
  const message = `has no effect: this program was built without ${SUBJECT_FIELDS[field]}`
  out.warning(`spec.${field}`, message, 'use a build that has it')
  return false
}

const LIMITED_SCHEMA = fieldOf(fieldOf(UPSTREAM_CLUSTER_SPEC_SCHEMA, 'degrade'), 'limited')
const LIMITED_DEFAULTS = complete(LIMITED_SCHEMA, {})

function checkLimited(limited: Loose<DegradeLimit>, out: FieldErrors): void {
  const { startQPS = LIMITED_DEFAULTS.startQPS, endQPS = LIMITED_DEFAULTS.endQPS } = limited
  if (startQPS <= endQPS) return
  const message = `${startQPS} is above endQPS (${endQPS}): the rate falls while Limited lasts`
  out.warning('spec.degrade.limited.startQPS', message, 'write endQPS, at least as high')
}

const DURATION = new RegExp(DURATION_PATTERN)

function checkRecovery(
  { hold, ramp }: Loose<DegradeRecovery>,
  { recovery: carriedOut = true }: ClusterCheckOptions,
  out: FieldErrors,
): void {
  for (const [name, value] of Object.entries({ hold, ramp })) {
    if (value === undefined || DURATION.test(value)) continue
    out.invalid(`spec.degrade.recovery.${name}`, `${shown(value)} is not a duration`, 'write 90s, 10m or 1h30m')
  }
  if (carriedOut) return
  const message = 'has no effect: with objects from files there is no leader to carry it out'
  out.warning('spec.degrade.recovery', message, 'set spec.degrade.mode step by step')
}

/** @returns https if any server uses TLS */
function checkServers(
  { servers = [] }: Loose<UpstreamClusterSpec>,
  { serverRefusal = localServerMessage }: ClusterCheckOptions,
  out: FieldErrors,
): ServerScheme {
  const addresses = new Set<string>()
  let scheme: ServerScheme = ''
  let https = false
  for (const [index, server] of servers.entries()) {
    if (server?.endpoint === undefined) continue
    const path = `spec.servers[${index}].endpoint`
    const endpoint = parseEndpoint(server.endpoint)
    if ('error' in endpoint) {
      // A password does not belong here, least of all in a message.
      out.invalid(
        path,
        `${shown(withoutPassword(server.endpoint))} ${endpoint.error}`,
        'write https://host:port or http://host:port',
      )
      continue
    }
    if (scheme === '') scheme = endpoint.scheme
    if (endpoint.scheme === 'https') https = true
    if (endpoint.scheme !== scheme) {
      out.invalid(path, `is ${endpoint.scheme}, the servers before are ${scheme}`, 'use one scheme for all servers')
    } else if (addresses.has(endpoint.address)) {
      out.warning(path, 'is named twice', 'remove one of the two; weight sends a server more requests')
    }
    addresses.add(endpoint.address)
    const refusal = serverRefusal(endpoint.host, portOf(endpoint.address))
    if (refusal !== '') {
      const message = `${refusal}: the gateway does not connect to it unless the operator allows it`
      const fix = `name a server on another machine, or start the gateway with ${ALLOW_LOCAL_FLAG}=ADDRESS:PORT`
      out.warning(path, message, fix)
    }
    if (server.resolve === true && canonicalIp(endpoint.host) !== undefined) {
      out.warning(`spec.servers[${index}].resolve`, 'has no effect on an address', 'remove it, or write a DNS name')
    }
  }
  return https ? 'https' : scheme
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}

/** The gateway sends its credential to whatever an EndpointSlice lists as API servers: their certificates must be verified. */
function checkFollowing(spec: Loose<UpstreamClusterSpec>, scheme: ServerScheme, out: FieldErrors): void {
  const path = 'spec.followEndpointSlice'
  const { insecure = false, serverName = '' } = spec.clientConfig ?? {}
  const hosts = (spec.servers ?? []).flatMap((server) => {
    const endpoint = parseEndpoint(server?.endpoint ?? '')
    return 'error' in endpoint ? [] : [endpoint.host]
  })
  if (scheme === 'http' || insecure) {
    const message = 'would send credentials and requests to whatever address the cluster names, unverified'
    out.invalid(path, message, "use https:// servers and the cluster's CA, without insecure")
  } else if (serverName === '' && hosts.length > 0 && hosts.every((host) => canonicalIp(host) !== undefined)) {
    // A cluster's CA also signs kubelet certificates, with their addresses.
    const message =
      'needs a DNS name to verify: by an address in a certificate, an API server cannot be told from a kubelet'
    out.invalid(
      path,
      message,
      'set clientConfig.serverName, such as kubernetes.default.svc, or write a server with a name',
    )
  }
  for (const [index, policy] of (spec.dispatchPolicies ?? []).entries()) {
    if ((policy?.upstreamSubset ?? []).length === 0) continue
    const message = 'has no meaning with followEndpointSlice: the servers of spec.servers are only its backup'
    out.invalid(`spec.dispatchPolicies[${index}].upstreamSubset`, message, 'remove one of the two')
  }
}

/** Names that policies may refer to. */
interface Referents {
  readonly endpoints: ReadonlySet<string>
  readonly schemas: ReadonlySet<string>
}

function checkPolicies({ servers, flowControl, dispatchPolicies }: Loose<UpstreamClusterSpec>, out: FieldErrors): void {
  const endpoints = new Set((servers ?? []).map((server) => server?.endpoint ?? ''))
  const schemas = new Set((flowControl?.flowControlSchemas ?? []).map((schema) => schema?.name ?? ''))
  for (const [index, policy] of (dispatchPolicies ?? []).entries()) {
    if (policy !== undefined) checkPolicy(policy, { endpoints, schemas }, `spec.dispatchPolicies[${index}]`, out)
  }
}

function checkPolicy(
  policy: Loose<DispatchPolicy>,
  { endpoints, schemas }: Referents,
  path: string,
  out: FieldErrors,
): void {
  checkRules(policy.rules ?? [], `${path}.rules`, out)
  // If that part is broken, its names are unknown: no follow-up errors.
  if (endpoints.size > 0) {
    for (const [index, endpoint] of (policy.upstreamSubset ?? []).entries()) {
      if (endpoint === undefined || endpoints.has(endpoint)) continue
      const message = `${shown(endpoint)} is not in spec.servers`
      const fix = choose(endpoint, endpoints, 'add it to spec.servers', out)
      out.invalid(`${path}.upstreamSubset[${index}]`, message, fix)
    }
  }
  const { flowControlSchemaName = '' } = policy
  if (flowControlSchemaName === '' || schemas.has(flowControlSchemaName)) return
  const message = `${shown(flowControlSchemaName)} is not in spec.flowControl.flowControlSchemas`
  const fix = choose(flowControlSchemaName, schemas, 'add a schema of that name', out)
  out.invalid(`${path}.flowControlSchemaName`, message, fix)
}

function choose(name: string, known: ReadonlySet<string>, otherwise: string, { found }: FieldErrors): string {
  const near = found.length < MOST_SUGGESTIONS ? nearestName(name, known) : ''
  return near === '' ? otherwise : `did you mean ${near}?`
}
