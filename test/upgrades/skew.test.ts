// Objects of the next version, which have fields that this one does not know: this one serves them, and what it writes leaves the fields
// as they are. There is no release before this one yet, so the next one is played by objects.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { UpstreamClusterStatus } from '../../src/gateway/api/upstream-cluster/status.ts'
import { wantedStatus } from '../../src/gateway/controllers/status/wanted.ts'
import { RedisKeys } from '../../src/gateway/io/redis/limits.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { ControlClient, type Json, UC } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { startGateway } from '../harness/gateways/gateway.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'

const NEXT = { mode: 'FromTheNext', list: [1, { deep: true }] }

describe('the embedded API server', () => {
  let control: TestControl
  let client: ControlClient

  before(async () => {
    control = await startControl()
    client = new ControlClient(control, { cert: control.admin })
  })
  after(async () => {
    client.close()
    await control.stop()
  })

  /** An object as the next version has stored it. */
  function stored(name: string): void {
    const object: JsonObject = {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name, uid: `uid-${name}`, generation: 3, creationTimestamp: '2030-01-01T00:00:00Z' },
      spec: {
        servers: [{ endpoint: 'https://10.0.0.1:6443', next: NEXT }],
        clientConfig: { bearerToken: Buffer.from('token').toString('base64'), insecure: true },
        dispatchPolicies: [ALLOW_ALL],
        next: NEXT,
      },
    }
    control.store.write([
      { resource: 'upstreamclusters.proxy.kubegateway.io', namespace: '', name, object, expected: 0 },
    ])
  }

  async function read(name: string): Promise<Json> {
    return (await client.get(`${UC}/${name}`)).json
  }

  function assertKept({ spec }: Json): void {
    assert.deepEqual(spec.next, NEXT)
    assert.deepEqual(spec.servers[0].next, NEXT)
  }

  const PATCHES: readonly (readonly [string, string, unknown])[] = [
    [
      'a merge patch, as portcullis degrade and kubectl apply send',
      'application/merge-patch+json',
      { spec: { degrade: { mode: 'ReadOnly' } } },
    ],
    [
      'a JSON patch',
      'application/json-patch+json',
      [{ op: 'add', path: '/spec/degrade', value: { mode: 'ReadOnly' } }],
    ],
    [
      'server-side apply',
      'application/apply-patch+yaml',
      { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', spec: { degrade: { mode: 'ReadOnly' } } },
    ],
  ]
  for (const [i, [title, type, patch]] of PATCHES.entries()) {
    test(`${title}: fields of the next version stay, and are no error`, async () => {
      const name = `patched-${i}`
      stored(name)
      assertKept(await read(name))
      const query = 'fieldManager=test&fieldValidation=Strict'
      const answer = await client.call('PATCH', `${UC}/${name}?${query}`, {
        body: JSON.stringify(patch),
        contentType: type,
      })
      assert.equal(answer.code, 200, answer.text)
      assert.equal((await read(name)).spec.degrade.mode, 'ReadOnly')
      assertKept(await read(name))
      assert.equal((await read(name)).metadata.generation, 4)
    })
  }

  test('a status is written: the fields of spec stay', async () => {
    stored('status')
    const object = await read('status')
    const answer = await client.call('PUT', `${UC}/status/status`, {
      body: JSON.stringify({ ...object, status: { observedGeneration: 3 } }),
      contentType: 'application/json',
    })
    assert.equal(answer.code, 200, answer.text)
    assertKept(await read('status'))
    assert.equal((await read('status')).metadata.generation, 3)
  })

  test('what a client adds or changes itself is not kept: this version cannot check it', async () => {
    stored('changed')
    const patch = async (spec: Json): Promise<Json> => {
      const body = JSON.stringify({ spec })
      await client.call('PATCH', `${UC}/changed`, { body, contentType: 'application/merge-patch+json' })
      return await read('changed')
    }
    assert.equal((await patch({ other: 1 })).spec.other, undefined)
    assertKept(await read('changed'))
    assert.equal((await patch({ next: { mode: 'mine' } })).spec.next, undefined)
    assert.deepEqual((await read('changed')).spec.servers[0].next, NEXT)
  })
})

test('objects with fields of the next version are served', async () => {
  const stub = await startStub()
  const clientCA = createCA({ commonName: 'clients' })
  const object = clusterObject([stub], { clientCA })
  const gateway = await startGateway({ clusters: [{ ...object, spec: { ...object.spec, ...{ next: NEXT } } }] })
  const session = h2Connect({
    port: gateway.port,
    serverName: 'prod.example.com',
    certificate: clientPair(clientCA, 'alice'),
  })
  try {
    assert.equal((await h2Request(session, [])).status, 200)
  } finally {
    session.destroy()
    await gateway.stop()
    await stub.stop()
  }
})

test('a status of the next version keeps what this one does not know, also when this one leads', () => {
  const entry = {
    name: 'newer',
    threads: 2,
    threadsApplied: 2,
    observedGeneration: 1,
    appliedAt: '2030-01-01T00:00:00Z',
    next: NEXT,
  }
  const condition = {
    type: 'FromTheNext',
    status: 'True',
    reason: 'Next',
    message: 'm',
    lastTransitionTime: '2030-01-01T00:00:00Z',
  }
  const endpoints = { ready: 1, total: 1, next: NEXT }
  const before = {
    next: NEXT,
    gateways: [entry],
    conditions: [condition],
    endpoints,
  } as unknown as UpstreamClusterStatus
  const facts = {
    generation: 1,
    inForce: 1,
    endpoints: [],
    problems: [],
    credentials: [],
    endingSoon: [],
    shadows: [],
    rights: { kind: 'granted' },
  } as unknown as Parameters<typeof wantedStatus>[0]
  for (const leads of [false, true]) {
    const author = {
      replica: 'own',
      threads: 1,
      leads,
      limitsMessage: '',
      podProtection: undefined,
      cache: undefined,
      lastSeen: undefined,
      refused: 0,
      isGone: () => false,
    }
    const wanted = wantedStatus(facts, before, author, 0) as unknown as Json
    assert.deepEqual(wanted.next, NEXT)
    assert.deepEqual(wanted.gateways[0], entry)
    assert.deepEqual(wanted.conditions.at(-1), condition)
    assert.deepEqual(wanted.endpoints.next, NEXT)
  }
})

test('every key in Redis names the version of its form: replicas that count differently share nothing', () => {
  const keys = new RedisKeys('portcullis')
  for (const key of [keys.replicas, keys.buckets, keys.leases('a', 'b')]) assert.match(key, /^portcullis:v1:/)
})
