// Objects as large and as odd as a body may be: checked, answered and reported in time that grows with their size and no faster,
// and without an error of the gateway itself. What took minutes would be cut off by the runner; nothing here measures time.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import { decodeBody } from '../../src/apiserver/objects/write-object-decode.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import { reviewAdmission } from '../../src/apiserver/webhooks/webhook.ts'
import { checkUpstreamCluster } from '../../src/gateway/api/upstream-cluster/checks.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { loadDirectory } from '../../src/gateway/io/sources/files/source.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { LabelSelector } from '../../src/kit/api/validation/label-selector-schema.ts'
import { contradiction, leavesOut } from '../../src/kit/api/validation/label-selector-sets.ts'
import { StatusError } from '../../src/kube/api/status.ts'
import { MAX_VALUES } from '../../src/kube/core/objects/json-text.ts'
import { hasMoreValues } from '../../src/kube/core/objects/value-count.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'

/** More than a call takes arguments. */
const MANY = 150_000
const ROW = { group: 'proxy.kubegateway.io', version: 'v1alpha1', resource: 'upstreamclusters' }

function cluster(spec: JsonObject, more: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'large' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { bearerToken: 'dG9rZW4=', insecure: true },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      ...spec,
    },
    ...more,
  }
}

function fields(count: number, value: unknown = 1): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`unknown${at}`, value]))
}

function repeated(count: number, value: unknown): unknown[] {
  return Array.from({ length: count }, () => value)
}

/** What is wrong with each, many times over. */
const LARGE: readonly (readonly [string, JsonObject])[] = [
  ['unknown fields of the spec', cluster(fields(MANY))],
  ['unknown fields of the object', cluster({}, fields(MANY))],
  ['unknown fields of metadata', cluster({}, { metadata: { name: 'large', ...fields(MANY) } })],
  ['annotations that are no text', cluster({}, { metadata: { name: 'large', annotations: fields(MANY) } })],
  ['servers of a wrong type', cluster({ servers: repeated(MANY, 1) })],
  ['servers without an endpoint', cluster({ servers: repeated(MANY, {}) })],
  ['servers that are no URL', cluster({ servers: repeated(MANY, { endpoint: 'x' }) })],
  ['rules that mean nothing', cluster({ dispatchPolicies: [{ rules: repeated(MANY, {}) }] })],
  ['host names that are none', cluster({ secureServing: { serverNames: repeated(MANY, '_') } })],
  [
    'limits that are not known',
    cluster({
      dispatchPolicies: Array.from({ length: 20 }, (_, at) => ({
        flowControlSchemaName: `${'x'.repeat(235)}${at}`,
        rules: [{ verbs: ['*'] }],
      })),
      flowControl: {
        flowControlSchemas: Array.from({ length: 1000 }, (_, at) => ({ name: `${'y'.repeat(235)}${at}`, exempt: {} })),
      },
    }),
  ],
]

describe('errors are listed up to a limit, with the number of the others', () => {
  for (const [name, object] of LARGE) {
    test(`${name}: by the checks`, () => {
      const problems = checkUpstreamCluster(object, nodePemChecks)
      assert.ok(problems.length > 0 && problems.length <= 202, `${problems.length} are reported`)
      if (problems.length < 100) return
      assert.match(problems.at(-1)?.message ?? '', /^(at least )?\d{3,} more (errors|warnings) are not listed$/)
    })

    test(`${name}: by the webhook`, () => {
      const request = { uid: 'u', operation: 'CREATE', resource: ROW, object }
      const body = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request }
      const answer = JSON.stringify(reviewAdmission(body, { scheme: SCHEME, pem: nodePemChecks }, []))
      assert.ok(answer.length < 1024 * 1024, `${answer.length} characters`)
    })

    // They differ in unknown fields only.
    const hasUnknown = name.startsWith('unknown')
    for (const fieldValidation of hasUnknown ? (['Warn', 'Strict'] as const) : (['Strict'] as const)) {
      test(`${name}: by the API server, fieldValidation ${fieldValidation}`, () => {
        const store = openSqliteStore({ file: ':memory:', key: undefined, now: Date.now })
        const random = Math.random
        const parts = { store, kinds: SCHEME, pem: nodePemChecks, now: Date.now, uuid: randomUUID, random }
        // As the gateway itself may: of a client's body so many values are not read.
        const incoming = { value: structuredClone(object), duplicates: [], strictErrors: [], text: '' }
        const options = { dryRun: true, fieldValidation, manager: 'm', force: false }
        const warnings: string[] = []
        try {
          new Registry(parts).create(UPSTREAM_CLUSTERS, '', incoming, { options, warnings, isOwn: true })
          assert.ok(warnings.length > 0 && warnings.length <= 202)
        } catch (error) {
          assert.ok(error instanceof StatusError, String(error))
          assert.ok(JSON.stringify(error.status).length < 1024 * 1024)
        } finally {
          store.close()
        }
      })
    }

    test(`${name}: in a body`, () => {
      const text = JSON.stringify(object)
      const most = hasMoreValues(text, MAX_VALUES)
      if (!most) assert.deepEqual(decodeBody(text, 'json', UPSTREAM_CLUSTERS).value, object)
      else {
        const refused = (error: unknown): boolean => error instanceof StatusError && error.code === 413
        assert.throws(() => decodeBody(text, 'json', UPSTREAM_CLUSTERS), refused)
      }
    })
  }

  test('in a file of the configuration directory', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'portcullis-large-'))
    try {
      writeFileSync(join(dir, 'a.json'), JSON.stringify(cluster(fields(20_000))))
      const { problems } = await loadDirectory(dir, nodePemChecks)
      assert.ok(problems.length > 0 && problems.length <= 101, `${problems.length} are reported`)
      assert.match(problems.at(-1)?.message ?? '', /^19900 more warnings are not listed$/)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})

describe('what is compared with each other is so in one pass', () => {
  // Each prefix of a megabyte of dots was taken for a path: 500 GB.
  test('a label of nothing but dots', () => {
    const objectSelector = { matchLabels: { ['.'.repeat(1_000_000)]: 1 } }
    const problems = checkUpstreamCluster(cluster({ podProtection: { objectSelector } }), nodePemChecks)
    assert.ok(problems.some(({ path }) => path.startsWith('spec.podProtection.objectSelector.matchLabels[..')))
  })

  // Requirements of one label were joined one by one, each time with a copy of what had come before.
  test('requirements of one label', () => {
    const notIn = (at: number): object => ({ key: 'a', operator: 'NotIn', values: [`v${at}`] })
    const many = { matchExpressions: Array.from({ length: MANY / 3 }, (_, at) => notIn(at)) } as LabelSelector
    assert.equal(contradiction(many), undefined)
    const few = { matchExpressions: [{ key: 'a', operator: 'In', values: ['w'] }] } as LabelSelector
    assert.deepEqual(leavesOut(few, many), [])
    const values = Array.from({ length: MANY / 3 }, (_, at) => `w${at}`)
    const wide = { matchExpressions: [{ key: 'a', operator: 'In', values }] } as LabelSelector
    assert.deepEqual(leavesOut(wide, many), [])
  })
})
