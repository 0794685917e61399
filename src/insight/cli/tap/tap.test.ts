import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecord, type RequestRecord } from '../../../gateway/api/request-record.ts'
import { textWidth } from '../../../kit/core/text/printable.ts'
import { tapLine } from '../../core/tap/tap-event.ts'
import type { TapPhase } from '../../core/tap/tap-filter.ts'
import type { TapLine } from '../../core/tap/tap-lines.ts'
import { fullResourceName, type TapFlags, type TapOptions, tap } from './tap.ts'
import { shortTime } from './tap-table.ts'

const NONE: TapFlags = {
  clusters: [],
  user: [],
  group: [],
  userAgent: [],
  verb: [],
  resource: [],
  namespace: [],
  name: [],
  path: [],
  code: [],
  reason: [],
  address: [],
  refused: false,
  started: false,
  maxRps: '100',
  for: '5m',
}
const LIST: Partial<RequestRecord> = {
  startWallMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  cluster: 'prod',
  user: 'ci-bot',
  verb: 'list',
  isResourceRequest: true,
  resource: 'deployments',
  apiGroup: 'apps',
  namespace: 'shop',
  code: 200,
  durationMs: 1234,
  upstreamMs: 1200,
  attempts: 1,
  responseBytes: 34_567,
  policy: 1,
  rule: 0,
}

function event(request: Partial<RequestRecord> = {}, phase: TapPhase = 'ended'): string {
  return tapLine({ ...createRecord(), ...LIST, ...request }, phase, { replica: 'gw-0', thread: 1 })
}

function line(other: TapLine): string {
  return JSON.stringify(other)
}

const START = line({ type: 'start', replica: 'gw-0', until: '', maxRps: 100 })

interface Ran {
  code: number
  out: string
  err: string
  path: string
}

async function run(lines: readonly string[], options: Partial<TapOptions> = {}): Promise<Ran> {
  const ran: Ran = { code: -1, out: '', err: '', path: '' }
  let now = 0
  async function* sent({ path }: { path: string }): AsyncGenerator<string> {
    ran.path = path
    yield* lines
  }
  ran.code = await tap({
    flags: NONE,
    output: 'table',
    client: () => ({ url: new URL('http://gw'), lines: sent }),
    columns: () => undefined,
    interrupted: AbortSignal.abort(),
    now: () => {
      now += 5_000
      return now
    },
    out: (text) => {
      ran.out += text
    },
    err: (text) => {
      ran.err += text
    },
    ...options,
  })
  return ran
}

test('flags become the query of the admin listener; short and singular names of resources are known', async () => {
  const flags = {
    ...NONE,
    ...{
      clusters: ['prod', 'stag*'],
      user: ['ci,bot'],
      verb: ['list,watch'],
      resource: ['po/log,deploy'],
      code: ['429'],
    },
    ...{ refused: true, slow: '1s', maxRps: '50', limit: '3' },
  }
  const { path } = await run([], { flags })
  const query = [...new URL(path, 'http://gw').searchParams].map((pair) => pair.join('='))
  assert.deepEqual(query, [
    ...['cluster=prod', 'cluster=stag*', 'user=ci,bot', 'verb=list', 'verb=watch'],
    ...['resource=pods/log', 'resource=deployments', 'code=429', 'refused=true', 'slow=1s', 'maxRps=50', 'limit=3'],
    'replicas=all',
  ])
  for (const [typed, name] of Object.entries({
    ...{ '-svc': '-services', pods: 'pods', 'sts.apps': 'statefulsets.apps', '*': '*', widget: 'widget' },
    ...{
      pod: 'pods',
      'pod/log': 'pods/log',
      '-secret': '-secrets',
      ingress: 'ingresses',
      storageclass: 'storageclasses',
    },
    ...{ networkpolicy: 'networkpolicies', endpoints: 'endpoints', componentstatus: 'componentstatuses', job: 'jobs' },
    ...{
      persistentvolumeclaim: 'persistentvolumeclaims',
      namespace: 'namespaces',
      service: 'services',
      lease: 'leases',
    },
  })) {
    assert.equal(fullResourceName(typed), name)
  }
})

test('what cannot be right is told before anything is asked, all at once', async () => {
  const { code, err, path } = await run([], { flags: { ...NONE, code: ['abc'], for: '2h' } })
  assert.deepEqual([code, path], [1, ''])
  assert.match(err, /^error: --for "2h" must be .* at most 1h.*; --code "abc" must be a status code/)
})

test('one header, a row for each event, and a last line that says how many there were', async () => {
  const dropped = line({ type: 'dropped', replica: 'gw-0', count: 1234, reason: 'rate' })
  const { code, out, err } = await run([START, event(), START, event(), dropped])
  assert.equal(code, 0)
  assert.equal(
    out,
    'TIME          CLUSTER       USER                          VERB     RESOURCE                            CODE    TOTAL   BYTES  DECISION\n' +
      '03:04:05.006  prod          ci-bot                        list     deployments.apps shop/               200    1.23s     35k  forwarded\n'.repeat(
        2,
      ),
  )
  assert.equal(err, '# 1,234 not shown: above --max-rps 100\n2 shown, 1,234 not, in 5s\n')
})

test('a row says what was decided, and for which user', async () => {
  const rows = [
    event({ code: 429, refusal: 'rate-limited', refusalRule: 'lists', attempts: 0 }),
    event({ user: 'admin', impersonator: 'ci-bot', shadow: ['accessControl/office'] }),
    event({ verb: 'watch', durationMs: -1 }, 'responding'),
    event({ verb: 'watch', code: 0 }, 'started'),
    event({ code: 0, aborted: 'client' }),
    event({ isResourceRequest: false, resource: '', path: '/healthz', attempts: 2 }),
    event({ resource: 'pods', apiGroup: '', subresource: 'log', name: 'web-1' }),
  ]
  const { out } = await run([START, ...rows])
  const shown = out
    .split('\n')
    .slice(1, -1)
    .map((row) => row.slice(14).trim().split(/ {2,}/).slice(1).join('|'))
  assert.deepEqual(shown, [
    'ci-bot|list|deployments.apps shop/|429|1.23s|35k|rate-limited (lists)',
    'admin (by ci-bot)|list|deployments.apps shop/|200|1.23s|35k|shadow: accessControl/office',
    'ci-bot|watch|deployments.apps shop/|200|open|35k|forwarded',
    'ci-bot|watch|deployments.apps shop/|-|begins|35k',
    'ci-bot|list|deployments.apps shop/|-|1.23s|35k|aborted by client',
    'ci-bot|list|/healthz|200|1.23s|35k|sent 2 times',
    'ci-bot|list|pods/log shop/web-1|200|1.23s|35k|forwarded',
  ])
})

test('nothing that a terminal would obey gets to it, and the table fits it', async () => {
  const evil = '\u001b[2J\u009b2J\u202e\n'
  const rows = [event({ user: evil.repeat(20), namespace: evil, name: evil, cluster: '日本'.repeat(20) }), event()]
  for (const width of [60, 80, 100, 120, 200]) {
    const { out } = await run([START, ...rows], { columns: () => width })
    for (const row of out.split('\n')) assert.ok(textWidth(row) <= width, `${width}: ${row}`)
    assert.match(out, /^[\n\x20-\x7e\u3000-\u9fff…]*$/)
    assert.match(out, /\\x1b\[2J/)
  }
  const missing = line({ type: 'missing', replica: evil, message: evil })
  const { err } = await run([START, missing, ...rows], { output: 'wide' })
  assert.match(err, /^[\n\x20-\x7e]*$/)
})

test('wide shows everything else, too', async () => {
  const { out } = await run([START, event({ userAgent: 'kubectl/v1', auditId: 'the-id' })], { output: 'wide' })
  assert.match(out, /UPSTREAM {2}TRIES {2}POLICY {2}LIMIT .* REPLICA .* AUDIT-ID .* QUERY .* USER-AGENT/)
  assert.match(out, /1\.20s {6}1 {2}1\/0 .* gw-0\/1 .* the-id .* kubectl\/v1$/m)
})

test('JSON is passed on as it comes, line by line, and nothing else is said', async () => {
  const lines = [
    START,
    event(),
    line({ type: 'dropped', replica: 'gw-0', count: 1, reason: 'rate' }),
    '{"type":"later"}',
  ]
  const { out, err } = await run(lines, { output: 'json' })
  assert.deepEqual([out, err], [lines.map((one) => `${one}\n`).join(''), ''])
})

test('a lost replica is named, and the tap goes on', async () => {
  const other = START.replace('gw-0', 'gw-1')
  const missing = line({ type: 'missing', replica: 'gw-1', message: 'connection refused' })
  const { code, out, err } = await run([START, other, missing, event()])
  assert.equal(code, 0)
  assert.match(err, /^# replica gw-1 is missing: connection refused; the tap continues without it\n1 shown/)
  assert.equal(out.split('\n').length, 3)
})

test('it is over when its stream says so, or as many were shown as asked for; a stream that breaks off is an error', async () => {
  const interrupted = new AbortController().signal
  const end = line({ type: 'end', replica: 'gw-0', reason: 'time', shown: 0, dropped: 0 })
  assert.equal((await run([START, event(), end], { interrupted })).code, 0)
  const limited = await run([START, event(), event(), event()], { interrupted, flags: { ...NONE, limit: '2' } })
  assert.deepEqual([limited.code, limited.out.split('\n').length], [0, 4])
  const broken = await run([START, event()], { interrupted })
  assert.equal(broken.code, 1)
  assert.match(broken.err, /1 shown, in 5s\nerror: http:\/\/gw has ended the tap; was it restarted\?/)
})

test('who sees nothing is told whether there are requests at all, once', async () => {
  const progress = line({ type: 'progress', replica: 'gw-0', seen: 4321, matched: 0 })
  const { err } = await run([START, progress, progress, progress, progress])
  assert.equal(err.match(/4,321 requests so far, none of them matches/g)?.length, 1)
  const none = progress.replace('4321', '0')
  assert.match((await run([START, none, none, none])).err, /the gateway has had no requests so far/)
  assert.doesNotMatch((await run([START, event(), progress, progress, progress])).err, /so far/)
})

test('times are short', () => {
  const times = [-1, 0.04, 9.99, 12.3, 999, 1250, 59_999, 61_000, 3_600_000]
  assert.deepEqual(times.map(shortTime), ['-', '0.0ms', '10.0ms', '12ms', '999ms', '1.25s', '60.00s', '1m1s', '1h0m'])
})
