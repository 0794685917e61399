import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isLabelValue, isObjectName } from '../../../kit/api/validation/name-syntax.ts'
import { newProtector, type Requirement, repairedProtector, requirementOf } from './derive-protector.ts'
import { builtInKind, customKind, type GeneratorKind, type GeneratorKindOptions } from './kinds.ts'
import { claimedSource, protectorName } from './names.ts'

interface Row {
  readonly replicas: number | null
  readonly maxUnavailable: number | string | null
  readonly minAvailable: number
}

const { deploymentRequirement } = JSON.parse(
  readFileSync(new URL('../../../../test/data/podseidon-generator.json', import.meta.url), 'utf8'),
) as { deploymentRequirement: Row[] }

function kindOf(name: string, options: GeneratorKindOptions = {}): GeneratorKind {
  const kind = builtInKind(name, options)
  assert.ok(kind !== undefined)
  return kind
}

const DEPLOYMENT = kindOf('Deployment')
const SELECTOR = { matchLabels: { app: 'www' } }

function workload(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { metadata: { namespace: 'shop', name: 'www', ...metadata }, spec: { selector: SELECTOR, ...spec } }
}

function minAvailable(requirement: Requirement): number | string {
  if (requirement.kind === 'protect') return requirement.spec.minAvailable
  return requirement.kind === 'none' ? requirement.why : requirement.message
}

const rolling = (maxUnavailable: unknown, maxSurge?: unknown): JsonObject => ({
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable, maxSurge } },
})

test("Podseidon's table of deployments", () => {
  for (const { replicas, maxUnavailable, minAvailable: expected } of deploymentRequirement) {
    const strategy = maxUnavailable === null ? {} : rolling(maxUnavailable)
    const deployment = workload({ replicas, ...strategy })
    assert.equal(minAvailable(requirementOf(deployment, DEPLOYMENT)), expected, JSON.stringify(deployment))
  }
  const defaults = [1, 2, 3, 4, 5, 10, 100].map((replicas) => requirementOf(workload({ replicas }), DEPLOYMENT))
  assert.deepEqual(defaults.map(minAvailable), [0, 1, 2, 3, 3, 7, 75])
})

test('as Kubernetes rounds', () => {
  const options = { rounding: 'Kubernetes' } as const
  const rows: readonly (readonly [string, JsonObject, number])[] = [
    ['Deployment', { replicas: 1 }, 1],
    ['Deployment', { replicas: 10 }, 8],
    ['Deployment', { replicas: 10, ...rolling('30%') }, 7],
    ['Deployment', { replicas: 10, ...rolling(0, 1) }, 10],
    // With neither more nor fewer pods allowed, Kubernetes still takes one away.
    ['Deployment', { replicas: 10, ...rolling(0, 0) }, 9],
    ['Deployment', { replicas: 10, ...rolling('1%', '0%') }, 9],
    ['StatefulSet', { replicas: 3 }, 2],
    ['StatefulSet', { replicas: 3, updateStrategy: { rollingUpdate: { maxUnavailable: '10%' } } }, 2],
    ['StatefulSet', { replicas: 10, updateStrategy: { rollingUpdate: { maxUnavailable: '25%' } } }, 8],
  ]
  for (const [kind, spec, expected] of rows) {
    assert.equal(minAvailable(requirementOf(workload(spec), kindOf(kind, options))), expected, JSON.stringify(spec))
  }
})

test('what a strategy leaves', () => {
  const rows: readonly (readonly [string, JsonObject, number])[] = [
    ['Deployment', { replicas: 4, strategy: { type: 'Recreate' } }, 0],
    ['Deployment', { replicas: 4, ...rolling(7) }, 0],
    ['Deployment', { replicas: 4, ...rolling(-1) }, 4],
    ['Deployment', { replicas: 4, ...rolling('150%') }, 0],
    ['StatefulSet', { replicas: 3, updateStrategy: { type: 'OnDelete' } }, 2],
    ['StatefulSet', { replicas: 5, updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } }, 3],
    ['StatefulSet', {}, 0],
    ['ReplicaSet', { replicas: 4 }, 3],
  ]
  for (const [kind, spec, expected] of rows) {
    assert.equal(minAvailable(requirementOf(workload(spec), kindOf(kind))), expected, `${kind} ${JSON.stringify(spec)}`)
  }
})

test('who has no protector, and who keeps it', () => {
  const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  const owned = { ownerReferences: [{ kind: 'Deployment', name: 'www', controller: true }] }
  const selector = { matchLabels: { protect: 'true' } }
  const rows: readonly (readonly [GeneratorKind, JsonObject, number | string])[] = [
    [DEPLOYMENT, workload({ replicas: 4 }, terminating), 'Terminating'],
    [kindOf('Deployment', { protectNonZero: true }), workload({ replicas: 4 }, terminating), 3],
    [kindOf('Deployment', { protectNonZero: true }), workload({}, terminating), 0],
    [kindOf('Deployment', { protectNonZero: true }), workload({ replicas: 0 }, terminating), 'Terminating'],
    // It goes, whatever else is wrong with it.
    [DEPLOYMENT, workload({ replicas: 'x' }, terminating), 'Terminating'],
    [kindOf('Deployment', { protectionSelector: selector }), workload({ replicas: 4 }), 'LabelSelectorMismatch'],
    [kindOf('Deployment', { protectionSelector: selector }), workload({}, { labels: { protect: 'true' } }), 0],
    [kindOf('ReplicaSet'), workload({ replicas: 4 }, owned), 'OwnedByController'],
    [DEPLOYMENT, workload({ replicas: 4 }, owned), 3],
  ]
  for (const [kind, object, expected] of rows) assert.equal(minAvailable(requirementOf(object, kind)), expected)
})

test('what cannot be determined is reported', () => {
  const rows: readonly (readonly [JsonObject, string])[] = [
    [workload({ replicas: 'many' }), '.spec.replicas is not a number of pods'],
    [workload({ replicas: -1 }), '.spec.replicas is not a number of pods'],
    [workload({ minReadySeconds: 1.5 }), '.spec.minReadySeconds is not a number of seconds'],
    [workload(rolling('a few')), '.spec.strategy.rollingUpdate.maxUnavailable is neither a number nor a percentage'],
    [workload(rolling('3')), '.spec.strategy.rollingUpdate.maxUnavailable is neither a number nor a percentage'],
    [workload({ selector: {} }), '.spec.selector is empty, so it selects all pods of the namespace'],
    [workload({ selector: 'app=www' }), '.spec.selector is not a pod selector'],
    [
      workload({ selector: { matchExpressions: [{ key: 'a', operator: 'in', values: ['b'] }] } }),
      '.spec.selector cannot be read: matchExpressions[0]: operator "in" must be one of In, NotIn, Exists, DoesNotExist',
    ],
    [{ metadata: { name: 'www' } }, '.spec.selector is not a pod selector'],
    [
      JSON.parse('{"metadata":{"name":"x"},"spec":{"__proto__":{"replicas":3}}}'),
      '.spec.selector is not a pod selector',
    ],
  ]
  for (const [object, message] of rows) assert.equal(minAvailable(requirementOf(object, DEPLOYMENT)), message)
})

test('other kinds by the paths of their fields', () => {
  const names = { group: 'apps.kruise.io', version: 'v1alpha1', kind: 'CloneSet', plural: 'clonesets' }
  const kind = customKind(names, { fields: { maxUnavailable: ['spec', 'updateStrategy', 'maxUnavailable'] } })
  const object = workload({ replicas: 10, updateStrategy: { maxUnavailable: 2 }, selector: { app: 'www' } })
  const requirement = requirementOf(object, kind)
  assert.deepEqual(requirement, {
    kind: 'protect',
    spec: { minAvailable: 8, minReadySeconds: 0, selector: { matchLabels: { app: 'www' } } },
  })
  assert.equal(protectorName(kind, 'www'), 'cloneset-www')
})

const SPEC = { minAvailable: 3, minReadySeconds: 5, selector: SELECTOR }

test('the protector of a workload', () => {
  const protector = newProtector(workload({}), DEPLOYMENT, SPEC)
  assert.deepEqual(protector, {
    apiVersion: 'podseidon.kubewharf.io/v1alpha1',
    kind: 'PodProtector',
    metadata: {
      name: 'deployment-www',
      namespace: 'shop',
      labels: {
        'podseidon.kubewharf.io/source-group': 'apps',
        'podseidon.kubewharf.io/source-kind': 'Deployment',
        'podseidon.kubewharf.io/source-resource': 'deployments',
        'podseidon.kubewharf.io/source-name': 'www',
      },
      finalizers: ['podseidon.kubewharf.io/generator'],
    },
    spec: SPEC,
  })
  assert.equal(repairedProtector(protector, DEPLOYMENT, 'www', SPEC), undefined)
})

test('names of any length work, and none is taken for another', () => {
  for (const length of [63, 64, 242, 243, 253]) {
    for (const end of ['a', 'b']) {
      const name = `${'n'.repeat(length - 1)}${end}`
      const protector = newProtector(workload({}, { name }), DEPLOYMENT, SPEC)
      const { labels } = protector['metadata'] as { labels: Record<string, string> }
      for (const value of Object.values(labels)) assert.ok(isLabelValue(value), value)
      assert.ok(isObjectName(protectorName(DEPLOYMENT, name)))
      assert.deepEqual(claimedSource(protector, [kindOf('ReplicaSet'), DEPLOYMENT]), { kind: DEPLOYMENT, name })
      assert.equal(repairedProtector(protector, DEPLOYMENT, name, SPEC), undefined)
    }
  }
  assert.notEqual(protectorName(DEPLOYMENT, 'x'.repeat(250)), protectorName(DEPLOYMENT, 'x'.repeat(251)))
  // An annotation that does not match the label is not ours.
  const { metadata } = newProtector(workload({}), DEPLOYMENT, SPEC)
  const lying = {
    metadata: { ...(metadata as object), annotations: { 'podseidon.kubewharf.io/source-name': 'other' } },
  }
  assert.equal(claimedSource(lying, [DEPLOYMENT])?.name, 'www')
})

test('drift is repaired; what people own stays', () => {
  const protector = newProtector(workload({}), DEPLOYMENT, SPEC)
  const metadata = protector['metadata'] as JsonObject
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: '1' }
  const fromPodseidon = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'www', uid: '2', controller: true }
  const changed = {
    ...protector,
    metadata: {
      ...metadata,
      labels: { team: 'shop', 'podseidon.kubewharf.io/source-name': 'else' },
      annotations: { note: 'x' },
      finalizers: ['example.com/other'],
      ownerReferences: [fromPodseidon, other],
    },
    spec: { ...SPEC, minAvailable: 0, aggregationSelector: {}, admissionHistoryConfig: { compactThreshold: 7 } },
    status: { cells: [] },
  }
  const repaired = repairedProtector(changed, DEPLOYMENT, 'www', SPEC)
  assert.deepEqual(repaired, {
    ...protector,
    metadata: {
      ...metadata,
      labels: { team: 'shop', ...(metadata['labels'] as object) },
      annotations: { note: 'x' },
      finalizers: ['example.com/other', 'podseidon.kubewharf.io/generator'],
      ownerReferences: [other],
    },
    spec: { ...SPEC, admissionHistoryConfig: { compactThreshold: 7 } },
    status: { cells: [] },
  })
  assert.equal(repairedProtector(repaired, DEPLOYMENT, 'www', SPEC), undefined)
})

test('what is being deleted gets no finalizer, but the right numbers', () => {
  const protector = newProtector(workload({}), DEPLOYMENT, SPEC)
  const metadata = {
    ...(protector['metadata'] as object),
    finalizers: ['x/y'],
    deletionTimestamp: '2026-01-01T00:00:00Z',
  }
  assert.equal(repairedProtector({ ...protector, metadata }, DEPLOYMENT, 'www', SPEC), undefined)
  const repaired = repairedProtector({ ...protector, metadata }, DEPLOYMENT, 'www', { ...SPEC, minAvailable: 9 })
  assert.deepEqual((repaired?.['metadata'] as JsonObject)['finalizers'], ['x/y'])
  assert.deepEqual(repaired?.['spec'], { ...SPEC, minAvailable: 9 })
})
