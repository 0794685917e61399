// spec.podProtection: valid values, and every error with its path and fix. Also what label selectors leave out.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { FieldError } from '../../../kit/api/json/field-error.ts'
import { FieldErrors } from '../../../kit/api/validation/field-errors.ts'
import { checkLabelSelector } from '../../../kit/api/validation/label-selector-checks.ts'
import type { LabelSelector, LabelSelectorRequirement } from '../../../kit/api/validation/label-selector-schema.ts'
import { contradiction, leavesOut } from '../../../kit/api/validation/label-selector-sets.ts'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { checkUpstreamCluster } from './checks.ts'

function check(podProtection: unknown): readonly FieldError[] {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { insecure: true, bearerToken: 'dG9rZW4=' },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      podProtection,
    },
  }
  return checkUpstreamCluster(object, nodePemChecks)
}

const SELECTOR = { matchLabels: { app: 'web' } }
const BAD_SELECTOR = { matchExpressions: [{ key: 'app', operator: 'In' }] }

describe('accepted', () => {
  const good: readonly (readonly [string, unknown])[] = [
    ['null is as good as absent', null],
    ['empty: on, with defaults', {}],
    [
      'every field',
      {
        cell: 'worker-1.example',
        shadow: true,
        failurePolicy: 'Ignore',
        timeoutSeconds: 30,
        excludedNamespaces: ['kube-system'],
        objectSelector: SELECTOR,
        aggregation: {
          disabled: false,
          syncTime: 'Annotation',
          syncTimeAnnotation: 'Example.com/Last-Update',
          podLabelSelector: SELECTOR,
          updateTrigger: { namespace: 'default', name: 'a.b', intervalSeconds: 60 },
        },
      },
    ],
    ['a value twice', { objectSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['b', 'b'] }] } }],
  ]
  for (const [name, protection] of good) test(name, () => assert.deepEqual(check(protection), []))
})

describe('errors', () => {
  const bad: readonly (readonly [unknown, string, RegExp])[] = [
    [{ cell: '' }, 'error cell', /"" is not a valid cell name/],
    [{ cell: '.' }, 'error cell', /is not a valid cell name/],
    [{ cell: '..' }, 'error cell', /is not a valid cell name/],
    [{ cell: 'a/b' }, 'error cell', /is not a valid cell name/],
    [{ cell: 'A' }, 'error cell', /is not a valid cell name/],
    [{ cell: 'a'.repeat(254) }, 'error cell', /253/],
    [{ cell: 7 }, 'error cell', /text|string/],
    [{ shadow: 'yes' }, 'error shadow', /./],
    [{ failurePolicy: 'Open' }, 'error failurePolicy', /./],
    [{ timeoutSeconds: 0 }, 'error timeoutSeconds', /./],
    [{ timeoutSeconds: 31 }, 'error timeoutSeconds', /./],
    [{ excludedNamespaces: ['kube-*'] }, 'error excludedNamespaces[0]', /"kube-\*" is not a valid namespace/],
    [{ excludedNamespaces: ['a', 'a'] }, 'warning excludedNamespaces[1]', /named twice/],
    [{ objectSelector: BAD_SELECTOR }, 'error objectSelector.matchExpressions[0].values', /is required by operator In/],
    [{ objectSelector: {} }, 'warning objectSelector', /is empty/],
    [
      { aggregation: { podLabelSelector: BAD_SELECTOR } },
      'error aggregation.podLabelSelector.matchExpressions[0].values',
      /In/,
    ],
    [{ aggregation: { syncTime: 'Wall' } }, 'error aggregation.syncTime', /./],
    [
      { aggregation: { syncTime: 'Annotation' } },
      'error aggregation.syncTimeAnnotation',
      /is required when syncTime is/,
    ],
    [
      { aggregation: { syncTime: 'Annotation', syncTimeAnnotation: 'a b' } },
      'error aggregation.syncTimeAnnotation',
      /is not a valid annotation key/,
    ],
    [{ aggregation: { syncTimeAnnotation: 'a' } }, 'warning aggregation.syncTimeAnnotation', /has no effect/],
    [{ aggregation: { updateTrigger: {} } }, 'error aggregation.updateTrigger.namespace', /./],
    [
      { aggregation: { updateTrigger: { namespace: 'a.b' } } },
      'error aggregation.updateTrigger.namespace',
      /is not a valid namespace/,
    ],
    [
      { aggregation: { updateTrigger: { namespace: 'a', name: 'B' } } },
      'error aggregation.updateTrigger.name',
      /is not a valid pod name/,
    ],
    [
      { aggregation: { updateTrigger: { namespace: 'a', intervalSeconds: 0 } } },
      'error aggregation.updateTrigger.intervalSeconds',
      /./,
    ],
    [
      { aggregation: { disabled: true, updateTrigger: { namespace: 'a' } } },
      'warning aggregation.updateTrigger',
      /no effect/,
    ],
    [{ failurePolicie: 'Fail' }, 'warning failurePolicie', /./],
    [[], 'error ', /./],
  ]
  for (const [protection, place, message] of bad) {
    test(JSON.stringify(protection).slice(0, 100), () => {
      const [problem, ...more] = check(protection)
      assert.deepEqual(more, [])
      const [severity = '', path = ''] = place.split(' ')
      assert.equal(problem?.severity, severity)
      assert.equal(problem.path, path === '' ? 'spec.podProtection' : `spec.podProtection.${path}`)
      assert.match(`${problem.message}; ${problem.fix}`, message)
      assert.notEqual(problem.fix, '')
    })
  }

  test('nothing throws, whatever it is', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => void check(value)))
    fc.assert(fc.property(fc.jsonValue(), (value) => void check({ objectSelector: value, aggregation: value })))
  })
})

describe('selectors', () => {
  const keys = fc.constantFrom('a', 'b')
  const value = fc.constantFrom('', '0', '1', '2')
  const requirement: fc.Arbitrary<LabelSelectorRequirement> = fc.oneof(
    fc.record({
      key: keys,
      operator: fc.constantFrom('In' as const, 'NotIn' as const),
      values: fc.array(value, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ key: keys, operator: fc.constantFrom('Exists' as const, 'DoesNotExist' as const) }),
  )
  const selector: fc.Arbitrary<LabelSelector> = fc.record(
    { matchLabels: fc.dictionary(keys, value), matchExpressions: fc.array(requirement, { maxLength: 3 }) },
    { requiredKeys: [] },
  )
  // The values that selectors name, and one that none names.
  const values = [undefined, '', '0', '1', '2', 'other']
  const pods = values.flatMap((a) =>
    values.map((b) => ({ ...(a !== undefined && { a }), ...(b !== undefined && { b }) })),
  )

  function matches(
    { matchLabels = {}, matchExpressions = [] }: LabelSelector,
    labels: Record<string, string>,
  ): boolean {
    if (Object.entries(matchLabels).some(([key, wanted]) => labels[key] !== wanted)) return false
    return matchExpressions.every(({ key, operator, values: listed = [] }) => {
      const own = labels[key]
      if (operator === 'Exists') return own !== undefined
      if (operator === 'DoesNotExist') return own === undefined
      return (own !== undefined && listed.includes(own)) === (operator === 'In')
    })
  }

  test('what is left out is found, and nothing else', () => {
    const property = fc.property(selector, selector, (narrow, wide) => {
      const lost = pods.some((labels) => matches(narrow, labels) && !matches(wide, labels))
      assert.equal(leavesOut(narrow, wide).length > 0, lost)
    })
    fc.assert(property, { numRuns: 2000 })
  })

  test('one that selects nothing is found, and no other', () => {
    const property = fc.property(selector, (one) => {
      assert.equal(contradiction(one) !== undefined, !pods.some((labels) => matches(one, labels)))
      assert.ok(checkLabelSelector(one, 's', new FieldErrors()))
    })
    fc.assert(property, { numRuns: 2000 })
  })

  test('a label called __proto__ is an error like any other', () => {
    const out = new FieldErrors()
    const polluted = JSON.parse('{"matchLabels":{"__proto__":"x"}}') as LabelSelector
    assert.equal(checkLabelSelector(polluted, 's', out), false)
    assert.deepEqual(
      out.found.map(({ path }) => path),
      ['s.matchLabels[__proto__]'],
    )
    assert.deepEqual(leavesOut(polluted, polluted), [])
  })
})
