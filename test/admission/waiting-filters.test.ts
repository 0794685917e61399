// Any filter of admission may wait, read the body, or ask to be asked again: what becomes of the request then. The filters here
// stand in the place of real ones.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, mock, test } from 'node:test'
import type { Filter } from '../../src/gateway/core/admission/filter.ts'
import { accessList } from '../../src/gateway/core/admission/rule-filters.ts'
import { readBody } from '../../src/gateway/request/calls/request-bodies.ts'
import type { Decision } from '../../src/gateway/request/exchange/decision.ts'
import { type Refusal, refuse } from '../../src/kit/core/refusal/refusal.ts'
import { h2Connect, h2Open, h2Request, h2Response, valuesOf } from '../harness/clients/h2-client.ts'
import { type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { ALLOW_ALL, clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const LIMIT = 1000
const POST = [':method', 'POST', ':path', '/api/v1/namespaces/default/configmaps']

type Check = (decision: Decision) => Promise<Refusal | undefined>

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  mock.restoreAll()
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: GuardedGateway
  readonly session: ClientHttp2Session
  /** Bodies as they reached upstream. */
  readonly bodies: string[]
}

/** `check` is asked in the place of the access list, before flow control, which has one slot. */
async function setUp(check: Check, shadow = false): Promise<Scene> {
  const filter = accessList as unknown as Filter<Decision, Promise<Refusal | undefined>>
  mock.method(filter, 'check', check)
  mock.method(filter, 'shadow', () => shadow)
  const stub = await startStub()
  const bodies: string[] = []
  stub.answer = (request) => {
    const chunks: Buffer[] = []
    request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.stream.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString())
      reply(request, 200, '{}')
    })
  }
  const gateway = await startGuardedGateway(
    clusterObject([stub], {
      spec: {
        authentication: { anonymous: true },
        logging: { mode: 'on' },
        flowControl: { flowControlSchemas: [{ name: 'one', maxRequestsInflight: { max: 1 } }] },
        dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'one' }],
      },
    }),
  )
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com' })
  cleanups.push(stub.stop, gateway.stop, () => session.destroy())
  return { stub, gateway, session, bodies }
}

const tooLarge = () => refuse('body-too-large', 'too large')

async function reads({ exchange }: Decision, limit = LIMIT): Promise<Refusal | undefined> {
  const bytes = await readBody(exchange, limit, tooLarge)
  return Buffer.isBuffer(bytes) ? undefined : bytes
}

test('a filter in shadow mode that waits only warns, and the body goes upstream as it came', async () => {
  const { session, bodies } = await setUp(async (decision) => {
    return (await reads(decision)) ?? refuse('access-denied', 'no', { rule: 'r' })
  }, true)
  const answer = await h2Request(session, POST, Buffer.from('{"a":1}'))
  assert.equal(answer.status, 200)
  assert.deepEqual(valuesOf(answer.head, 'warning'), ['299 - "access-list in shadow mode would refuse: no"'])
  assert.deepEqual(bodies, ['{"a":1}'])
})

test('no part of a body that was read in part goes upstream, not even in shadow mode', async () => {
  const { session, bodies, stub } = await setUp(reads, true)
  const stream = h2Open(session, POST, { endStream: false })
  stream.write(Buffer.alloc(LIMIT + 1, 'x'))
  const response = h2Response(stream)
  stream.end(Buffer.alloc(LIMIT, 'y'))
  assert.equal((await response).status, 413)
  assert.deepEqual([bodies, stub.seen.length], [[], 0])
})

test('who reads a body again that could not be read gets the same refusal', async () => {
  const { session } = await setUp(async (decision) => {
    const first = await reads(decision)
    assert.equal(await reads(decision, 2 * LIMIT), first)
    return first
  })
  const answer = await h2Request(session, POST, Buffer.alloc(LIMIT + 1, 'x'))
  assert.equal(answer.status, 413)
})

test('a client that goes while filters read costs no bug and no slot', async () => {
  let reading = 0
  const { session, gateway, stub } = await setUp(async (decision) => {
    reading++
    return (await reads(decision)) ?? (await reads(decision))
  })
  const stream = h2Open(session, POST, { endStream: false })
  stream.write('{')
  await waitFor('the filter', () => reading === 1)
  // A reset of the stream alone would end its body first.
  session.destroy()
  await waitFor('its end', () => gateway.access.length === 1)
  assert.equal(gateway.access[0]?.['aborted'], 'client')
  assert.equal(gateway.access[0]?.['code'], 0)
  assert.equal(stub.seen.length, 0)
  const next = h2Connect({ port: gateway.port, serverName: 'prod.example.com' })
  cleanups.push(() => next.destroy())
  assert.equal((await h2Request(next, POST, Buffer.from('{}'))).status, 200)
})

test('a filter before flow control that is asked again does not make it take a second slot', async () => {
  let asked = 0
  const check: Check = async (decision) => {
    asked++
    decision.recheck = { filter: 'access-list', check: () => check(decision) }
    return undefined
  }
  const { session, gateway, stub } = await setUp(check)
  stub.answer = (request) => reply(request, stub.seen.length === 1 ? 409 : 200, '{}')
  assert.equal((await h2Request(session, POST, Buffer.from('{}'))).status, 200)
  assert.deepEqual([asked, stub.seen.length], [2, 2])
  assert.equal(stub.seen[1]?.values('audit-id').length, 1)
  assert.equal((await waitFor('the log', () => gateway.access[0]))['requestBytes'], 2)
  assert.equal((await h2Request(session, [])).status, 200, 'the slot is free again')
})

test('409 before all of the body has come is passed on: it could not be sent whole a second time', async () => {
  const check: Check = async (decision) => {
    decision.recheck = { filter: 'access-list', check: () => Promise.resolve(undefined) }
    return undefined
  }
  const { session, stub } = await setUp(check)
  stub.answer = (request) => reply(request, 409, '{}')
  const stream = h2Open(session, POST, { endStream: false })
  stream.write('{')
  assert.equal((await h2Response(stream)).status, 409)
  assert.equal(stub.seen.length, 1)
})
