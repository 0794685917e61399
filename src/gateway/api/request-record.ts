// What is known about one request: the request path fills it step by step, `observe` turns it into metrics and logs.
// One plain object of one hidden class per request: every field exists from the start.

import type { AuditTrail } from './audit-trail.ts'
import type { ListRequest } from './list-request.ts'
import type { RequestTrace } from './request-trace.ts'
import type { LogMode } from './upstream-cluster/upstream-cluster.ts'

/** One request, from its head to the end of its answer. Mutable on purpose; never kept after `observe`. */
export interface RequestRecord {
  /** Audit-ID: the client's, when it sent a usable one, else ours. */
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
  /** Peer.id of the connection it came on: another one for each of a thread. */
  connection: number
  remoteAddress: string
  /** Of the load balancer that declared it in a PROXY header; '' = there is none. */
  proxyAddress: string
  /** Where the client's connection arrived: by it a cluster can be chosen. */
  localAddress: string
  localPort: number
  userAgent: string
  /** Name of the UpstreamCluster; '' until one is found. */
  cluster: string
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
  /** The effective user: after impersonation asked by the client. '' until authenticated. */
  user: string
  groups: readonly string[]
  uid: string
  /** Who sent the request, when it asked for impersonation (kubectl --as); else ''. */
  impersonator: string
  impersonatorUid: string
  impersonatorGroups: readonly string[]
  /** Of the effective user, and of the one who sent the request as another: key to values, as in UserInfo. */
  extra: UserExtra
  impersonatorExtra: UserExtra
  /** Index of the dispatch policy that matched; -1 = none. */
  policy: number
  /** Index of the rule inside the policy; -1 = none. */
  rule: number
  /** Name of the flow control schema; '' = none. */
  flowControl: string
  /** Its limit was reached, and the request passed all the same: a heartbeat, or what spec.degrade.exempt names. */
  reserved: boolean
  /** URL of the endpoint that served, or was tried last; '' = none. */
  endpoint: string
  /** How often the request was sent upstream, retries included. */
  attempts: number
  /** Status code sent to the client; 0 = none was sent. */
  code: number
  /** Reason of the refusal; '' when the request was not refused by the gateway. */
  refusal: string
  /** What refused: rule, limit or mode by name; ''. */
  refusalRule: string
  /** Message of the refusal; ''. */
  message: string
  /** The body of a refusal that came before it was known whether the request is recorded. */
  refusalBody: Buffer
  /** What would have refused, were it not in shadow mode: `filter/name`. */
  shadow: readonly string[]
  /** Of a list, or a watch that begins with one, in a cluster that learns how large they are. */
  list: ListRequest | undefined
  /** What pod protection said to a deletion or an eviction (ProtectionStatus); '' = it was not asked. */
  protection: string
  /** Audit annotations beside those of every request; undefined = none. */
  auditAnnotations: Readonly<Record<string, string>> | undefined
  requestBytes: number
  responseBytes: number
  /** From start to the response head; -1 = none. */
  ttfbMs: number
  /** From start to the end; -1 = not ended. */
  durationMs: number
  /** From the sending upstream to the upstream's response head; -1 = none. */
  upstreamMs: number
  /** Who broke off before the answer was complete. */
  aborted: '' | 'client' | 'upstream'
  /** logMode of the cluster and of the policy: two of the three switches of the access log. */
  clusterLogMode: LogMode
  policyLogMode: LogMode
  /** Set by an audit policy, once the user is known: whether it was asked, and what it wants recorded; undefined = nothing. */
  auditDecided: boolean
  audit: AuditTrail | undefined
  /** The gauge that counts this request while it runs; set and cleared by the metrics. */
  active: ActiveCount | undefined
  /** Of a request that is traced. */
  trace: RequestTrace | undefined
}

/** How many requests of a kind are running. */
export interface ActiveCount {
  value: number
}

/** A record with nothing known yet. */
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
