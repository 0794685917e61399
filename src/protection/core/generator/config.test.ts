import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseGeneratorConfig } from './config.ts'

test('kinds, with defaults and without', () => {
  const { kinds, problems } = parseGeneratorConfig({
    kinds: [
      { kind: 'Deployment', protectionSelector: { matchLabels: { protect: 'true' } }, protectNonZero: true },
      { kind: 'StatefulSet', rounding: 'Kubernetes', defaultMaxUnavailable: '10%' },
      {
        group: 'argoproj.io',
        version: 'v1alpha1',
        kind: 'Rollout',
        plural: 'rollouts',
        fields: { maxUnavailable: ".spec.strategy['canary'].maxUnavailable" },
      },
    ],
  })
  assert.deepEqual(problems, [])
  assert.deepEqual(
    kinds.map(({ resource, prefix, protectNonZero, rounding, defaultMaxUnavailable, fields }) => [
      `${resource.plural}.${resource.group}`,
      prefix,
      protectNonZero,
      rounding,
      defaultMaxUnavailable,
      fields.maxUnavailable.join('.'),
    ]),
    [
      ['deployments.apps', 'deployment', true, 'Podseidon', '25%', 'spec.strategy.rollingUpdate.maxUnavailable'],
      [
        'statefulsets.apps',
        'statefulset',
        false,
        'Kubernetes',
        '10%',
        'spec.updateStrategy.rollingUpdate.maxUnavailable',
      ],
      ['rollouts.argoproj.io', 'rollout', false, 'Podseidon', '25%', 'spec.strategy.canary.maxUnavailable'],
    ],
  )
  assert.equal(kinds[0]?.protectionSelector.matches({ protect: 'false' }), false)
})

test('nothing is off', () => {
  for (const data of [undefined, null, {}, { kinds: [] }, { kinds: null }]) {
    assert.deepEqual(parseGeneratorConfig(data), { kinds: [], problems: [] })
  }
})

test('each error has a path and a fix, and costs no other kind', () => {
  const rows: readonly (readonly [unknown, string, RegExp])[] = [
    [{ kind: 'Deploymnt' }, 'kinds[0].kind', /did you mean Deployment/],
    [{ kind: 'Rollout' }, 'kinds[0].group', /before the slash/],
    [{ kind: 'Rollout', group: 'a.io', plural: 'rollouts' }, 'kinds[0].version', /after the slash/],
    [{ kind: 'Rollout', group: 'a.io', version: 'v1' }, 'kinds[0].plural', /api-resources/],
    [{ kind: 'deployment' }, 'kinds[0].kind', /as manifests do/],
    ['Deployment', 'kinds[0]', /write a map/],
    [{ kind: 'Deployment', rounding: 'up' }, 'kinds[0].rounding', /Podseidon or Kubernetes/],
    [{ kind: 'Deployment', protectNonZero: 'yes' }, 'kinds[0].protectNonZero', /true or false/],
    [{ kind: 'Deployment', protectNonZer: true }, 'kinds[0].protectNonZer', /did you mean protectNonZero/],
    [{ kind: 'Deployment', prefix: 'a-b' }, 'kinds[0].prefix', /without a dash/],
    [{ kind: 'Deployment', defaultMaxUnavailable: 'x' }, 'kinds[0].defaultMaxUnavailable', /25%/],
    [{ kind: 'Deployment', fields: { replicas: 'spec' } }, 'kinds[0].fields.replicas', /\.spec\.replicas/],
    [{ kind: 'Deployment', fields: { replica: '.a' } }, 'kinds[0].fields.replica', /did you mean replicas/],
    [{ kind: 'Deployment', fields: 'x' }, 'kinds[0].fields', /write paths/],
    [
      { kind: 'Deployment', protectionSelector: { matchExpressions: [{ key: 'a', operator: 'in' }] } },
      'kinds[0].protectionSelector',
      /matchLabels/,
    ],
    [JSON.parse('{"kind":"Deployment","__proto__":{"x":1}}'), 'kinds[0].__proto__', /write one of/],
  ]
  for (const [entry, where, fix] of rows) {
    const { kinds, problems } = parseGeneratorConfig({ kinds: [entry, { kind: 'StatefulSet' }] })
    assert.deepEqual([kinds.map(({ resource }) => resource.kind), problems[0]?.path], [['StatefulSet'], where])
    assert.match(problems[0]?.fix ?? '', fix)
  }
  const twice = parseGeneratorConfig({ kinds: [{ kind: 'Deployment' }, { kind: 'Deployment' }] })
  assert.deepEqual([twice.kinds.length, twice.problems[0]?.path], [1, 'kinds[1]'])
  // Each would remove the finalizer that the other one sets.
  const fight = parseGeneratorConfig({ kinds: [{ kind: 'Deployment' }, { kind: 'Deployment', prefix: 'second' }] })
  assert.deepEqual(
    [fight.kinds.length, fight.problems[0]?.path, fight.problems[0]?.message],
    [1, 'kinds[1]', 'Deployment is listed twice'],
  )
  assert.match(fight.problems[0]?.fix ?? '', /matchExpressions/)
  const rollout = { group: 'a.io', version: 'v1', kind: 'Deployment', plural: 'deployments' }
  const named = parseGeneratorConfig({ kinds: [{ kind: 'Deployment' }, rollout] })
  assert.match(named.problems[0]?.fix ?? '', /prefix/)
  assert.deepEqual(parseGeneratorConfig({ kinds: [{ kind: 'Deployment' }, { ...rollout, prefix: 'b' }] }).problems, [])
  for (const data of ['x', [], { kinds: 'Deployment' }, { kind: 'Deployment' }]) {
    assert.equal(parseGeneratorConfig(data).problems.length, 1, JSON.stringify(data))
  }
})
