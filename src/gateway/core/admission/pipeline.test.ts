import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { compileCluster } from '../cluster/compile-cluster.ts'
import { freshLimits } from '../limits/limits.ts'
import type { RequestInfo } from '../request/request-info.ts'
import type { Admission, Filter } from './filter.ts'
import { FILTER_ORDER, type FilterName, type FilterSet } from './order.ts'
import { Pipeline } from './pipeline.ts'
import { policyOf, readRequestInfo } from './steps.ts'

type Outcome = Refusal | undefined | Promise<Refusal | undefined>
type Later = Promise<Refusal | undefined>

const NO = refuse('access-denied', 'no', { rule: 'r' })

function admission(): Admission {
  const cluster = compileCluster({
    object: {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: 'prod' },
      spec: { servers: [{ endpoint: 'https://10.0.0.1' }], dispatchPolicies: [{ rules: [{ verbs: ['*'] }] }] },
    },
    revision: '1',
  })
  return {
    cluster,
    limits: freshLimits(),
    policy: policyOf(cluster, { policy: 0, rule: 0 }),
    rule: 0,
    info: readRequestInfo('GET', '/version') as RequestInfo,
    user: { name: 'alice', uid: '', groups: [], extra: {} },
    userAgent: '',
    remoteAddress: '',
    isWatch: false,
    isUpgrade: false,
    list: undefined,
    moment: { nowMs: 0, monotonicMs: 0 },
    passed: 0,
    reserved: false,
    held: undefined,
    warnings: [],
    shadow: [],
  }
}

/** Filters that give canned answers and record that they were called; undefined = it passes. */
function pipelineOf(
  answers: Partial<Record<FilterName, (request: Admission) => Outcome>>,
  shadows: readonly FilterName[] = [],
): { pipeline: Pipeline<Admission, Later>; asked: FilterName[] } {
  const asked: FilterName[] = []
  const filterOf = (name: FilterName): Filter<Admission, Later> => ({
    shadow: () => shadows.includes(name),
    check(request) {
      asked.push(name)
      return answers[name]?.(request)
    },
  })
  const set = Object.fromEntries(FILTER_ORDER.map((name) => [name, filterOf(name)])) as FilterSet<Admission, Later>
  return { pipeline: new Pipeline(set), asked }
}

test('all filters are asked in the written order, and the permit is the admission itself', () => {
  const { pipeline, asked } = pipelineOf({})
  const request = admission()
  assert.equal(pipeline.run(request), request)
  assert.deepEqual(asked, FILTER_ORDER)
})

test('the first refusal ends the run', () => {
  const { pipeline, asked } = pipelineOf({ degrade: () => NO })
  assert.equal(pipeline.run(admission()), NO)
  assert.deepEqual(asked, FILTER_ORDER.slice(0, FILTER_ORDER.indexOf('degrade') + 1))
})

test('in shadow mode a refusal is a warning, also one that was waited for', async () => {
  const { pipeline, asked } = pipelineOf({ degrade: () => NO, protection: () => Promise.resolve(NO) }, [
    'degrade',
    'protection',
  ])
  const request = admission()
  const pending = pipeline.run(request)
  assert.ok(pending instanceof Promise)
  assert.equal(pipeline.resume(request, await pending), request)
  assert.deepEqual(asked, FILTER_ORDER)
  assert.deepEqual(request.warnings, [
    'degrade in shadow mode would refuse: no',
    'protection in shadow mode would refuse: no',
  ])
  assert.deepEqual(request.shadow, ['degrade/r', 'protection/r'])
})

test('a run continues after the filter that had to wait, and no filter runs twice', async () => {
  const { pipeline, asked } = pipelineOf({
    'dispatch-action': () => Promise.resolve(undefined),
    degrade: () => Promise.resolve(NO),
  })
  const request = admission()
  const first = pipeline.run(request)
  assert.ok(first instanceof Promise)
  assert.deepEqual(asked, FILTER_ORDER.slice(0, FILTER_ORDER.indexOf('dispatch-action') + 1))
  const second = pipeline.resume(request, await first)
  assert.ok(second instanceof Promise)
  assert.equal(pipeline.resume(request, await second), NO)
  assert.deepEqual(asked, FILTER_ORDER.slice(0, FILTER_ORDER.indexOf('degrade') + 1))
})

test('a filter that decides for those behind it is the last one, at once or after a wait', async () => {
  for (const waits of [false, true]) {
    const { pipeline, asked } = pipelineOf({
      degrade: (request) => {
        pipeline.skipRest(request)
        return waits ? Promise.resolve(undefined) : undefined
      },
    })
    const request = admission()
    const first = pipeline.run(request)
    assert.equal(waits ? pipeline.resume(request, await (first as Promise<undefined>)) : first, request)
    assert.deepEqual(asked, FILTER_ORDER.slice(0, FILTER_ORDER.indexOf('degrade') + 1))
  }
})

test('a filter that is asked again is followed by those behind it, and by no other', () => {
  const { pipeline, asked } = pipelineOf({})
  const request = admission()
  pipeline.run(request)
  asked.length = 0
  pipeline.rewind(request, 'degrade')
  assert.equal(pipeline.resume(request, undefined), request)
  assert.deepEqual(asked, FILTER_ORDER.slice(FILTER_ORDER.indexOf('degrade') + 1))
})
