// A default stands once, in the schema of its kind: who changes it there changes the CRD, `kubectl explain`, what the pages have to
// say, and what is in force.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { apiResources } from '../../src/apiserver/objects/api-resources.ts'
import { schemasOf } from '../../src/apiserver/openapi/openapi.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../src/gateway/api/upstream-cluster/schema.ts'
import type { UpstreamCluster, UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { compileCluster } from '../../src/gateway/core/cluster/compile-cluster.ts'
import { defaultsTo, impliedDefault, type JsonSchema, type Schema } from '../../src/kit/api/json/json-schema.ts'
import type { ResourceKind } from '../../src/kube/api/resource-kind.ts'
import { crdOf } from '../../src/program/api/scheme.ts'
import { documentationErrors, type Explanations, explanationsOf } from '../harness/docs/documented-fields.ts'

type Value = string | number | boolean

/** The schema with another default of one field. `[]` is the items of a list. */
function withDefault<S extends JsonSchema>(schema: S, path: readonly string[], value: Value): S {
  const [first = '', ...rest] = path
  if (first === '') {
    assert.notEqual(impliedDefault(schema), undefined, 'the field has a default')
    // Whatever the type of the value: the schema is that of the field.
    return defaultsTo(value, schema as Schema<Value>) as JsonSchema as S
  }
  if (first === '[]') return { ...schema, items: withDefault(schema.items ?? assert.fail(), rest, value) }
  const field = schema.properties?.[first] ?? assert.fail(`no ${first}`)
  return { ...schema, properties: { ...schema.properties, [first]: withDefault(field, rest, value) } }
}

function compiled(schema: Schema<UpstreamClusterSpec>): unknown {
  const object: UpstreamCluster = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'a' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }, { endpoint: 'https://api.example.com:6443' }],
      flowControl: { flowControlSchemas: [{ name: 'a', tokenBucket: { qps: 1, burst: 1 } }] },
      dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }],
      accessControl: {},
      degrade: { recovery: {}, auto: { nodes: {}, upstream: {} } },
      autoscaler: {},
      podProtection: { aggregation: { updateTrigger: { namespace: 'x' } } },
      scaleProtection: {},
      listGuard: {},
      cache: [{ version: 'v1', resource: 'pods' }],
      members: [{ name: 'b' }],
      federation: { resources: [{ version: 'v1', resource: 'pods' }] },
      audit: { sessions: {} },
    },
  }
  return compileCluster({ object, revision: '1' }, schema)
}

const PAGE = readFileSync(new URL('../../docs/upstream-cluster.md', import.meta.url), 'utf8')
/** By its manifests of whole objects. */
const EXPLAINED: Explanations = new Map(
  [...PAGE.matchAll(/^```yaml\n(apiVersion:[\s\S]*?)^```/gm)].flatMap(([, manifest = '']) => [
    ...explanationsOf(manifest),
  ]),
)

/** Another value for each default, and where it is in force. */
const CHANGES: readonly (readonly [path: string, value: Value, inForce: string, as?: Value])[] = [
  ['servers.[].weight', 7, 'endpoints.0.weight'],
  ['servers.[].disabled', true, 'endpoints.0.disabled'],
  ['servers.[].resolve', true, 'endpoints.1.of.url', 'https://api.example.com:6443'],
  ['followEndpointSlice', true, 'followsSlice'],
  ['clientConfig.insecure', true, 'client.insecure'],
  ['clientConfig.qps', 7, 'client.qps'],
  ['clientConfig.burst', 7, 'client.burst'],
  ['flowControl.flowControlSchemas.[].perUser', true, 'schemas.0.perUser'],
  ['flowControl.flowControlSchemas.[].cost', true, 'schemas.0.cost'],
  ['flowControl.flowControlSchemas.[].maxWatches', 7, 'schemas.0.maxWatches'],
  ['flowControl.flowControlSchemas.[].shadow', true, 'schemas.0.shadow'],
  ['dispatchPolicies.[].strategy', 'Affinity', 'policies.0.strategy'],
  ['dispatchPolicies.[].action', 'Deny', 'policies.0.deny', true],
  ['dispatchPolicies.[].shadow', true, 'policies.0.shadow'],
  ['default', true, 'isDefault'],
  ['healthCheck.path', '/livez', 'healthCheck.path'],
  ['healthCheck.intervalSeconds', 7, 'healthCheck.intervalMs', 7000],
  ['healthCheck.timeoutSeconds', 7, 'healthCheck.timeoutMs', 7000],
  ['healthCheck.healthyThreshold', 7, 'healthCheck.healthyThreshold'],
  ['healthCheck.unhealthyThreshold', 7, 'healthCheck.unhealthyThreshold'],
  ['accessControl.shadow', true, 'access.shadow'],
  ['degrade.mode', 'Freeze', 'degrade.mode'],
  ['degrade.shadow', true, 'degrade.shadow'],
  ['degrade.auto.shadow', true, 'degrade.auto.shadow'],
  ['degrade.auto.nodes.okUnready', 7, 'degrade.auto.nodes.okUnready'],
  ['degrade.auto.nodes.maxUnreadyPercent', 7, 'degrade.auto.nodes.maxUnreadyPercent'],
  ['degrade.auto.nodes.enterAfter', '7s', 'degrade.auto.nodes.enterAfterMs', 7000],
  ['degrade.auto.nodes.exitPercent', 7, 'degrade.auto.nodes.exitPercent'],
  ['degrade.auto.nodes.exitAfter', '7s', 'degrade.auto.nodes.exitAfterMs', 7000],
  ['degrade.auto.nodes.maxStartupTime', '7s', 'degrade.auto.nodes.startupMs', 7000],
  ['degrade.auto.nodes.staleAfter', '7s', 'degrade.auto.nodes.staleAfterMs', 7000],
  ['degrade.auto.upstream.maxErrorPercent', 7, 'degrade.auto.upstream.maxErrorPercent'],
  ['degrade.auto.upstream.maxLatency', '7s', 'degrade.auto.upstream.maxLatencyMs', 7000],
  ['degrade.auto.upstream.minRequests', 7, 'degrade.auto.upstream.minRequests'],
  ['degrade.auto.upstream.window', '7s', 'degrade.auto.upstream.windowMs', 7000],
  ['degrade.auto.upstream.enterAfter', '7s', 'degrade.auto.upstream.enterAfterMs', 7000],
  ['degrade.auto.upstream.exitAfter', '7s', 'degrade.auto.upstream.exitAfterMs', 7000],
  ['degrade.recovery.hold', '7s', 'degrade.recovery.holdMs', 7000],
  ['degrade.recovery.ramp', '7s', 'degrade.recovery.rampMs', 7000],
  ['degrade.limited.startQPS', 7, 'degrade.limited.startQps'],
  ['degrade.limited.endQPS', 7, 'degrade.limited.endQps'],
  ['degrade.limited.overSeconds', 7, 'degrade.limited.overMs', 7000],
  ['authentication.tokenSuccessTTLSeconds', 7, 'authentication.successTtlMs', 7000],
  ['authentication.tokenFailureTTLSeconds', 7, 'authentication.failureTtlMs', 7000],
  ['authentication.anonymous', false, 'authentication.anonymous'],
  ['autoscaler.statusConfigMap.namespace', 'other', 'autoscaler.namespace'],
  ['autoscaler.statusConfigMap.name', 'other', 'autoscaler.name'],
  ['autoscaler.staleAfterSeconds', 70, 'autoscaler.staleAfterMs', 70_000],
  ['listGuard.shadow', true, 'listGuard.shadow'],
  ['listGuard.maxBytesUnlimited', 700_000, 'listGuard.maxBytesUnlimited'],
  ['podProtection.shadow', true, 'protection.shadow'],
  ['podProtection.failurePolicy', 'Ignore', 'protection.failurePolicy'],
  ['podProtection.timeoutSeconds', 7, 'protection.timeoutMs', 7000],
  ['podProtection.aggregation.disabled', true, 'protection.aggregation.enabled', false],
  ['podProtection.aggregation.syncTime', 'Clock', 'protection.aggregation.syncTime'],
  ['podProtection.aggregation.updateTrigger.name', 'other', 'protection.aggregation.updateTrigger.name'],
  [
    'podProtection.aggregation.updateTrigger.intervalSeconds',
    7,
    'protection.aggregation.updateTrigger.intervalMs',
    7000,
  ],
  ['scaleProtection.shadow', true, 'scaleProtection.shadow'],
  ['scaleProtection.failurePolicy', 'Fail', 'scaleProtection.failurePolicy'],
  ['cache.[].maxBytes', '1Mi', 'cache.0.maxBytes', 1_048_576],
  ['cache.[].maxStaleness', '7s', 'cache.0.maxStalenessMs', 7000],
  ['members.[].trustUsers', true, 'federation.members.0.trustsUsers'],
  ['federation.mode', 'merged', 'federation.mode'],
  ['federation.resources.[].uniqueNames', true, 'federation.resources.0.uniqueNames'],
  ['federation.partial', 'Omit', 'federation.omitsUnread', true],
  ['federation.denied', 'Omit', 'federation.omitsDenied', true],
  ['audit.sessions.record', 'InputAndOutput', 'sessionRecording.input', true],
  ['audit.sessions.portForwards', 'Output', 'sessionRecording.portForwards'],
  ['audit.sessions.whenFull', 'Block', 'sessionRecording.isRequired', true],
  ['controllerManager.podDeletionCost', false, 'controllerManager.podDeletionCost'],
  ['controllerManager.logarithmicScaleDown', false, 'controllerManager.logarithmicScaleDown'],
  ['controllerManager.sidecarRestarts', false, 'controllerManager.sidecarRestarts'],
]

function at(value: unknown, path: string): unknown {
  return path.split('.').reduce((inner: unknown, key) => Reflect.get(Object(inner), key), value)
}

for (const [path, value, inForce, as = value] of CHANGES) {
  test(`the default of ${path} stands once`, () => {
    const spec = withDefault(UPSTREAM_CLUSTER_SPEC_SCHEMA, path.split('.'), value)
    assert.notEqual(at(compiled(UPSTREAM_CLUSTER_SPEC_SCHEMA), inForce), as)
    assert.equal(at(compiled(spec), inForce), as)
    const kind: ResourceKind = { ...UPSTREAM_CLUSTERS, schema: { ...UPSTREAM_CLUSTERS.schema, properties: { spec } } }
    const field = `spec.${path.replaceAll('.[]', '')}`
    const said = `Default ${String(value)}`
    assert.ok(
      descriptionIn(at(crdOf(kind, '0.0.0'), 'spec.versions.0.schema.openAPIV3Schema'), `spec.${path}`).includes(said),
    )
    const published = Object.values(schemasOf(apiResources([kind], []), 'v3'))
    assert.ok(JSON.stringify(published).includes(said))
    const errors = documentationErrors(EXPLAINED, spec, 'spec', (name) => name.endsWith('Ref.namespace'))
    assert.deepEqual(errors.length, 1, errors.join())
    assert.match(errors[0] ?? '', new RegExp(`^${field} has the default ${String(value)}, the page says`))
  })
}

function descriptionIn(schema: unknown, path: string): string {
  const inner = path
    .split('.')
    .reduce((whole, key) => (key === '[]' ? at(whole, 'items') : at(whole, `properties.${key}`)), schema)
  return String(at(inner, 'description'))
}

test('every default of an UpstreamCluster is in the table above', () => {
  const defaults: string[] = []
  const look = (schema: JsonSchema, path: string): void => {
    // What an API server stores is in every object, and of a reference only its reader knows what is missing.
    if (impliedDefault(schema) !== undefined && schema.default === undefined && !path.includes('Ref.'))
      defaults.push(path)
    if (schema.items !== undefined) look(schema.items, `${path}.[]`)
    for (const [name, field] of Object.entries(schema.properties ?? {}))
      look(field, path === '' ? name : `${path}.${name}`)
  }
  look(UPSTREAM_CLUSTER_SPEC_SCHEMA, '')
  const listed = CHANGES.map(([path]) => path)
  // A divisor of 0 or 1 changes nothing, and a larger one needs qps.
  assert.deepEqual(
    defaults.filter((path) => !listed.includes(path)),
    ['clientConfig.qpsDivisor'],
  )
  assert.deepEqual(
    listed.filter((path) => !defaults.includes(path)),
    [],
  )
})
