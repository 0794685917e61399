// The one JSON Schema of UpstreamCluster's spec: shape, types, ranges and a description of every field. ajv checks objects
// against it, the CRD in deploy/crds/ carries it. What a schema cannot say is in upstream-cluster-checks.ts.

import {
  atMost,
  checked,
  flag,
  integer,
  type JsonSchema,
  list,
  object,
  oneOf,
  text,
  time,
} from '../kube/json-schema.ts'
import {
  ENDPOINT_RULES,
  IP_RULES,
  PROBE_PATH_RULES,
  REVOCATION_RULES,
  SERVERS_RULES,
  SHA256_RULES,
  SIZES,
  SPEC_RULES,
} from './cel.ts'
import { POD_PROTECTION_SCHEMA } from './cluster-protection-schema.ts'
import { CLIENT_CONFIG_SCHEMA, SECURE_SERVING_SCHEMA } from './credentials-schema.ts'
import { DEGRADE_MODES, degradeEffect } from './degrade-modes.ts'
import { FLOW_CONTROL_SCHEMAS_SCHEMA } from './limits-schema.ts'
import { ACCESS_RULE_SCHEMA, ENTRY_SCHEMA, RULE_SCHEMA } from './rule-schema.ts'
import type {
  AccessControl,
  Addresses,
  Authentication,
  Degrade,
  DispatchPolicy,
  HealthCheck,
  Revocation,
  UpstreamClusterSpec,
  UpstreamServer,
} from './upstream-cluster.ts'

const LOG_MODES = ['on', 'off', '']
const ENTRY_PATTERN = '^([^-]|-[^*]|-[*]+[^*]|-?$)'

const server: JsonSchema = object<UpstreamServer>(
  'One kube-apiserver.',
  {
    endpoint: checked(
      text('URL without a path: `https://host:port` or `http://host:port`. All servers use the same scheme.', {
        maxLength: SIZES.endpoint,
      }),
      ENDPOINT_RULES,
    ),
    disabled: flag('The server takes no new requests; running ones finish. Default false.'),
    weight: integer('Share of the requests relative to the other servers. Default 100.', 0, 1000),
  },
  ['endpoint'],
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
    upstreamSubset: atMost(
      SIZES.upstreamSubset,
      list(
        'Endpoints, as written in spec.servers, that may serve. Empty: all.',
        text('An endpoint.', { maxLength: SIZES.endpoint }),
      ),
    ),
    rules: list('One of these has to match.', RULE_SCHEMA, 1),
    flowControlSchemaName: text('The limit, by its name in spec.flowControl. Default: none.', {
      maxLength: SIZES.flowControlSchemaName,
    }),
    logMode: oneOf('Access log of these requests: "on", "off" (in quotes), or empty to follow the cluster.', LOG_MODES),
    action: oneOf('Deny refuses with 403. Default Forward.', ['Forward', 'Deny']),
    shadow: flag('With action Deny: count and warn, but forward. Default false.'),
  },
  ['rules'],
)

const healthCheck: JsonSchema = object<HealthCheck>('How servers are probed.', {
  path: checked(text('Path asked for with GET. Default /readyz.', { maxLength: 2048 }), PROBE_PATH_RULES),
  intervalSeconds: integer('Seconds between two probes. Default 5.', 1, 300),
  timeoutSeconds: integer('Seconds until a probe has failed. Default 3.', 1, 60),
  healthyThreshold: integer('Consecutive successes until a server is healthy. Default 1.', 1, 100),
  unhealthyThreshold: integer('Consecutive failures until a server is unhealthy. Default 2.', 1, 100),
})

const accessControl: JsonSchema = object<AccessControl>('Who may use the cluster at all.', {
  allow: list('When not empty, everybody whom it does not name is refused.', ACCESS_RULE_SCHEMA),
  deny: list('Asked first.', ACCESS_RULE_SCHEMA),
  shadow: flag('Count and warn, but let pass. Default false.'),
})

const degrade: JsonSchema = object<Degrade>('The degrade switch, for incidents.', {
  mode: oneOf(
    `${DEGRADE_MODES.map((mode) => `${mode}: ${degradeEffect(mode)}`).join('; ')}. Each lets through all that the stricter one ` +
      'does. Default Off. In YAML write "Off" in quotes: without, it means false.',
    DEGRADE_MODES,
  ),
  reason: text('Shown in every refusal.', { maxLength: 1024 }),
  expiresAt: text('From this moment on (RFC 3339) the mode is Off. Default: never.', { format: 'date-time' }),
  exempt: list('Requests that pass in any mode.', RULE_SCHEMA),
  shadow: flag('Count and warn, but let pass. Default false.'),
})

const revocation: JsonSchema = object<Revocation>(
  'Whom nothing lets in any more. Exactly one of user, certificateFingerprint and tokenHash.',
  {
    user: text('A user name, however the user proves it.', { minLength: 1, maxLength: SIZES.userName }),
    certificateFingerprint: sha256('the client certificate (DER), or of the part of it that is signed'),
    tokenHash: sha256('the bearer token, or of header.payload of a JWT'),
    reason: text('Why. For people.', { maxLength: 1024 }),
    revokedAt: time('When. For people.'),
  },
)

function sha256(what: string): JsonSchema {
  return checked(text(`SHA-256 of ${what}: 64 lower-case hex digits.`, { maxLength: SIZES.sha256 }), SHA256_RULES)
}

const authentication: JsonSchema = object<Authentication>('How clients are authenticated.', {
  audiences: list("Audiences asked for in a TokenReview. Empty: the cluster's own.", text('An audience.')),
  tokenSuccessTTLSeconds: integer('Seconds that a verified token is remembered; 0 = not. Default 60.', 0),
  tokenFailureTTLSeconds: integer('Seconds that a rejected token is remembered; 0 = not. Default 10.', 0),
  anonymous: flag('Whether requests without credentials pass as system:anonymous. Default true.'),
  revoked: atMost(
    SIZES.revoked,
    list('Users, certificates and tokens that are refused from now on.', checked(revocation, REVOCATION_RULES)),
  ),
})

const addresses: JsonSchema = object<Addresses>('By what clients choose this cluster when they name no host.', {
  ips: atMost(
    SIZES.ips,
    list(
      "Destination IPs of the clients' connections (VIPs).",
      checked(text('An IPv4 or IPv6 address.', { maxLength: SIZES.ip }), IP_RULES),
    ),
  ),
  ports: list("The gateway's listener ports.", integer('A port.', 1, 65535)),
})

const spec: JsonSchema = object<UpstreamClusterSpec>(
  'An upstream Kubernetes cluster and how it is served.',
  {
    servers: checked(atMost(SIZES.servers, list('The kube-apiservers.', server, 1)), SERVERS_RULES),
    clientConfig: CLIENT_CONFIG_SCHEMA,
    secureServing: SECURE_SERVING_SCHEMA,
    flowControl: object<{ flowControlSchemas?: unknown }>('Limits.', {
      flowControlSchemas: FLOW_CONTROL_SCHEMAS_SCHEMA,
    }),
    dispatchPolicies: atMost(
      SIZES.dispatchPolicies,
      list('In order; the first with a rule that matches decides. No match: 403.', dispatchPolicy, 1),
    ),
    logging: object<{ mode?: unknown }>('Access log.', {
      mode: oneOf(
        'Access log of this cluster: "on", "off" (in quotes), or empty for what the policies say.',
        LOG_MODES,
      ),
    }),
    addresses,
    default: flag('Serves every request that no other cluster claims. At most one cluster. Default false.'),
    healthCheck,
    accessControl,
    degrade,
    authentication,
    podProtection: POD_PROTECTION_SCHEMA,
  },
  ['servers', 'dispatchPolicies'],
)

export const UPSTREAM_CLUSTER_SPEC_SCHEMA: JsonSchema = checked(spec, SPEC_RULES)

/**
 * As it stands in the CRD. `-*` in a list excludes everything, and means nothing at all. A CEL rule for each entry of each
 * rule would need limits that are too small for real lists of users, so a pattern stands for it; its message says less than
 * the checks do, so only a kube-apiserver is given it.
 */
export const UPSTREAM_CLUSTER_SPEC_CRD_SCHEMA: JsonSchema = withPattern(UPSTREAM_CLUSTER_SPEC_SCHEMA)

function withPattern(schema: JsonSchema): JsonSchema {
  if (schema === ENTRY_SCHEMA) return { ...schema, pattern: ENTRY_PATTERN }
  const { items, properties } = schema
  const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, withPattern(field)])
  return {
    ...schema,
    ...(items !== undefined && { items: withPattern(items) }),
    ...(properties !== undefined && { properties: Object.fromEntries(fields) }),
  }
}
