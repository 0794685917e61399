// Every rule that can refuse can be tried out: each reason of a refusal has a field `shadow`, or says why not; and with it the request is
// forwarded, with a warning, in the access log and in a metric.

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../src/gateway/api/upstream-cluster/schema.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { JsonSchema } from '../../src/kit/api/json/json-schema.ts'
import { REFUSAL_TABLE, type RefusalReason } from '../../src/kit/core/refusal/refusal.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { SCALE_UP_GUARD_SPEC_SCHEMA } from '../../src/scale-up-guard/api/schema.ts'
import { SCALE_DOWN_POLICY_SPEC_SCHEMA } from '../../src/scaling/api/schema.ts'
import { h2Connect, h2Request, valuesOf } from '../harness/clients/h2-client.ts'
import { startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'
import { SHADOW_MODES } from './shadow-modes.ts'

const SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  UpstreamCluster: UPSTREAM_CLUSTER_SPEC_SCHEMA,
  ScaleUpGuard: SCALE_UP_GUARD_SPEC_SCHEMA,
  ScaleDownPolicy: SCALE_DOWN_POLICY_SPEC_SCHEMA,
}

function fieldAt(schema: JsonSchema | undefined, path: readonly string[]): JsonSchema | undefined {
  const [name, ...rest] = path
  if (name === undefined) return schema
  const object = schema?.items ?? schema
  return fieldAt(object?.properties?.[name], rest)
}

describe('the closed set of reasons', () => {
  for (const reason of Object.keys(REFUSAL_TABLE) as RefusalReason[]) {
    test(reason, () => {
      const mode = SHADOW_MODES[reason]
      if ('whyNot' in mode) {
        assert.ok(mode.whyNot.length > 0)
        return
      }
      assert.ok(mode.fields.length > 0)
      for (const { kind, path } of mode.fields) {
        assert.equal(fieldAt(SCHEMAS[kind], path.split('.'))?.type, 'boolean', `${kind}: spec.${path}`)
        assert.match(path, /(^|\.)shadow$/)
      }
    })
  }

  test('no field of that name is forgotten', () => {
    const named = Object.values(SHADOW_MODES).flatMap((mode) => ('fields' in mode ? mode.fields : []))
    const known = new Set(named.map(({ kind, path }) => `${kind} ${path}`))
    // It switches a mode on by itself: what refuses then is the mode.
    known.add('UpstreamCluster degrade.auto.shadow')
    // What a recovery ends at.
    known.add('UpstreamCluster degrade.before.shadow')
    const found = Object.entries(SCHEMAS).flatMap(([kind, schema]) =>
      shadowsIn(schema, '').map((at) => `${kind} ${at}`),
    )
    assert.deepEqual(new Set(found), known)
  })
})

function shadowsIn(schema: JsonSchema, path: string): string[] {
  const object = schema.items ?? schema
  return Object.entries(object.properties ?? {}).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`
    return name === 'shadow' && field.type === 'boolean' ? [at] : shadowsIn(field, at)
  })
}

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const schema = (limit: object, shadow: boolean): Partial<UpstreamClusterSpec> => ({
  flowControl: { flowControlSchemas: [{ name: 'the-limit', ...limit, shadow }] },
  dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'the-limit' }],
})
const POD = '/api/v1/namespaces/default/pods/p'

/** For each rule that asks no other server: an object in which it refuses, and the request. Rules that ask are tested where they are. */
const CASES: readonly (readonly [
  reason: RefusalReason,
  rule: string,
  spec: (shadow: boolean) => Partial<UpstreamClusterSpec>,
  method: string,
  path: string,
  times?: number,
])[] = [
  [
    'policy-denied',
    'dispatch-action/dispatchPolicies[0]',
    (shadow) => ({ dispatchPolicies: [{ ...ALLOW_ALL, action: 'Deny', shadow }] }),
    'GET',
    POD,
  ],
  [
    'access-denied',
    'access-list/nobody',
    (shadow) => ({ accessControl: { deny: [{ name: 'nobody', users: ['*'] }], shadow } }),
    'GET',
    POD,
  ],
  ['degraded', 'degrade/Freeze', (shadow) => ({ degrade: { mode: 'Freeze', reason: 'test', shadow } }), 'GET', POD],
  [
    'disruption-refused',
    'disruption/NoDisruption',
    (shadow) => ({ degrade: { mode: 'NoDisruption', reason: 'test', shadow } }),
    'DELETE',
    POD,
  ],
  [
    'eviction-refused',
    'disruption/NoDisruption',
    (shadow) => ({ degrade: { mode: 'NoDisruption', reason: 'test', shadow } }),
    'POST',
    `${POD}/eviction`,
  ],
  [
    'rate-limited',
    'flow-control/the-limit',
    (shadow) => schema({ tokenBucket: { qps: 1, burst: 1 } }, shadow),
    'GET',
    POD,
    20,
  ],
  [
    'too-many-in-flight',
    'flow-control/the-limit',
    (shadow) => schema({ maxRequestsInflight: { max: 0 } }, shadow),
    'GET',
    POD,
  ],
]

for (const [reason, rule, spec, method, path, times = 1] of CASES) {
  test(`${reason}: refused; in shadow mode forwarded, warned about, logged and counted`, async () => {
    const stub = await startStub()
    stub.answerAccess = ({ request }) => {
      request.stream.respond({ ':status': 201, 'content-type': 'application/json' })
      request.stream.end('{"status":{"allowed":true}}')
    }
    const lines: Record<string, unknown>[] = []
    const object = (shadow: boolean) =>
      clusterObject([stub], { clientCA, spec: { logging: { mode: 'on' }, ...spec(shadow) } })
    const access = {
      write: (line: string) => void lines.push(JSON.parse(line)),
      dropped: () => 0,
      flush: () => Promise.resolve(),
      close: () => Promise.resolve(),
    }
    const gateway = await startInProcess([object(false)], { accessLog: true }, undefined, { access })
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate: alice })
    cleanups.push(stub.stop, gateway.stop, () => session.destroy())
    const send = async () => {
      const all = Array.from({ length: times }, () => h2Request(session, [':method', method, ':path', path]))
      return await Promise.all(all)
    }
    assert.ok((await send()).some(({ status }) => status === REFUSAL_TABLE[reason].code))
    await waitFor('the line', () => lines.length === times)
    assert.ok(lines.some((line) => line['reason'] === reason))
    lines.length = 0
    gateway.apply([object(true)])
    await gateway.applied()
    const passed = await send()
    assert.ok(passed.every(({ status }) => status < 400))
    assert.ok(passed.some(({ head }) => /in shadow mode would refuse: /.test(valuesOf(head, 'warning').join())))
    await waitFor('the line', () => lines.length === times)
    assert.ok(lines.some((line) => JSON.stringify(line['shadow']) === JSON.stringify([rule])))
    const series = `portcullis_shadow_refusals_total{cluster="prod.example.com",rule="${rule}"}`
    await waitFor('the count', async () => (await gateway.metrics()).includes(series))
  })
}
