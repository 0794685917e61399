// How conditions explain that no endpoint takes requests, and that client certificates get 401.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterStatus, conditionOf } from './cluster-status.ts'
import { statusTransitions } from './events.ts'
import type { CredentialFault, EndpointState, StatusFacts } from './status-facts.ts'

const FACTS: StatusFacts = {
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
}

function endpoint(url: string, message: string): EndpointState {
  return { url, disabled: false, state: 'unhealthy', available: false, message }
}

/** Column REASON of `kubectl get uc -o wide`. */
function readyMessage(facts: Partial<StatusFacts>): string {
  const { reason, message = '' } = conditionOf(clusterStatus({ ...FACTS, ...facts }, undefined, 0), 'Ready') ?? {}
  assert.equal(reason, 'NoHealthyEndpoint')
  return message
}

const DOWN = [endpoint('https://a:6443', 'ECONNREFUSED'), endpoint('https://b:6443', '')]
const EXPIRED: CredentialFault = {
  path: 'spec.clientConfig.certData',
  reason: 'Expired',
  message: 'the certificate expired at 2030-01-01T00:00:00Z',
}
const REFUSED: CredentialFault = {
  path: 'spec.clientConfig',
  reason: 'Refused',
  message: 'https://a:6443 answers its health check with 401',
  partial: true,
}

test('Ready names the cause when no endpoint takes requests: the credential, or what each health check said', () => {
  assert.equal(
    readyMessage({ endpoints: DOWN, credentials: [EXPIRED] }),
    ['no endpoint takes requests: spec.clientConfig.certData: the certificate expired at 2030-01-01T00:00:00Z'].join(
      '',
    ),
  )
  const unauthorized = [endpoint('https://a:6443', 'answered with 401')]
  assert.equal(
    readyMessage({ endpoints: unauthorized, credentials: [REFUSED] }),
    'no endpoint takes requests: spec.clientConfig: https://a:6443 answers its health check with 401',
  )
  const both = 'no endpoint takes requests: https://a:6443: ECONNREFUSED. https://b:6443: its connections break'
  assert.equal(readyMessage({ endpoints: DOWN }), both)
  // Neither explains it.
  const forbidden: CredentialFault = { path: 'spec.clientConfig', reason: 'Forbidden', message: 'list pods' }
  const serving: CredentialFault = { ...EXPIRED, path: 'spec.secureServing.certData' }
  assert.equal(readyMessage({ endpoints: DOWN, credentials: [forbidden, serving] }), both)
  const off = DOWN.map((one) => ({ ...one, disabled: true }))
  assert.equal(readyMessage({ endpoints: off, credentials: [EXPIRED] }), 'all endpoints are disabled')
})

test('without a CA of client certificates a condition and an Event say that these get 401', () => {
  const without = clusterStatus({ ...FACTS, hasClientCA: false }, undefined, 0)
  const { status, reason, message = '' } = conditionOf(without, 'ClientCertificatesAccepted') ?? {}
  assert.deepEqual([status, reason], ['False', 'NoClientCA'])
  assert.match(message, /every client certificate gets 401 .* extension-apiserver-authentication/)
  const eventsOf = (...[before, after]: Parameters<typeof statusTransitions>): string[] =>
    statusTransitions(before, after)
      .map(({ type, reason: name }) => `${type} ${name}`)
      .filter((text) => text.includes('ClientCertificates'))
  assert.deepEqual(eventsOf(undefined, without), ['Warning ClientCertificatesNotAccepted'])
  assert.deepEqual(eventsOf(without, without), [])

  const withCA = clusterStatus({ ...FACTS, hasClientCA: true }, without, 0)
  assert.equal(conditionOf(withCA, 'ClientCertificatesAccepted')?.reason, 'Verified')
  assert.deepEqual(eventsOf(without, withCA), ['Normal ClientCertificatesAccepted'])
  assert.deepEqual(eventsOf(undefined, withCA), [])

  const ended: CredentialFault = { ...EXPIRED, path: 'spec.secureServing.clientCAData', partial: true }
  const expired = clusterStatus({ ...FACTS, hasClientCA: true, credentials: [ended] }, undefined, 0)
  assert.equal(conditionOf(expired, 'ClientCertificatesAccepted')?.reason, 'Expired')
  const nothing = clusterStatus({ ...FACTS, inForce: 0 }, undefined, 0)
  assert.equal(conditionOf(nothing, 'ClientCertificatesAccepted')?.status, 'Unknown')
})
