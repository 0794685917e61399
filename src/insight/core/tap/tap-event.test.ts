import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRecord, type RequestRecord } from '../../../gateway/api/request-record.ts'
import { shownQuery, type TapEvent, tapLine } from './tap-event.ts'

const PLACE = { replica: 'gw-0', thread: 1 }

function lineOf(request: Partial<RequestRecord>): string {
  return tapLine({ ...createRecord(), ...request }, 'ended', PLACE)
}

function eventOf(request: Partial<RequestRecord>): TapEvent {
  return JSON.parse(lineOf(request)) as TapEvent
}

test('a resource request is told by its resource, any other by its path', () => {
  const pods = eventOf({
    isResourceRequest: true,
    resource: 'pods',
    namespace: 'shop',
    path: '/api/v1/namespaces/shop/pods',
  })
  assert.deepEqual([pods.resource, pods.namespace, pods.path], ['pods', 'shop', ''])
  assert.equal(eventOf({ path: '/healthz' }).path, '/healthz')
})

test('an event holds what was decided, and how long it took', () => {
  const event = eventOf({
    startWallMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
    refusal: 'rate-limited',
    refusalRule: 'lists',
    code: 429,
    policy: 2,
    rule: 1,
    flowControl: 'lists',
    durationMs: 1.23456,
    shadow: ['accessControl/office'],
  })
  assert.equal(event.time, '2026-01-02T03:04:05.006Z')
  assert.deepEqual([event.refusal, event.refusedBy, event.limit], ['rate-limited', 'lists', 'lists'])
  assert.deepEqual([event.totalMs, event.upstreamMs, event.policy, event.rule], [1.235, -1, 2, 1])
  assert.deepEqual([event.replica, event.thread, event.shadow], ['gw-0', 1, ['accessControl/office']])
})

test('nothing of a request that could be secret is in its event', () => {
  const line = lineOf({
    target: 'https://user:s3cret@host/api/v1/namespaces/x/pods/y/exec?command=s3cret&access_token=s3cret&s3cret',
    host: 's3cret.example.com',
    message: 'a message may quote s3cret',
    uid: 's3cret',
    isResourceRequest: true,
    path: '/api/v1/namespaces/x/services/y/proxy/login/s3cret',
    auditAnnotations: { note: 's3cret' },
  })
  assert.ok(!line.includes('s3cret'), line)
})

test('an event is bounded, whatever the client sends', () => {
  const long = '\u009b'.repeat(100_000)
  const line = lineOf({
    user: long,
    impersonator: long,
    userAgent: long,
    verb: long,
    resource: long,
    namespace: long,
    name: long,
    isResourceRequest: true,
    apiGroup: long,
    apiVersion: long,
    subresource: long,
    path: long,
    method: long,
    target: `/x?labelSelector=${long}`,
    refusalRule: long,
    shadow: Array.from({ length: 1000 }, () => long),
  })
  assert.ok(line.length < 12 * 1024, String(line.length))
  assert.equal(eventOf({ userAgent: long }).userAgent.length, 256)
})

test('what a terminal would obey is escaped in the JSON, and reads the same', () => {
  const userAgent = 'a\u001b[2J\u009b2J\u202egnp.exe\u2028b\u{e0041}'
  const line = lineOf({ userAgent })
  assert.match(line, /^[\x20-\x7e]*$/)
  assert.equal((JSON.parse(line) as TapEvent).userAgent, userAgent)
})

const CASES: readonly (readonly [target: string, shown: string])[] = [
  ['/api/v1/pods', ''],
  ['/api/v1/pods?', ''],
  ['/api/v1/pods?limit=500&resourceVersion=0', 'limit=500&resourceVersion=0'],
  ['/api/v1/pods?labelSelector=app%3Dweb', 'labelSelector=app=web'],
  ['/api/v1/pods?continue=eyJ2IjoibWV0YSJ9&limit=5', 'continue=[redacted]&limit=5'],
  ['/x?access_token=s3cret', 'access_token=[redacted]'],
  ['/x?Access_Token=s3cret', 'access_token=[redacted]'],
  ['/x?a%63cess_token=s3cret', 'access_token=[redacted]'],
  ['/exec?command=mysql&command=-ps3cret&tty=true', 'command=[redacted]&tty=true'],
  // A bare token is a name: of unknown parameters neither name nor value is shown.
  ['/x?s3cret', '[1 more]'],
  ['/x?s3cret=', '[1 more]'],
  ['/x?dG9rZW4=&limit=1&foo=s3cret', 'limit=1&[2 more]'],
  // Go drops these pairs; they are still not shown.
  ['/x?limit=1;access_token=s3cret', '[2 more]'],
  ['/x?limit=%zz', 'limit='],
]

test('a query is shown without what could be secret', () => {
  for (const [target, shown] of CASES) assert.equal(shownQuery(target), shown, target)
})

test('a long query is not read, and a long value cut', () => {
  assert.equal(shownQuery(`/x?${'limit=1&'.repeat(1000)}`), '[8000 characters]')
  assert.equal(shownQuery(`/x?labelSelector=${'a'.repeat(100)}`), `labelSelector=${'a'.repeat(64)}…`)
  assert.ok(shownQuery(`/x?${'labelSelector=aaaaaaaaaaaaaaaa&limit=1&'.repeat(90)}`).length < 512)
})

test('no value of a parameter that is not known is shown, however it is written', () => {
  const known = new Set(['limit', 'watch'])
  const pair = fc.tuple(fc.constantFrom('limit', 'watch', 'token', 'x', 'command', 'Token', '%74oken', ''), fc.nat(99))
  fc.assert(
    fc.property(fc.array(fc.tuple(pair, fc.constantFrom('&', '&&', ';'))), (pairs) => {
      const query = pairs.map(([[name, n], end]) => `${name}=${known.has(name) ? n : `s3cret${n}`}${end}`).join('')
      assert.ok(!shownQuery(`/x?${query}`).includes('s3cret'))
    }),
  )
})
