import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecord, type RequestRecord } from '../../../gateway/api/request-record.ts'
import { createAuditLog } from './audit-log.ts'

interface Event {
  [key: string]: unknown
}

function audited(...parts: Partial<RequestRecord>[]): Event[] {
  const events: Event[] = []
  const log = createAuditLog((line) => events.push(JSON.parse(line)))
  const record: RequestRecord = Object.assign(createRecord(), ...parts)
  log.responseStarted(record)
  log.responseComplete(record)
  return events
}

const DELETE_POD: Partial<RequestRecord> = {
  auditId: 'id-1',
  startWallMs: Date.UTC(2024, 4, 1, 12, 0, 0, 7),
  durationMs: 1500.25,
  ttfbMs: 1000,
  method: 'DELETE',
  target: '/api/v1/namespaces/default/pods/a',
  remoteAddress: '10.1.2.3',
  userAgent: 'kubectl/v1.34',
  cluster: 'prod',
  verb: 'delete',
  apiVersion: 'v1',
  resource: 'pods',
  namespace: 'default',
  name: 'a',
  isResourceRequest: true,
  user: 'alice',
  uid: 'u-1',
  groups: ['dev'],
  policy: 2,
  rule: 1,
  endpoint: 'https://10.0.0.1:6443',
  code: 200,
}

test('a finished request is one event at stage ResponseComplete', () => {
  assert.deepEqual(audited(DELETE_POD), [
    {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: 'id-1',
      stage: 'ResponseComplete',
      requestURI: '/api/v1/namespaces/default/pods/a',
      verb: 'delete',
      user: { username: 'alice', uid: 'u-1', groups: ['dev'] },
      sourceIPs: ['10.1.2.3'],
      userAgent: 'kubectl/v1.34',
      objectRef: { resource: 'pods', namespace: 'default', name: 'a', apiVersion: 'v1' },
      responseStatus: { metadata: {}, code: 200 },
      requestReceivedTimestamp: '2024-05-01T12:00:00.007000Z',
      stageTimestamp: '2024-05-01T12:00:01.507250Z',
      annotations: {
        'portcullis.io/decision': 'forward',
        'portcullis.io/cluster': 'prod',
        'portcullis.io/policy': '2',
        'portcullis.io/rule': '1',
        'portcullis.io/endpoint': 'https://10.0.0.1:6443',
      },
    },
  ])
})

test('a refused request is an event with rule and reason', () => {
  const [event] = audited(DELETE_POD, {
    endpoint: '',
    code: 503,
    refusal: 'degraded',
    refusalRule: 'Freeze',
    message: 'frozen until noon',
    clusterLogMode: 'off',
  })
  assert.deepEqual(event?.['responseStatus'], {
    metadata: {},
    status: 'Failure',
    message: 'frozen until noon',
    reason: 'ServiceUnavailable',
    code: 503,
  })
  assert.deepEqual(event['annotations'], {
    'portcullis.io/decision': 'refuse',
    'portcullis.io/cluster': 'prod',
    'portcullis.io/policy': '2',
    'portcullis.io/rule': '1',
    'portcullis.io/reason': 'degraded',
    'portcullis.io/refused-by': 'Freeze',
  })
})

test('impersonation: user is the original user, impersonatedUser the other', () => {
  const [event] = audited(DELETE_POD, { impersonator: 'root', impersonatorGroups: ['system:masters'] })
  assert.deepEqual(event?.['user'], { username: 'root', groups: ['system:masters'] })
  assert.deepEqual(event['impersonatedUser'], { username: 'alice', uid: 'u-1', groups: ['dev'] })
})

test('a watch is two events, with one audit id', () => {
  const events = audited(DELETE_POD, { verb: 'watch', longRunning: true })
  assert.deepEqual(
    events.map((event) => [event['stage'], event['stageTimestamp'], event['auditID']]),
    [
      ['ResponseStarted', '2024-05-01T12:00:01.007000Z', 'id-1'],
      ['ResponseComplete', '2024-05-01T12:00:01.507250Z', 'id-1'],
    ],
  )
})

test('a request refused before anything is known', () => {
  const [event] = audited({ method: 'GET', target: '/x', code: 404, refusal: 'NotFound', message: 'no such host' })
  assert.equal(event?.['verb'], 'get')
  assert.deepEqual(event['user'], {})
  assert.equal('objectRef' in event, false)
})
