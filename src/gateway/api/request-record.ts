// Everything known about one request: the request path fills it in step by step, `observe` turns it into metrics and logs. One plain object of one
// hidden class per request: every field exists from the start.

import type { AuditTrail } from './audit-trail.ts'
import type { ListRequest } from './list-request.ts'
import type { RequestTrace } from './request-trace.ts'
import type { SessionRecord } from './session-record.ts'
import type { LogMode } from './upstream-cluster/upstream-cluster.ts'

/** One request, from its head to the end of its response. Deliberately mutable; never retained after `observe`. */
export interface RequestRecord {
  /** Audit-ID: the client's if usable, else ours. */
  auditId: string
  /** Monotonic milliseconds at which the request head was complete. */
  startMs: number
  /** The same moment on the wall clock, milliseconds since the epoch. */
  startWallMs: number
  /** As received. */
  method: string
  /** The raw request target, as received (with a `/clusters/<name>` prefix). */
  target: string
  /** `:authority` or Host, as received. */
  host: string
  protocol: 'h2' | 'http/1.1'
  /** Peer.id of the client connection, unique within a thread. */
  connection: number
  remoteAddress: string
  /** Address of the load balancer that sent a PROXY header; '' = none. */
  proxyAddress: string
  /** The local address of the client's connection, which can select a cluster. */
  localAddress: string
  localPort: number
  userAgent: string
  /** Name of the UpstreamCluster; '' until determined. */
  cluster: string
  /** Name of the UpstreamCluster with members that the request was sent to, of which `cluster` is one; '' = it was sent to `cluster`. */
  federation: string
  /** RequestInfo's fields, as in request-info.ts; '' until parsed. */
  verb: string
  apiGroup: string
  apiVersion: string
  resource: string
  subresource: string
  namespace: string
  name: string
  isResourceRequest: boolean
  path: string
  /** watch, proxy, exec, attach, portforward, log with follow. */
  longRunning: boolean
  /** The effective user, after client-requested impersonation. '' until authenticated. */
  user: string
  groups: readonly string[]
  uid: string
  /** The original user if the request asked for impersonation (kubectl --as); else ''. */
  impersonator: string
  impersonatorUid: string
  impersonatorGroups: readonly string[]
  /** Extra of the effective user and of the impersonator: key to values, as in UserInfo. */
  extra: UserExtra
  impersonatorExtra: UserExtra
  /** Names of the access grants whose groups are among the user's; '' = none. */
  accessGrant: string
  /** Index of the dispatch policy that matched; -1 = none. */
  policy: number
  /** Index of the rule inside the policy; -1 = none. */
  rule: number
  /** Name of the flow control schema; '' = none. */
  flowControl: string
  /** Its limit was reached, but the request passed as a heartbeat or by spec.degrade.exempt. */
  reserved: boolean
  /** URL of the endpoint that served the request or was tried last; '' = none. */
  endpoint: string
  /** Number of times the request was sent upstream, including retries. */
  attempts: number
  /** Status code sent to the client; 0 = none was sent. */
  code: number
  /** Reason for the refusal; '' if the gateway did not refuse the request. */
  refusal: string
  /** Name of the rule, limit or mode that refused; ''. */
  refusalRule: string
  /** Message of the refusal; ''. */
  message: string
  /** Body of a refusal that was sent before the audit decision. */
  refusalBody: Buffer
  /** Filters in shadow mode that would have refused: `filter/name`. */
  shadow: readonly string[]
  /** Set for a list, or a watch that begins with one, if the cluster learns list sizes. */
  list: ListRequest | undefined
  /** Verdict of pod protection on a deletion or eviction (ProtectionStatus); '' = it was not asked. */
  protection: string
  /** Additional audit annotations; undefined = none. */
  auditAnnotations: Readonly<Record<string, string>> | undefined
  requestBytes: number
  responseBytes: number
  /** From start to the response head; -1 = none. */
  ttfbMs: number
  /** From start to the end; -1 = not ended. */
  durationMs: number
  /** From sending upstream to upstream's response head; -1 = none. */
  upstreamMs: number
  /** Set once upstream has switched protocols. */
  session: SessionRecord | undefined
  /** Which side aborted before the response was complete. */
  aborted: '' | 'client' | 'upstream'
  /** logMode of the cluster and of the policy: two of the access log's three switches. */
  clusterLogMode: LogMode
  policyLogMode: LogMode
  /** Set by an audit policy once the user is known: whether the policy was evaluated, and what to record; undefined = nothing. */
  auditDecided: boolean
  audit: AuditTrail | undefined
  /** The gauge that counts this request while it is running; set and cleared by the metrics. */
  active: ActiveCount | undefined
  /** Set if the request is traced. */
  trace: RequestTrace | undefined
}

/** Number of running requests of a kind. */
export interface ActiveCount {
  value: number
}

/** A record with no values yet. */
export function createRecord(): RequestRecord {
  return {
    auditId: '',
    startMs: 0,
    startWallMs: 0,
    method: '',
    target: '',
    host: '',
    protocol: 'h2',
    connection: 0,
    remoteAddress: '',
    proxyAddress: '',
    localAddress: '',
    localPort: 0,
    userAgent: '',
    cluster: '',
    federation: '',
    verb: '',
    apiGroup: '',
    apiVersion: '',
    resource: '',
    subresource: '',
    namespace: '',
    name: '',
    isResourceRequest: false,
    path: '',
    longRunning: false,
    user: '',
    groups: NONE,
    uid: '',
    impersonator: '',
    impersonatorUid: '',
    impersonatorGroups: NONE,
    extra: NO_EXTRA,
    impersonatorExtra: NO_EXTRA,
    accessGrant: '',
    policy: -1,
    rule: -1,
    flowControl: '',
    reserved: false,
    endpoint: '',
    attempts: 0,
    code: 0,
    refusal: '',
    refusalRule: '',
    message: '',
    refusalBody: NO_BODY,
    shadow: NONE,
    list: undefined,
    protection: '',
    auditAnnotations: undefined,
    requestBytes: 0,
    responseBytes: 0,
    ttfbMs: -1,
    durationMs: -1,
    upstreamMs: -1,
    session: undefined,
    aborted: '',
    clusterLogMode: '',
    policyLogMode: '',
    auditDecided: false,
    audit: undefined,
    active: undefined,
    trace: undefined,
  }
}

type UserExtra = Readonly<Record<string, readonly string[]>>

const NO_BODY: Buffer = Buffer.alloc(0)
const NO_EXTRA: UserExtra = Object.freeze({})
const NONE: readonly string[] = Object.freeze<string[]>([])
