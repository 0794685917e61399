// A turn of an event loop that takes too long is counted and logged with what had it, and the Audit-ID of its request.

import assert from 'node:assert/strict'
import process from 'node:process'
import { describe, type TestContext, test } from 'node:test'
import { ThreadTop } from '../../src/insight/app/observers.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startGateway } from '../harness/gateways/gateway.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const STALL_MS = 200
const SERIES = /^portcullis_event_loop_stalls_total\{thread="(\w+)",step="([\w-]+)"\} (\d+)$/gm

/** Holds the event loop until the thread has used this much processor time. */
function hold(ms: number): void {
  const start = process.threadCpuUsage()
  const used = (): number => {
    const { user, system } = process.threadCpuUsage(start)
    return (user + system) / 1000
  }
  while (used() < ms);
}

async function stallsOf(gateway: Pick<InProcessGateway, 'metrics'>): Promise<Map<string, number>> {
  const text = await gateway.metrics()
  return new Map(Array.from(text.matchAll(SERIES), ([, thread, step, count]) => [`${thread} ${step}`, Number(count)]))
}

async function setUp(t: TestContext): Promise<InProcessGateway> {
  const stub = await startStub()
  const gateway = await startInProcess([clusterObject([stub])])
  t.after(async () => {
    await gateway.stop()
    await stub.stop()
  })
  return gateway
}

describe('a turn that takes too long', () => {
  test('is named by the step that had the loop, and by the request', async (t) => {
    let slow = 0
    const count = ThreadTop.prototype.requestEnded
    t.mock.method(ThreadTop.prototype, 'requestEnded', function slowly(this: ThreadTop, record: never) {
      if (slow-- > 0) hold(STALL_MS)
      Reflect.apply(count, this, [record])
    })
    const gateway = await setUp(t)
    const session = h2Connect({ port: gateway.port })
    t.after(() => session.destroy())
    await h2Request(session, ['audit-id', 'fast-one'])
    slow = 1
    await h2Request(session, ['audit-id', 'slow-one'])
    await h2Request(session, ['audit-id', 'next-one'])
    const line = await waitFor('the line', () =>
      gateway.logged.find(({ message, fields }) => message === 'the event loop stood still' && fields['auditId']),
    )
    assert.equal(line.level, 'warn')
    assert.equal(line.fields['step'], 'observe')
    assert.equal(line.fields['auditId'], 'slow-one')
    assert.ok(Number(line.fields['milliseconds']) >= STALL_MS, JSON.stringify(line.fields))
    const stalls = await stallsOf(gateway)
    assert.ok((stalls.get(`${line.fields['thread']} observe`) ?? 0) >= 1, JSON.stringify([...stalls]))
  })

  test('without a mark is unknown, and still noticed', async (t) => {
    const gateway = await setUp(t)
    setTimeout(() => hold(STALL_MS), 1)
    const found = await waitFor('the stall', async () => {
      const stalls = await stallsOf(gateway)
      return [...stalls].find(([name, count]) => name.endsWith('unknown') && count > 0)
    })
    assert.ok(found)
  })
})

test('an idle gateway has none, in any of its threads', async (t) => {
  const gateway = await startGateway({ clusters: [], args: ['--threads=2'] })
  t.after(() => gateway.stop())
  // Long after the start: both threads have looked a hundred times.
  await waitFor('two seconds', async () => /^portcullis_heartbeat (?!0|1\.)/m.test(await gateway.metrics()))
  const stalls = await stallsOf(gateway)
  const threads = new Set(Array.from(stalls.keys(), (name) => name.split(' ')[0]))
  assert.deepEqual(threads, new Set(['main', '0', '1']))
  for (const [name, count] of stalls) if (!name.endsWith('off-cpu')) assert.equal(count, 0, name)
})
