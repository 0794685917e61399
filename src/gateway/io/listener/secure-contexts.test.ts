import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base64, clusterObject } from '../../../../test/harness/objects/objects.ts'
import { createCA, issueCertificate, type KeyPair } from '../../../pki/io/pki.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { sharedSecureContext } from './secure-contexts.ts'
import { TlsContexts } from './tls-contexts.ts'

const ca = createCA({ commonName: 'one' })
const otherCA = createCA({ commonName: 'other' })
const pair = issueCertificate(ca, { commonName: 'client', usage: 'client' })

test('equal credentials share a context; others do not', () => {
  const options = { ca: ca.certPem, cert: pair.certPem, key: pair.keyPem }
  const context = sharedSecureContext(options)
  assert.equal(sharedSecureContext({ ...options }), context)
  const others = [
    { ...options, ca: otherCA.certPem },
    { ...options, ca: [ca.certPem] },
    { ca: ca.certPem },
    { ...options, minVersion: 'TLSv1.3' as const },
    { ...options, allowPartialTrustChain: true },
    { ...options, cert: otherCA.certPem, key: otherCA.keyPem },
  ].map(sharedSecureContext)
  assert.equal(new Set([context, ...others]).size, others.length + 1)
})

test('what OpenSSL does not accept is reported each time', () => {
  const wrong = { cert: pair.certPem, key: ca.keyPem }
  assert.throws(() => sharedSecureContext(wrong), /key/)
  assert.throws(() => sharedSecureContext(wrong), /key/)
})

test('listeners: clusters with equal material share a context, those with another client CA do not', () => {
  const contexts = new TlsContexts({ cert: pair.certPem, key: pair.keyPem })
  const [a, b] = [cluster('a.example.com', ca), cluster('b.example.com', ca)]
  const c = cluster('c.example.com', otherCA)
  assert.equal(contexts.forCluster(a), contexts.forCluster(b))
  assert.notEqual(contexts.forCluster(a), contexts.forCluster(c))
})

function cluster(name: string, clientCA: KeyPair): CompiledCluster {
  const secureServing = { clientCAData: base64(clientCA.certPem) }
  const object = clusterObject([], { name, spec: { servers: [{ endpoint: 'https://127.0.0.1' }], secureServing } })
  return compileCluster({ object, revision: '1' })
}
