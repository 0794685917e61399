// The one JSON Schema of UpstreamCluster's spec: shape, types, ranges, defaults and a description of every field. Objects are validated against it,
// and the CRD in deploy/crds/ contains it. checks.ts has what a schema cannot express.

import {
  atMost,
  checked,
  defaultsTo,
  duration,
  flag,
  integer,
  type JsonSchema,
  list,
  object,
  oneOf,
  oneOfOrNone,
  type Schema,
  text,
  time,
} from '../../../kit/api/json/json-schema.ts'
import { AUDIT_SCHEMA } from './audit-schema.ts'
import { AUTO_DEGRADE_SCHEMA } from './auto-degrade.ts'
import {
  ENDPOINT_RULES,
  IP_RULES,
  PROBE_PATH_RULES,
  REVOCATION_RULES,
  SERVERS_RULES,
  SHA256_RULES,
  SIZES,
  SPEC_RULES,
} from './cel/cel-rules.ts'
import { AUTOSCALER_SCHEMA } from './cluster-autoscaler.ts'
import { POD_PROTECTION_SCHEMA } from './cluster-protection.ts'
import { CONTROLLER_MANAGER_SCHEMA } from './controller-manager.ts'
import { CLIENT_CONFIG_SCHEMA, SECURE_SERVING_SCHEMA } from './credentials-schema.ts'
import { DEFAULT_DEGRADE_MODE, DEGRADE_MODES, degradeEffect } from './degrade-modes.ts'
import { FEDERATION_SCHEMA, MEMBERS_SCHEMA } from './federation/federation.ts'
import { JWT_SCHEMA } from './jwt-schema.ts'
import { FLOW_CONTROL_SCHEMAS_SCHEMA } from './limits-schema.ts'
import { READ_CACHE_SCHEMA } from './read-cache/read-cache.ts'
import { SCALE_PROTECTION_SCHEMA } from './scale-protection.ts'
import { STRATEGIES } from './strategies.ts'

// Schemas of rules: which requests a policy or an exemption applies to, and which clients an access list.
const serviceAccount = object('A ServiceAccount; namespace and name are both required.', {
  namespace: text('Its namespace.'),
  name: text('Its name.'),
})

/** An entry of a list in a rule. */
const ENTRY_SCHEMA: Schema<string> = text('`x`, `-x` (not x) or `*` (all).')

const RULE_SCHEMA = object(
  'Matches a request if all fields match. `-x` inverts an entry; a list of inverted entries means none of these; in a ' +
    'list that also has positive entries, the inverted ones are ignored.',
  {
    verbs: list(
      'get, list, watch, create, update, patch, delete, deletecollection ... Empty matches nothing.',
      ENTRY_SCHEMA,
    ),
    apiGroups: list('API groups, the core group is the empty string. Empty matches nothing.', ENTRY_SCHEMA),
    resources: list('`pods`, `pods/exec`, `*/scale`. Empty matches nothing.', ENTRY_SCHEMA),
    resourceNames: list('Names of objects. Empty matches all.', ENTRY_SCHEMA),
    users: list(
      'User names; a trailing * is a prefix glob. Empty matches all, unless serviceAccounts are given.',
      ENTRY_SCHEMA,
    ),
    serviceAccounts: list('ServiceAccounts, in addition to users.', serviceAccount),
    userGroups: list('Groups, at least one of which the user must have. Empty matches all.', ENTRY_SCHEMA),
    nonResourceURLs: list(
      'Paths of non-resource requests; a trailing * is a prefix glob. Empty matches none.',
      ENTRY_SCHEMA,
    ),
    namespaces: list(
      'Namespaces, the empty string for cluster-scoped requests; trailing * globs. Empty: all.',
      ENTRY_SCHEMA,
    ),
    userAgents: list('User-Agent headers; a trailing * is a prefix glob. Empty matches all.', ENTRY_SCHEMA),
  },
)

const ACCESS_RULE_SCHEMA = object('Matches a client if all given fields match.', {
  name: text('Shown in the refusal.'),
  users: list('User names; a trailing * is a prefix glob.', ENTRY_SCHEMA),
  userGroups: list('Groups, at least one of which the user must have.', ENTRY_SCHEMA),
  userAgents: list('User-Agent headers; a trailing * is a prefix glob.', ENTRY_SCHEMA),
  sourceIPs: list('Addresses of the client.', text('An address, or a block such as 10.0.0.0/8.')),
})

// Schema of spec.listGuard.
const LIST_GUARD_SCHEMA = object(
  'If present, even if empty, lists without a limit that are known to be large are refused with 429, of one namespace or of all. ' +
    'Pages, watches, lists from the cache (resourceVersion=0), nodes and controllers pass. Default: no list is refused.',
  {
    shadow: defaultsTo(false, flag('Count and warn, but admit.')),
    maxBytesUnlimited: defaultsTo(
      50_000_000,
      integer(
        'Largest list that may be requested without a limit, by its last known size in bytes without compression. Lists of unknown size pass.',
        100_000,
      ),
    ),
    exempt: list('Lists that pass at any size. Requests that match spec.degrade.exempt pass, too.', RULE_SCHEMA),
  },
)

// Schema of spec.shares.
const weight = object(
  'Users with a weight other than 1: all given fields must match.',
  {
    weight: integer('Each of them has as many shares as this number of users with weight 1.', 1, 100),
    users: list('User names; a trailing * is a prefix glob.', ENTRY_SCHEMA),
    userGroups: list('Groups, at least one of which the user must have.', ENTRY_SCHEMA),
  },
  ['weight'],
)

const SHARES_SCHEMA = object(
  'Shares of the users of this cluster in the resources that the gateway divides among users under contention: requests in ' +
    'flight, watches, memory, reviews. Heartbeats of nodes need no weight.',
  {
    weights: atMost(
      SIZES.shareWeights,
      list('In order; the first match decides. All other users have weight 1.', weight),
    ),
  },
)

const LOG_MODES = ['on', 'off', ''] as const
const ENTRY_PATTERN = '^([^-]|-[^*]|-[*]+[^*]|-?$)'

const server = object(
  'One kube-apiserver.',
  {
    endpoint: checked(
      text('URL without a path: `https://host:port` or `http://host:port`. All servers use the same scheme.', {
        maxLength: SIZES.endpoint,
      }),
      ENDPOINT_RULES,
    ),
    disabled: defaultsTo(false, flag('The server takes no new requests; running ones finish.')),
    weight: defaultsTo(
      100,
      integer('Share of the requests, relative to the other servers. With `resolve`, each address has it.', 0, 1000),
    ),
    resolve: defaultsTo(
      false,
      flag(
        'Each address of the DNS name in `endpoint` is an endpoint with its own health and load. The name is looked up again when ' +
          'its TTL expires. If false, each new connection looks it up.',
      ),
    ),
  },
  ['endpoint'],
)

const dispatchPolicy = object(
  'How requests that match one of its rules are handled.',
  {
    strategy: defaultsTo('RoundRobin', oneOfOrNone('How a server is picked.', STRATEGIES)),
    upstreamSubset: atMost(
      SIZES.upstreamSubset,
      list(
        'Endpoints, as written in spec.servers, that may serve. Empty: all.',
        text('An endpoint.', { maxLength: SIZES.endpoint }),
      ),
    ),
    rules: list('At least one must match.', RULE_SCHEMA, 1),
    flowControlSchemaName: text('The limit, by its name in spec.flowControl. Default: none.', {
      maxLength: SIZES.flowControlSchemaName,
    }),
    logMode: oneOf('Access log of these requests: "on", "off" (in quotes), or empty to follow the cluster.', LOG_MODES),
    action: defaultsTo('Forward', oneOf('Deny refuses with 403.', ['Forward', 'Deny'])),
    shadow: defaultsTo(false, flag('With action Deny: count and warn, but forward.')),
  },
  ['rules'],
)

const healthCheck = object('How servers are probed.', {
  path: checked(defaultsTo('/readyz', text('Path of the GET request.', { maxLength: 2048 })), PROBE_PATH_RULES),
  intervalSeconds: defaultsTo(5, integer('Seconds between two probes.', 1, 300)),
  timeoutSeconds: defaultsTo(3, integer('Seconds until a probe has failed.', 1, 60)),
  healthyThreshold: defaultsTo(1, integer('Consecutive successes until a server is healthy.', 1, 100)),
  unhealthyThreshold: defaultsTo(2, integer('Consecutive failures until a server is unhealthy.', 1, 100)),
})

const accessControl = object('Which users may use the cluster at all.', {
  allow: list('If it is not empty, users that it does not match are refused.', ACCESS_RULE_SCHEMA),
  deny: list('Checked first.', ACCESS_RULE_SCHEMA),
  shadow: defaultsTo(false, flag('Count and warn, but admit.')),
})

const recovery = object(
  'The leading gateway returns to Off step by step: it sets the next mode of the ladder when the checks of the present mode have held, ' +
    'and goes back one mode when they fail. status.degrade.recovery shows what it waits for. Removed at the end. expiresAt ends it with the mode.',
  {
    hold: defaultsTo('60s', duration('How long the checks of a mode must hold before the next mode is set.')),
    ramp: defaultsTo('10m', duration('How long the ramp of Limited takes; the mode is held at least as long.')),
  },
)

const before = object(
  'The switch as it was before a command for many clusters set the mode. A recovery ends there instead of at Off, and then removes this field, as mode Off does.',
  {
    mode: oneOf('The mode. Off: nothing was refused.', DEGRADE_MODES),
    reason: text('Its reason.', { maxLength: 1024 }),
    expiresAt: text('Its expiry (RFC 3339). From then on the recovery leads to Off. Default: none.', {
      format: 'date-time',
    }),
    shadow: flag('Whether it was in shadow mode.'),
  },
  ['mode'],
)

const DAY_SECONDS = 86_400

const degradeLimit = object(
  'Disruptive requests per second that each replica admits in mode Limited. The rate grows from `since` on; without that field it stays ' +
    'at startQPS.',
  {
    startQPS: defaultsTo(1, integer('Rate when the mode is set.', 1, 1_000_000)),
    endQPS: defaultsTo(20, integer('Rate at the end of the ramp, and after it.', 1, 1_000_000)),
    overSeconds: defaultsTo(
      300,
      integer('How long the ramp takes. Default {default}; recovery.ramp takes precedence.', 0, DAY_SECONDS),
    ),
  },
)

const degrade = object('The degrade switch, for incidents.', {
  mode: defaultsTo(
    DEFAULT_DEGRADE_MODE,
    oneOf(
      `${DEGRADE_MODES.map((mode) => `${mode}: ${degradeEffect(mode)}`).join('; ')}. Each admits everything that the next stricter one ` +
        'admits. Default {default}. In YAML write "Off" in quotes: without them it means false.',
      DEGRADE_MODES,
    ),
  ),
  reason: text('Shown in every refusal.', { maxLength: 1024 }),
  expiresAt: text('From this moment on (RFC 3339) the mode is Off. Default: never.', { format: 'date-time' }),
  since: text('When the mode was set (RFC 3339). Set it together with mode Limited.', { format: 'date-time' }),
  limited: degradeLimit,
  exempt: list('Requests that pass in any mode.', RULE_SCHEMA),
  shadow: defaultsTo(false, flag('Count and warn, but admit.')),
  recovery,
  before,
  auto: AUTO_DEGRADE_SCHEMA,
})

const revocation = object(
  'A user or credential that is refused. Exactly one of user, certificateFingerprint and tokenHash.',
  {
    user: text('A user name, however the user authenticates.', { minLength: 1, maxLength: SIZES.userName }),
    certificateFingerprint: sha256('the client certificate (DER), or of the part of it that is signed'),
    tokenHash: sha256('the bearer token, or of header.payload of a JWT'),
    reason: text('Reason, for people.', { maxLength: 1024 }),
    revokedAt: time('Time of the revocation, for people.'),
  },
)

function sha256(what: string): Schema<string> {
  return checked(text(`SHA-256 of ${what}: 64 lower-case hex digits.`, { maxLength: SIZES.sha256 }), SHA256_RULES)
}

const authentication = object('How clients are authenticated.', {
  audiences: list("Audiences requested in a TokenReview. Empty: the cluster's own.", text('An audience.')),
  tokenSuccessTTLSeconds: defaultsTo(60, integer('Seconds that a verified token is cached; 0 = not at all.', 0)),
  tokenFailureTTLSeconds: defaultsTo(10, integer('Seconds that a rejected token is cached; 0 = not at all.', 0)),
  jwt: JWT_SCHEMA,
  anonymous: defaultsTo(true, flag('Whether requests without credentials pass as system:anonymous.')),
  revoked: atMost(
    SIZES.revoked,
    list('Users, certificates and tokens that are refused from now on.', checked(revocation, REVOCATION_RULES)),
  ),
})

const addresses = object('Addresses that select this cluster for clients that send no host name.', {
  ips: atMost(
    SIZES.ips,
    list(
      "Destination IPs of the clients' connections (VIPs).",
      checked(text('An IPv4 or IPv6 address.', { maxLength: SIZES.ip }), IP_RULES),
    ),
  ),
  ports: list("The gateway's listener ports.", integer('A port.', 1, 65535)),
})

const spec = object(
  'An upstream Kubernetes cluster and how it is served.',
  {
    servers: checked(
      atMost(SIZES.servers, list('The kube-apiservers. Required, unless there are members.', server, 1)),
      SERVERS_RULES,
    ),
    followEndpointSlice: defaultsTo(
      false,
      flag(
        "The API servers are those in the cluster's own EndpointSlice `kubernetes`, which is watched. Those in `servers` are used to find it, and " +
          'while none of the others is available. Needs https, a CA in clientConfig, and a DNS name to verify.',
      ),
    ),
    clientConfig: CLIENT_CONFIG_SCHEMA,
    secureServing: SECURE_SERVING_SCHEMA,
    flowControl: object('Limits.', {
      flowControlSchemas: FLOW_CONTROL_SCHEMAS_SCHEMA,
    }),
    dispatchPolicies: atMost(
      SIZES.dispatchPolicies,
      list('In order; the first with a rule that matches decides. No match: 403.', dispatchPolicy, 1),
    ),
    logging: object('Access log.', {
      mode: oneOf('Access log of this cluster: "on", "off" (in quotes), or empty to follow the policies.', LOG_MODES),
    }),
    addresses,
    default: defaultsTo(false, flag('Serves every request that no other cluster claims. At most one cluster.')),
    healthCheck,
    accessControl,
    degrade,
    authentication,
    listGuard: LIST_GUARD_SCHEMA,
    shares: SHARES_SCHEMA,
    podProtection: POD_PROTECTION_SCHEMA,
    autoscaler: AUTOSCALER_SCHEMA,
    scaleProtection: SCALE_PROTECTION_SCHEMA,
    controllerManager: CONTROLLER_MANAGER_SCHEMA,
    cache: READ_CACHE_SCHEMA,
    members: MEMBERS_SCHEMA,
    federation: FEDERATION_SCHEMA,
    audit: AUDIT_SCHEMA,
  },
  ['dispatchPolicies'],
  // Filled in where members take their place.
  ['servers'],
)

export const UPSTREAM_CLUSTER_SPEC_SCHEMA = checked(spec, SPEC_RULES)

/**
 * The schema as used in the CRD. `-*` in a list excludes everything and is never meaningful. A CEL rule for each entry of each rule would need size
 * limits that are too small for real lists of users, hence a pattern; its message is less helpful than that of the checks, so only kube-apiserver
 * gets it.
 */
export function withEntryPattern(schema: JsonSchema): JsonSchema {
  if (schema === ENTRY_SCHEMA) return { ...schema, pattern: ENTRY_PATTERN }
  const { items, properties } = schema
  const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, withEntryPattern(field)])
  return {
    ...schema,
    ...(items !== undefined && { items: withEntryPattern(items) }),
    ...(properties !== undefined && { properties: Object.fromEntries(fields) }),
  }
}
