// The one JSON Schema of UpstreamCluster's spec: shape, types, ranges and a description of every field. ajv checks objects
// against it, the CRD in deploy/crds/ carries it. What a schema cannot say is in upstream-cluster-checks.ts.

import { base64, flag, integer, type JsonSchema, list, object, oneOf, text } from './json-schema.ts'
import type {
  AccessControl,
  AccessRule,
  Addresses,
  Authentication,
  ClientConfig,
  Degrade,
  DispatchPolicy,
  DispatchRule,
  FlowControlSchema,
  HealthCheck,
  SecretReference,
  SecureServing,
  TokenBucket,
  UpstreamClusterSpec,
  UpstreamServer,
} from './upstream-cluster.ts'

const LOG_MODES = ['on', 'off', '']

const server: JsonSchema = object<UpstreamServer>(
  'One kube-apiserver.',
  {
    endpoint: text('URL without a path: `https://host:port` or `http://host:port`. All servers use the same scheme.'),
    disabled: flag('The server takes no new requests; running ones finish. Default false.'),
    weight: integer('Share of the requests relative to the other servers. Default 100.', 0, 1000),
  },
  ['endpoint'],
)

function secretReference(what: string): JsonSchema {
  return object<SecretReference>(`Where ${what} is kept, instead of inline. Exactly one of file and name.`, {
    file: text('Path of a file, relative to the configuration directory. Only for objects that come from files.'),
    name: text('Name of a Secret.'),
    namespace: text('Namespace of the Secret. Default `default`.'),
    key: text("Key in the Secret's data. Required beside name."),
  })
}

const clientConfig: JsonSchema = object<ClientConfig>('How the gateway connects to the servers, and as whom.', {
  insecure: flag("Do not verify the servers' certificates. Default false."),
  bearerToken: base64("Token of the gateway's own user, base64."),
  keyData: base64("Private key of the gateway's client certificate: PEM, base64."),
  certData: base64("The gateway's client certificate: PEM, base64."),
  caData: base64("CA certificates that the servers' certificates are verified with: PEM, base64."),
  bearerTokenRef: secretReference('the token'),
  keyRef: secretReference('the private key'),
  certRef: secretReference('the client certificate'),
  caRef: secretReference('the CA bundle'),
  qps: integer("Limit of the gateway's own calls (token and access reviews) per second. Default 0: none.", 0),
  burst: integer('Largest burst of those calls; at least qps when qps is set.', 0),
  qpsDivisor: integer('qps is divided by this, for less than one call per second. 0 and 1 change nothing.', 0),
  serverName: text("Name to verify in the servers' certificates. Default: the host of the endpoint."),
})

const secureServing: JsonSchema = object<SecureServing>('How clients are served.', {
  keyData: base64('Private key of the serving certificate: PEM, base64.'),
  certData: base64("Serving certificate for this cluster's host names: PEM, base64. Default: the gateway's own."),
  clientCAData: base64('CA certificates that client certificates are verified with: PEM, base64.'),
  keyRef: secretReference('the private key'),
  certRef: secretReference('the serving certificate'),
  clientCARef: secretReference('the client CA bundle'),
  serverNames: list(
    'Host names of this cluster besides metadata.name. `*.example.com` covers one label.',
    text('DNS name.'),
  ),
})

function tokenBucket(description: string): JsonSchema {
  return object<TokenBucket>(
    description,
    { qps: integer('Requests per second.', 1), burst: integer('Largest burst, at least qps.', 1) },
    ['qps', 'burst'],
  )
}

function inflight(description: string): JsonSchema {
  // `{}` is what KubeGateway's own encoder makes of a limit of zero.
  const max: JsonSchema = { ...integer('Requests running at once; 0 refuses all. Default 0.', 0), default: 0 }
  return object<{ max: number }>(description, { max })
}

const flowControlSchema: JsonSchema = object<FlowControlSchema>(
  'A limit that dispatch policies name. Exactly one of exempt, maxRequestsInflight and tokenBucket.',
  {
    name: text('Name, unique in the cluster.', { minLength: 1 }),
    strategy: oneOf('Where the limit is kept: in this gateway (empty, local), or shared by replicas (global*).', [
      '',
      'local',
      'globalAllocate',
      'globalCount',
    ]),
    exempt: object<object>('No limit.', {}),
    maxRequestsInflight: inflight('Limits how many requests run at once. A watch counts until its response begins.'),
    tokenBucket: tokenBucket('Limits how many requests start per second.'),
    globalMaxRequestsInflight: inflight('The limit of all replicas together; at least the local one.'),
    globalTokenBucket: tokenBucket('The limit of all replicas together; at least the local one.'),
    perUser: flag('Every user has a limit of its own. Default false.'),
    maxWatches: integer('Watches open at once; 0 = no cap. Stands beside the other limits. Default 0.', 0),
    shadow: flag('What goes over the limit is counted and warned about, but let pass. Default false.'),
  },
  ['name'],
)

const serviceAccount: JsonSchema = object<{ namespace?: string; name?: string }>('A ServiceAccount; both are needed.', {
  namespace: text('Its namespace.'),
  name: text('Its name.'),
})

const entry: JsonSchema = text('`x`, `-x` (not x) or `*` (all).')

const rule: JsonSchema = object<DispatchRule>(
  'Matches a request when all fields do. `-x` inverts an entry; a list of inverted entries means none of these; beside ' +
    'positive entries the inverted ones are ignored.',
  {
    verbs: list('get, list, watch, create, update, patch, delete, deletecollection ... Empty matches nothing.', entry),
    apiGroups: list('API groups, the core group is the empty string. Empty matches nothing.', entry),
    resources: list('`pods`, `pods/exec`, `*/scale`. Empty matches nothing.', entry),
    resourceNames: list('Names of objects. Empty matches all.', entry),
    users: list(
      'User names; a trailing * is a prefix glob. Empty matches all, unless serviceAccounts are given.',
      entry,
    ),
    serviceAccounts: list('ServiceAccounts, in addition to users.', serviceAccount),
    userGroups: list('Groups, of which the user needs to have one. Empty matches all.', entry),
    nonResourceURLs: list('Paths of non-resource requests; a trailing * is a prefix glob. Empty matches none.', entry),
    namespaces: list('Namespaces, the empty string for cluster-scoped requests; trailing * globs. Empty: all.', entry),
    userAgents: list('User-Agent headers; a trailing * is a prefix glob. Empty matches all.', entry),
  },
)

const dispatchPolicy: JsonSchema = object<DispatchPolicy>(
  'What is done with the requests that one of its rules matches.',
  {
    strategy: oneOf('How a server is picked. Default RoundRobin.', [
      '',
      'RoundRobin',
      'Random',
      'LeastRequest',
      'Affinity',
    ]),
    upstreamSubset: list('Endpoints, as written in spec.servers, that may serve. Empty: all.', text('An endpoint.')),
    rules: list('One of these has to match.', rule, 1),
    flowControlSchemaName: text('The limit, by its name in spec.flowControl. Default: none.'),
    logMode: oneOf("Access log of these requests; empty follows the cluster's.", LOG_MODES),
    action: oneOf('Deny refuses with 403. Default Forward.', ['Forward', 'Deny']),
    shadow: flag('With action Deny: count and warn, but forward. Default false.'),
  },
  ['rules'],
)

const healthCheck: JsonSchema = object<HealthCheck>('How servers are probed.', {
  path: text('Path asked for with GET. Default /readyz.'),
  intervalSeconds: integer('Seconds between two probes. Default 5.', 1, 300),
  timeoutSeconds: integer('Seconds until a probe has failed. Default 3.', 1, 60),
  healthyThreshold: integer('Consecutive successes until a server is healthy. Default 1.', 1, 100),
  unhealthyThreshold: integer('Consecutive failures until a server is unhealthy. Default 2.', 1, 100),
})

const accessRule: JsonSchema = object<AccessRule>('Matches a client when all fields given do.', {
  name: text('Shown in the refusal.'),
  users: list('User names; a trailing * is a prefix glob.', entry),
  userGroups: list('Groups, of which the user needs to have one.', entry),
  userAgents: list('User-Agent headers; a trailing * is a prefix glob.', entry),
  sourceIPs: list('Addresses of the client.', text('An address, or a block such as 10.0.0.0/8.')),
})

const accessControl: JsonSchema = object<AccessControl>('Who may use the cluster at all.', {
  allow: list('When not empty, everybody whom it does not name is refused.', accessRule),
  deny: list('Asked first.', accessRule),
  shadow: flag('Count and warn, but let pass. Default false.'),
})

const degrade: JsonSchema = object<Degrade>('The degrade switch, for incidents.', {
  mode: oneOf(
    'ReadOnly refuses writes; HeartbeatsOnly lets only what keeps nodes alive pass; Freeze refuses all but health ' +
      'endpoints. Default Off.',
    ['Off', 'ReadOnly', 'HeartbeatsOnly', 'Freeze'],
  ),
  reason: text('Shown in every refusal.', { maxLength: 1024 }),
  expiresAt: text('From this moment on (RFC 3339) the mode is Off. Default: never.', { format: 'date-time' }),
  exempt: list('Requests that pass in any mode.', rule),
  shadow: flag('Count and warn, but let pass. Default false.'),
})

const authentication: JsonSchema = object<Authentication>('How clients are authenticated.', {
  audiences: list("Audiences asked for in a TokenReview. Empty: the cluster's own.", text('An audience.')),
  tokenSuccessTTLSeconds: integer('Seconds that a verified token is remembered; 0 = not. Default 60.', 0),
  tokenFailureTTLSeconds: integer('Seconds that a rejected token is remembered; 0 = not. Default 10.', 0),
  anonymous: flag('Whether requests without credentials pass as system:anonymous. Default true.'),
})

const addresses: JsonSchema = object<Addresses>('By what clients choose this cluster when they name no host.', {
  ips: list("Destination IPs of the clients' connections (VIPs).", text('An IPv4 or IPv6 address.')),
  ports: list("The gateway's listener ports.", integer('A port.', 1, 65535)),
})

export const UPSTREAM_CLUSTER_SPEC_SCHEMA: JsonSchema = object<UpstreamClusterSpec>(
  'An upstream Kubernetes cluster and how it is served.',
  {
    servers: list('The kube-apiservers.', server, 1),
    clientConfig,
    secureServing,
    flowControl: object<{ flowControlSchemas?: unknown }>('Limits.', {
      flowControlSchemas: list('Limits, by name.', flowControlSchema),
    }),
    dispatchPolicies: list('In order; the first with a rule that matches decides. No match: 403.', dispatchPolicy, 1),
    logging: object<{ mode?: unknown }>('Access log.', {
      mode: oneOf('Access log of this cluster: on, off, or empty for what the policies say.', LOG_MODES),
    }),
    addresses,
    default: flag('Serves every request that no other cluster claims. At most one cluster. Default false.'),
    healthCheck,
    accessControl,
    degrade,
    authentication,
  },
  ['servers', 'dispatchPolicies'],
)
