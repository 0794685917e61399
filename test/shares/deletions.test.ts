// Deletions of protected pods are evaluated in turns by user: thousands of one do not delay another one's.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { admitted, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startPodUpstream } from '../harness/upstreams/pod-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const PODS = '/api/v1/namespaces/default/pods'
/** More than the main thread evaluates of one user at a time. */
const MANY = 400
const clientCA = createCA({ commonName: 'clients of prod' })

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

test('who has hundreds of deletions under way does not keep the main thread from those of another', async () => {
  const upstream = await startPodUpstream()
  const spec = { podProtection: { timeoutSeconds: 30 } }
  const gateway = await startGuardedGateway(clusterObject([upstream.stub], { clientCA, spec }))
  cleanups.push(upstream.stub.stop, gateway.stop)
  for (let i = 0; i < MANY; i++) upstream.add(`hog-${i}`)
  upstream.add('victim')
  const seen: string[] = []
  let go: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (go = resolve))
  gateway.gate.judge = async (request) => {
    seen.push(request.pod.name)
    if (request.pod.name.startsWith('hog')) await gone
    return admitted(request)
  }
  const connect = (user: string): ClientHttp2Session => {
    const certificate = clientPair(clientCA, user)
    const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
    cleanups.push(() => session.destroy())
    return session
  }
  const mallory = [connect('mallory'), connect('mallory')]
  const all = Array.from({ length: MANY }, (_, i) =>
    h2Request(mallory[i % 2] ?? connect('mallory'), [':method', 'DELETE', ':path', `${PODS}/hog-${i}`]),
  )
  await waitFor('a part of them', () => seen.length === 256)
  const victim = await h2Request(connect('alice'), [':method', 'DELETE', ':path', `${PODS}/victim`])
  assert.equal(victim.status, 200)
  assert.equal(seen.length, 257, 'the others wait')
  go()
  for (const answer of await Promise.all(all)) assert.equal(answer.status, 200)
  assert.equal(seen.length, MANY + 1)
})
