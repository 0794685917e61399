// UpstreamClusters as KubeGateway knows them: those of its documentation, and any that its types and its validation let through.
// What Portcullis refuses all the same (docs/coming-from-kubegateway.md, "What stays an error") is not among the latter.

import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { createCA, issueCertificate } from '../../../src/pki/io/pki.ts'

export interface Manifest {
  readonly name: string
  readonly object: JsonObject
  /** Paths, sorted. */
  readonly warnings: readonly string[]
  readonly errors: readonly string[]
}

/** The corpus, with keys and certificates in it. */
export function kubeGatewayManifests(): readonly Manifest[] {
  const text = readFileSync(new URL('../../data/kubegateway-manifests.json', import.meta.url), 'utf8')
  const material = keyMaterial()
  return JSON.parse(text, (_key, value: unknown) =>
    typeof value === 'string' && value.startsWith('$') ? (material[value] ?? value) : value,
  ).cases
}

let made: Record<string, string> | undefined

function keyMaterial(): Record<string, string> {
  if (made !== undefined) return made
  const ca = createCA({ commonName: 'ca' })
  const pair = issueCertificate(ca, { commonName: 'gateway', usage: 'both' })
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  made = { $CERT: base64(pair.certPem), $KEY: base64(pair.keyPem), $CA: base64(ca.certPem) }
  return made
}

const word = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/)
const hostName = fc.array(word, { minLength: 1, maxLength: 3 }).map((labels) => labels.join('.'))
const count = fc.integer({ min: 1, max: 1000 })
const logMode = fc.constantFrom('on', 'off', '')

/** Some of the members, in any combination. */
function some(members: Record<string, fc.Arbitrary<unknown>>, required: string[] = []): fc.Arbitrary<JsonObject> {
  return fc.record(members, { requiredKeys: required })
}

/** Entries are any text there; one of stars behind a dash is refused here. */
function entries(known: readonly string[]): fc.Arbitrary<string[]> {
  const entry = fc.oneof(fc.constantFrom('*', '', ...known), hostName, fc.string({ maxLength: 8 }))
  const inverted = entry.map((text) => `-${text}`)
  return fc.array(
    fc.oneof(entry, inverted).filter((text) => !/^-\*+$/.test(text)),
    { maxLength: 3 },
  )
}

const rule = some({
  verbs: entries(['get', 'list', 'watch']),
  apiGroups: entries(['apps']),
  resources: entries(['pods', 'pods/exec', '*/scale', 'deployments/*']),
  resourceNames: entries([]),
  users: entries(['system:admin', 'user-*']),
  serviceAccounts: fc.array(some({ namespace: word, name: word }), { maxLength: 2 }),
  userGroups: entries(['system:masters']),
  nonResourceURLs: entries(['/healthz', '/healthz/*']),
})

const bucket = fc.record({ qps: count, more: fc.nat(100) }).map(({ qps, more }) => ({ qps, burst: qps + more }))
const shared = fc.constantFrom('globalAllocate', 'globalCount', 'local', '')
const limit = fc.oneof(
  fc.constant({ exempt: {} }),
  fc.record({ max: fc.nat(1000), more: fc.nat(100), strategy: shared, block: fc.boolean() }).map((given) => ({
    maxRequestsInflight: { max: given.max },
    strategy: given.strategy,
    ...(given.block && { globalMaxRequestsInflight: { max: given.max + given.more } }),
  })),
  fc.record({ bucket, strategy: shared, block: fc.boolean() }).map((given) => ({
    tokenBucket: given.bucket,
    strategy: given.strategy,
    ...(given.block && { globalTokenBucket: { qps: given.bucket.qps, burst: given.bucket.burst + 1 } }),
  })),
)

interface Choices {
  readonly hosts: readonly string[]
  readonly scheme: 'http' | 'https'
  readonly limits: readonly object[]
  readonly policies: readonly { readonly rules: readonly object[]; readonly limit: number; readonly subset: boolean }[]
  readonly credential: 'token' | 'pair' | 'both' | 'token and key'
  readonly verified: 'ca' | 'insecure' | 'both'
}

const choices: fc.Arbitrary<Choices> = fc.record({
  hosts: fc.uniqueArray(hostName, { minLength: 1, maxLength: 3 }),
  scheme: fc.constantFrom('https', 'https', 'http'),
  limits: fc.array(limit, { maxLength: 3 }),
  policies: fc.array(
    fc.record({
      rules: fc.array(rule, { minLength: 1, maxLength: 2 }),
      limit: fc.nat(10),
      subset: fc.boolean(),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  credential: fc.constantFrom('token', 'pair', 'both', 'token and key'),
  verified: fc.constantFrom('ca', 'insecure', 'both'),
})

function clientOf({ scheme, credential, verified }: Choices): JsonObject {
  const { $KEY: keyData, $CERT: certData, $CA: caData } = keyMaterial()
  // A token in clear is refused here.
  const token = scheme === 'https' && credential !== 'pair' ? { bearerToken: 'dG9rZW4=' } : {}
  const pair =
    credential === 'token'
      ? {}
      : credential === 'token and key' && scheme === 'https'
        ? { keyData }
        : { keyData, certData }
  return {
    ...token,
    ...pair,
    ...(verified !== 'insecure' && { caData }),
    ...(verified !== 'ca' && { insecure: true }),
  }
}

function specOf(given: Choices): JsonObject {
  const servers = given.hosts.map((host, at) => ({ endpoint: `${given.scheme}://a${at}.${host}:${6443 + at}` }))
  const schemas = given.limits.map((one, at) => ({ name: `limit-${at}`, ...one }))
  return {
    servers,
    clientConfig: clientOf(given),
    flowControl: { flowControlSchemas: schemas },
    dispatchPolicies: given.policies.map(({ rules, limit: at, subset }) => ({
      rules,
      strategy: 'RoundRobin',
      ...(at < schemas.length && { flowControlSchemaName: `limit-${at}` }),
      ...(subset && { upstreamSubset: [servers[0]?.endpoint] }),
    })),
  }
}

function servingOf(with_: { key: boolean; cert: boolean; ca: boolean; names: readonly string[] }): JsonObject {
  const { $KEY: keyData, $CERT: certData, $CA: clientCAData } = keyMaterial()
  return {
    ...(with_.key && { keyData }),
    ...(with_.cert && { certData }),
    ...(with_.ca && { clientCAData }),
    serverNames: with_.names,
  }
}

/** Its validation accepts each of them. Some have fields that its types do not. */
export const kubeGatewayObjects: fc.Arbitrary<JsonObject> = fc
  .record({
    name: hostName,
    choices,
    serving: fc.record({
      key: fc.boolean(),
      cert: fc.boolean(),
      ca: fc.boolean(),
      names: fc.uniqueArray(fc.oneof(hostName, fc.ipV4(), fc.ipV6()), { maxLength: 3 }),
    }),
    rate: some({ qps: fc.nat(100), qpsDivisor: fc.nat(10) }),
    mode: logMode,
    gates: fc.constantFrom('', 'DenyAllRequests=true', 'GlobalRateLimiter=true,Tracing=false'),
    unknown: fc.dictionary(
      word.map((name) => `x${name}`),
      fc.jsonValue({ maxDepth: 2 }),
      { maxKeys: 2 },
    ),
  })
  .map(({ name, choices: given, serving, rate, mode, gates, unknown }) => {
    const spec = specOf(given)
    return {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name, annotations: { 'proxy.kubegateway.io/feature-gates': gates } },
      spec: {
        ...unknown,
        ...spec,
        clientConfig: { ...clientOf(given), ...rate, burst: 100 },
        secureServing: servingOf(serving),
        logging: { mode },
      },
    }
  })
