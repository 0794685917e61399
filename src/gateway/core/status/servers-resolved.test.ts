// Condition ServersResolved, and its Events.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { clusterStatus, conditionOf } from './cluster-status.ts'
import { statusTransitions } from './events.ts'
import type { ServerFact, StatusFacts } from './status-facts.ts'

const SERVER: ServerFact = {
  server: 'https://api.test:6443',
  addresses: ['10.0.0.1', '10.0.0.2'],
  omitted: 0,
  message: '',
}

function status(before: UpstreamClusterStatus | undefined, servers: readonly ServerFact[] | undefined) {
  const facts: StatusFacts = {
    generation: 1,
    problems: [],
    inForce: 1,
    degrade: undefined,
    endpoints: [],
    credentials: [],
    endingSoon: [],
    rights: { kind: 'granted' },
    shadows: [],
    limits: undefined,
    protection: undefined,
    servers,
  }
  return clusterStatus(facts, before, 0)
}

function shown(servers: readonly ServerFact[] | undefined): string {
  const { status: value, reason, message } = conditionOf(status(undefined, servers), 'ServersResolved') ?? {}
  return value === undefined ? '' : `${value} ${reason}: ${message}`
}

test('it names the addresses, and what cannot be looked up', () => {
  assert.equal(shown(undefined), '')
  assert.equal(shown([SERVER]), 'True Resolved: https://api.test:6443: 10.0.0.1, 10.0.0.2')
  assert.equal(
    shown([{ ...SERVER, omitted: 3 }]),
    'True Resolved: https://api.test:6443: 10.0.0.1, 10.0.0.2 and 3 more, which are left out',
  )
  assert.equal(shown([{ ...SERVER, addresses: [] }]), 'Unknown Pending: https://api.test:6443: no address is known yet')
  assert.equal(
    shown([{ ...SERVER, message: 'queryA ESERVFAIL' }]),
    'False LookUpFailed: https://api.test:6443 cannot be looked up (queryA ESERVFAIL); in use: 10.0.0.1, 10.0.0.2',
  )
  const server = 'EndpointSlice default/kubernetes'
  assert.equal(
    shown([{ server, addresses: [], omitted: 0, message: 'forbidden' }]),
    'False LookUpFailed: EndpointSlice default/kubernetes cannot be looked up (forbidden); in use: the server as written',
  )
})

test('an Event when it fails, and when it is over', () => {
  const good = status(undefined, [SERVER])
  const bad = status(good, [{ ...SERVER, message: 'queryA ESERVFAIL' }])
  const reasons = (before: UpstreamClusterStatus | undefined, after: UpstreamClusterStatus): string[] =>
    statusTransitions(before, after)
      .filter(({ reason }) => reason.startsWith('Servers'))
      .map(({ type, reason }) => `${type} ${reason}`)
  assert.deepEqual(reasons(undefined, good), [])
  assert.deepEqual(reasons(good, bad), ['Warning ServersNotResolved'])
  assert.deepEqual(reasons(bad, bad), [])
  assert.deepEqual(reasons(bad, good), ['Normal ServersResolved'])
})
