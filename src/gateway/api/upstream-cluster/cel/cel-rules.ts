// The rules of checks.ts and the *-checks.ts that CEL can express, for a kube-apiserver that serves the CRD: it then refuses what the gateway would
// refuse, in the same words. SIZES holds the bounds that the API server's cost estimate needs.

import type { CelRule } from '../../../../kit/api/json/json-schema.ts'

/** Maximum lengths of the lists and texts that rules look at. */
export const SIZES = {
  servers: 128,
  /** `https://`, a DNS name, a port. */
  endpoint: 512,
  flowControlSchemas: 1024,
  flowControlSchemaName: 253,
  dispatchPolicies: 512,
  upstreamSubset: 128,
  serverNames: 1024,
  serverName: 256,
  ips: 1024,
  ip: 64,
  revoked: 10_000,
  userName: 1024,
  sha256: 64,
  objectName: 253,
  namespace: 63,
  namespaces: 1024,
  annotation: 317,
  shareWeights: 64,
  cachedResources: 64,
  cachedNamespaces: 64,
  members: 64,
  /** As in kube-apiserver's AuthenticationConfiguration. */
  issuers: 64,
  audiences: 64,
  claim: 256,
  extraMappings: 64,
  validationRules: 64,
  expression: 4096,
  certificateAuthority: 65_536,
} as const

/** For bounded texts and base64: absent and empty are the same. */
const has = (field: string): string => `(has(self.${field}) && self.${field}.size() > 0)`
const given = (field: string, reference: string): string => `(${has(field)} || has(self.${reference}))`

function rule(expression: string, message: string, fieldPath?: string, reason?: CelRule['reason']): CelRule {
  return {
    rule: expression,
    message,
    ...(fieldPath !== undefined && { fieldPath }),
    ...(reason !== undefined && { reason }),
  }
}

export const ENDPOINT_RULES: readonly CelRule[] = [
  rule(
    "self.matches('^https?://([-_.A-Za-z0-9]+|[[][0-9a-fA-F:.]+[]])(:[0-9]{1,5})?/?$')",
    'write https://host:port or http://host:port, without a path',
  ),
]

export const SERVERS_RULES: readonly CelRule[] = [
  rule(
    "!(self.exists(s, s.endpoint.startsWith('https://')) && self.exists(s, s.endpoint.startsWith('http://')))",
    'use one scheme for all servers',
  ),
]

export const SECRET_REFERENCE_RULES: readonly CelRule[] = [
  rule(
    "(has(self.file) && self.file != '') != (has(self.name) && self.name != '')",
    'give exactly one of file and name',
  ),
  rule(
    "!has(self.file) || self.file == ''",
    'is only for objects that come from files (--source files); name a Secret: name, namespace and key',
    '.file',
  ),
  rule(
    "!has(self.name) || self.name == '' || (has(self.key) && self.key != '')",
    "is required when name is set; name the key in the Secret's data, such as tls.key",
    '.key',
  ),
]

const KEY = given('keyData', 'keyRef')
const CERT = given('certData', 'certRef')
const TOKEN = given('bearerToken', 'bearerTokenRef')
/** Next to a token, a lone key or certificate merely has no effect, which CEL cannot express. */
const PAIR_RULES: readonly CelRule[] = [
  rule(
    `!${CERT} || ${KEY} || ${TOKEN}`,
    'is required when certData is set; add the private key of the certificate',
    '.keyData',
  ),
  rule(
    `!${KEY} || ${CERT} || ${TOKEN}`,
    'is required when keyData is set; add the certificate of the private key',
    '.certData',
  ),
]

export const CLIENT_CONFIG_RULES: readonly CelRule[] = [
  onlyOne('bearerToken', 'bearerTokenRef'),
  onlyOne('keyData', 'keyRef'),
  onlyOne('certData', 'certRef'),
  onlyOne('caData', 'caRef'),
  ...PAIR_RULES,
  rule(
    '!has(self.qps) || self.qps <= 0 || (has(self.burst) && self.burst >= self.qps)',
    'is below qps; write at least qps, or remove qps',
    '.burst',
  ),
]

export const SECURE_SERVING_RULES: readonly CelRule[] = [
  onlyOne('keyData', 'keyRef'),
  onlyOne('certData', 'certRef'),
  onlyOne('clientCAData', 'clientCARef'),
]

function onlyOne(field: string, reference: string): CelRule {
  const expression = `!(${has(field)} && has(self.${reference}))`
  return rule(expression, `may not be specified when ${field} is set; remove one of the two`, `.${reference}`)
}

export const SERVER_NAME_RULES: readonly CelRule[] = [
  rule(
    "self.matches('^([*][.])?[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*[.]?$')" +
      " || self.matches('^[0-9a-fA-F:.]*:[0-9a-fA-F:.]*$')",
    'is not a valid host name; write a DNS name; * only as the whole first label; addresses go to spec.addresses.ips',
  ),
]

export const IP_RULES: readonly CelRule[] = [
  rule(
    "self.matches('^[0-9a-fA-F:.]+$')",
    'is not a valid IP address; write an IPv4 or IPv6 address without brackets; host names go to spec.secureServing.serverNames',
  ),
]

const SHARED = "has(self.strategy) && self.strategy in ['globalAllocate', 'globalCount']"

export const FLOW_CONTROL_SCHEMA_RULES: readonly CelRule[] = [
  rule(
    '[has(self.exempt), has(self.maxRequestsInflight), has(self.tokenBucket)].exists_one(given, given)',
    'sets no limit, or more than one; keep one of exempt, maxRequestsInflight, tokenBucket (exempt: {} means unlimited)',
  ),
  ...sharedLimit('maxRequestsInflight', 'globalMaxRequestsInflight', ['max']),
  ...sharedLimit('tokenBucket', 'globalTokenBucket', ['qps', 'burst']),
  rule(
    `!(${SHARED} && (has(self.globalMaxRequestsInflight) || has(self.globalTokenBucket)) && ` +
      'has(self.perUser) && self.perUser)',
    'may not be specified with a limit that replicas share; remove it, or set strategy to local',
    '.perUser',
  ),
]

function sharedLimit(local: string, shared: string, numbers: readonly string[]): CelRule[] {
  return [
    rule(`!has(self.${shared}) || has(self.${local})`, `is required when ${shared} is set; add ${local}`, `.${local}`),
    ...numbers.map((number) =>
      rule(
        `!(has(self.${local}) && has(self.${shared})) || self.${shared}.${number} >= self.${local}.${number}`,
        'is below the local limit; write at least as much',
        `.${shared}.${number}`,
      ),
    ),
  ]
}

export const TOKEN_BUCKET_RULES: readonly CelRule[] = [
  rule('self.burst >= self.qps', 'is below qps; write at least qps', '.burst'),
]

export const PROBE_PATH_RULES: readonly CelRule[] = [
  rule(
    "self == '' || self.matches('^/[!\"$-~]*$')",
    'is not a valid path; write a path that begins with /, such as /readyz',
  ),
]

export const REVOCATION_RULES: readonly CelRule[] = [
  rule(
    '[has(self.user), has(self.certificateFingerprint), has(self.tokenHash)].exists_one(given, given)',
    'give exactly one of user, certificateFingerprint and tokenHash',
  ),
]

export const SHA256_RULES: readonly CelRule[] = [
  rule("self.matches('^[0-9a-f]{64}$')", 'is not a valid SHA-256; write 64 lower-case hex digits, no colons'),
]

const OBJECT_NAME = "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')"
const OBJECT_NAME_FIX = 'use lower-case letters, digits, - and ., beginning and ending with a letter or digit'

export const CELL_RULES: readonly CelRule[] = [rule(OBJECT_NAME, `is not a valid cell name; ${OBJECT_NAME_FIX}`)]
export const OBJECT_NAME_RULES: readonly CelRule[] = [rule(OBJECT_NAME, `is not a valid pod name; ${OBJECT_NAME_FIX}`)]
export const CONFIG_MAP_NAME_RULES: readonly CelRule[] = [
  rule(OBJECT_NAME, `is not a valid ConfigMap name; ${OBJECT_NAME_FIX}`),
]

export const NAMESPACE_RULES: readonly CelRule[] = [
  rule(
    "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
    'is not a valid namespace; write the name of a namespace: at most 63 lower-case letters, digits and -; no patterns',
  ),
]

export const MEMBER_NAME_RULES: readonly CelRule[] = [
  rule(
    "self.matches('^[a-z0-9](-?[a-z0-9])*$')",
    'is not a valid name of a member; write up to 32 lower-case letters, digits and -, without two hyphens in a row',
  ),
]

export const MEMBERS_RULES: readonly CelRule[] = [
  rule('self.all(m, self.exists_one(n, n.name == m.name))', 'two members have the same name; rename one of them'),
]

export const AGGREGATION_RULES: readonly CelRule[] = [
  rule(
    `!(has(self.syncTime) && self.syncTime == 'Annotation') || ${has('syncTimeAnnotation')}`,
    'is required when syncTime is Annotation; name the annotation of pods that holds a time',
    '.syncTimeAnnotation',
  ),
]

export const AUTO_DEGRADE_RULES: readonly CelRule[] = [
  rule(
    'has(self.nodes) || has(self.upstream)',
    'has nothing that could begin it; add nodes: {} or upstream: {}, or remove it',
  ),
]

export const AUTO_DEGRADE_UPSTREAM_RULES: readonly CelRule[] = [
  rule(
    "!has(self.window) || (duration(self.window) >= duration('5s') && duration(self.window) <= duration('10m'))",
    'is too short or too long; write 5s to 10m',
    '.window',
  ),
]

/** Uses the defaults of the schema, which a kube-apiserver does not fill in. */
export function autoDegradeNodesRules(exitPercent: number, maxUnreadyPercent: number): readonly CelRule[] {
  const exit = `(has(self.exitPercent) ? self.exitPercent : ${exitPercent})`
  const max = `(has(self.maxUnreadyPercent) ? self.maxUnreadyPercent : ${maxUnreadyPercent})`
  return [
    rule(`${exit} <= ${max}`, 'is above maxUnreadyPercent; write at most as much', '.exitPercent'),
    rule(
      "!has(self.staleAfter) || duration(self.staleAfter) >= duration('5s')",
      'is too short; write at least 5s',
      '.staleAfter',
    ),
  ]
}

const HTTPS = "(has(self.servers) && self.servers.exists(s, s.endpoint.startsWith('https://')))"
const HTTP = "(has(self.servers) && self.servers.exists(s, s.endpoint.startsWith('http://')))"
const MEMBERS = '(has(self.members) && self.members.size() > 0)'
const CLIENT = 'self.clientConfig'
const CREDENTIALS = [
  ...['bearerToken', 'keyData', 'certData'].map((name) => `(has(${CLIENT}.${name}) && ${CLIENT}.${name}.size() > 0)`),
  ...['bearerTokenRef', 'keyRef', 'certRef'].map((name) => `has(${CLIENT}.${name})`),
]

/**
 * Largest product of servers and policies for which upstreamSubset is checked: above it, a valid object would be refused for exceeding the API
 * server's runtime cost limit. Larger objects are left to the webhook and the gateway.
 */
const COMPARED = 2048

export const SPEC_RULES: readonly CelRule[] = [
  rule(
    `has(self.servers) || ${MEMBERS}`,
    'add servers: the kube-apiservers, or members: clusters that are read as one',
    '.servers',
    'FieldValueRequired',
  ),
  rule(
    `!has(self.servers) || !${MEMBERS}`,
    'may not be specified with members; make an UpstreamCluster of the servers, and name it in spec.members',
    '.servers',
  ),
  rule(
    `!has(self.federation) || ${MEMBERS}`,
    'is required when federation is set; name the clusters that are read as one, or remove spec.federation',
    '.members',
  ),
  rule(
    `!${HTTP} || !has(${CLIENT}) || !((has(${CLIENT}.bearerToken) && ${CLIENT}.bearerToken.size() > 0) || ` +
      `has(${CLIENT}.bearerTokenRef))`,
    'the token would be sent in clear: the servers are http://; use https:// servers, or remove the token',
    '.clientConfig',
  ),
  rule(
    `!${HTTPS} || (has(${CLIENT}) && (${CREDENTIALS.join(' || ')}))`,
    'names no credentials for the servers; add bearerToken, or certData and keyData',
    '.clientConfig',
  ),
  rule(
    `!${HTTPS} || (has(${CLIENT}) && ((has(${CLIENT}.insecure) && ${CLIENT}.insecure) || ` +
      `(has(${CLIENT}.caData) && ${CLIENT}.caData.size() > 0) || has(${CLIENT}.caRef)))`,
    'is required for https servers; add the CA of the servers, or set insecure: true',
    '.clientConfig.caData',
  ),
  rule(
    'sets.contains(' +
      '(has(self.flowControl) && has(self.flowControl.flowControlSchemas)) ? ' +
      'self.flowControl.flowControlSchemas.map(s, s.name) : [], ' +
      "self.dispatchPolicies.map(p, has(p.flowControlSchemaName) && p.flowControlSchemaName != '', " +
      'p.flowControlSchemaName))',
    'a flowControlSchemaName is not in spec.flowControl.flowControlSchemas',
    '.dispatchPolicies',
  ),
  rule(
    `!has(self.servers) || self.servers.size() * self.dispatchPolicies.size() > ${COMPARED} || ` +
      'self.dispatchPolicies.all(p, !has(p.upstreamSubset) || ' +
      'sets.contains(self.servers.map(s, s.endpoint), p.upstreamSubset))',
    'an entry of upstreamSubset is not in spec.servers',
    '.dispatchPolicies',
  ),
]
