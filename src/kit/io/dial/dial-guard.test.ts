import assert from 'node:assert/strict'
import type { LookupAddress, lookup } from 'node:dns'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { Agent, request } from 'undici'
import { parseAllowedServer } from '../../core/dial/dial-rules.ts'
import { DialGuard, guardedConnector } from './dial-guard.ts'

let server: Server
let port = 0
let connections = 0
before(async () => {
  server = createServer((_, response) => void response.end('here'))
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
after(() => {
  server.closeAllConnections()
  server.close()
})

/** Each look-up returns the next addresses; the last ones repeat. */
function resolver(...answers: readonly (readonly string[])[]): typeof lookup {
  let turn = 0
  const found = (name: string, _options: unknown, done: (error: Error | null, all: LookupAddress[]) => void): void => {
    const addresses = answers[Math.min(turn++, answers.length - 1)] ?? assert.fail(name)
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  return found as unknown as typeof lookup
}

function guard(allowed: readonly string[], lookUp: typeof lookup): DialGuard {
  return new DialGuard(
    allowed.map((text) => parseAllowedServer(text) ?? assert.fail(text)),
    lookUp,
  )
}

async function get(agent: Agent, host: string): Promise<string> {
  const { body } = await request(`http://${host}:${port}/`, { dispatcher: agent })
  return body.text()
}

test('a name that had other addresses when it was allowed is refused at the next connection', async () => {
  const rebinding = guard(['127.0.0.1'], resolver(['127.0.0.1'], ['127.0.0.2'], ['169.254.169.254', '::1']))
  const connector = guardedConnector((host, at) => rebinding.to(host, at), { allowH2: false })
  const agent = new Agent({ connect: connector, pipelining: 0 })
  assert.equal(await get(agent, 'kube.example.com'), 'here')
  const before = connections
  for (const address of ['127.0.0.2', '169.254.169.254'])
    await assert.rejects(get(agent, 'kube.example.com'), (error: Error) => {
      assert.match(error.message, new RegExp(`^kube\\.example\\.com: ${address.replaceAll('.', '\\.')}:`))
      return Reflect.get(error, 'code') === 'ERR_LOCAL_SERVER'
    })
  assert.equal(connections, before)
  await agent.close()
})

test('among several addresses those that are allowed are used, for one address as for all', async () => {
  const guarded = guard(['127.0.0.1'], resolver(['169.254.169.254', '127.0.0.1', '::1'])).to('kube.example.com', port)
  for (const autoSelectFamily of [true, false]) {
    const socket = connect({ host: guarded.host, port, lookup: guarded.lookup, autoSelectFamily })
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    assert.equal(socket.remoteAddress, '127.0.0.1')
    socket.destroy()
  }
  assert.equal(guarded.refusal, '')
})

test('an address is refused before a socket is made, and says why until it is allowed', async () => {
  const strict = guard([], resolver([]))
  const guarded = strict.to('127.0.0.1', port)
  assert.throws(() => guarded.check(), /only --allow-local-servers=127\.0\.0\.1:\d+ of the gateway allows it/)
  assert.match(guarded.refusal, /on the gateway's own machine/)
  const agent = new Agent({ connect: guardedConnector((host, at) => strict.to(host, at), { allowH2: false }) })
  const before = connections
  // Includes calls that wait for the same connection, and later ones.
  for (let round = 0; round < 2; round++) {
    const outcomes = await Promise.allSettled([get(agent, '127.0.0.1'), get(agent, '127.0.0.1')])
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
  }
  assert.equal(connections, before)
  await agent.close()
})
