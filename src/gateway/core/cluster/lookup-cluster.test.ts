import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { UpstreamClusterSpec } from '../../api/upstream-cluster/upstream-cluster.ts'
import { buildClusterIndex, normalizeHost } from './cluster-index.ts'
import { compileCluster } from './compile-cluster.ts'
import type { CompiledCluster } from './compiled-cluster.ts'
import { clusterForAddress, clusterForServerName, type LookupKey, lookupCluster } from './lookup-cluster.ts'

function cluster(name: string, spec: Partial<UpstreamClusterSpec> = {}): CompiledCluster {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: { servers: [{ endpoint: 'https://10.1.0.1:6443' }], dispatchPolicies: [], ...spec },
  }
  return compileCluster({ object, revision: '1' })
}

const names = (...serverNames: string[]): Partial<UpstreamClusterSpec> => ({ secureServing: { serverNames } })

const INDEX = buildClusterIndex([
  cluster('prod.example.com', { ...names('prod', '*.prod.example.com'), addresses: { ips: ['10.0.0.5', 'FD00::5'] } }),
  cluster('staging', { ...names('*.example.com'), addresses: { ports: [9443] } }),
  cluster('10.0.0.9'),
  cluster('other', { default: true }),
])

function via(key: Partial<LookupKey>, index = INDEX): string {
  const found = lookupCluster(index, { authority: '', target: '/', localAddress: '127.0.0.1', localPort: 8443, ...key })
  return 'unknown' in found ? `unknown ${found.unknown}` : `${found.via} ${found.cluster.name}`
}

test('by host name: any case, with port and trailing dot', () => {
  for (const authority of [
    'prod',
    'PROD',
    'prod:8443',
    'prod.',
    'Prod.:8443',
    'prod.example.com',
    'prod.example.com.:1',
  ]) {
    assert.equal(via({ authority }), 'host prod.example.com', authority)
  }
})

test('exact names beat wildcards; a wildcard covers exactly one label', () => {
  assert.equal(via({ authority: 'prod.example.com' }), 'host prod.example.com')
  assert.equal(via({ authority: 'a.prod.example.com' }), 'host prod.example.com')
  assert.equal(via({ authority: 'a.example.com' }), 'host staging')
  assert.equal(via({ authority: 'a.b.example.com' }), 'default other')
  assert.equal(via({ authority: 'example.com' }), 'default other')
  assert.equal(via({ authority: '.example.com' }), 'default other')
})

// KubeGateway treats a Host that is an IP address as its own, so a kubeconfig with a bare IP reached nothing.
test('a host that is an address names a cluster like any other host', () => {
  assert.equal(via({ authority: '10.0.0.9' }), 'host 10.0.0.9')
  assert.equal(via({ authority: '10.0.0.9:8443' }), 'host 10.0.0.9')
  assert.equal(via({ authority: '[::ffff:10.0.0.9]:8443' }), 'host 10.0.0.9')
})

test('by destination address, then by port, then the default', () => {
  assert.equal(via({ authority: '192.0.2.1:6443', localAddress: '10.0.0.5' }), 'ip prod.example.com')
  assert.equal(via({ localAddress: '::ffff:10.0.0.5' }), 'ip prod.example.com')
  assert.equal(via({ localAddress: 'fd00:0:0::5' }), 'ip prod.example.com')
  assert.equal(via({ localPort: 9443 }), 'port staging')
  assert.equal(via({ localAddress: '10.0.0.5', localPort: 9443 }), 'ip prod.example.com')
  assert.equal(via({ authority: 'prod', localPort: 9443 }), 'host prod.example.com')
  assert.equal(via({ authority: 'nobody' }), 'default other')
})

test('unknown says what was asked for', () => {
  const index = buildClusterIndex([cluster('a')])
  assert.equal(via({ authority: 'B.example:1' }, index), 'unknown b.example')
  assert.equal(via({ authority: '' }, index), 'unknown 127.0.0.1')
  assert.equal(via({ authority: 'b', target: '/clusters/c/api' }, index), 'unknown /clusters/c')
  const long = lookupCluster(index, { authority: 'x'.repeat(9999), target: '/', localAddress: '', localPort: 0 })
  assert.ok('unknown' in long && long.unknown.length < 300)
})

test('a path prefix is stripped, and outranks everything', () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ['/clusters/staging/api/v1/pods?watch=1', 'staging', '/api/v1/pods?watch=1'],
    ['/clusters/staging', 'staging', '/'],
    ['/clusters/staging/', 'staging', '/'],
    ['/clusters/staging?x', 'staging', '/?x'],
    ['/clusters/staging//api', 'staging', '//api'],
    ['/clusters/staging/clusters/other/api', 'staging', '/clusters/other/api'],
    ['/clusters/staging/a%2Fb/../c', 'staging', '/a%2Fb/../c'],
    ['http://prod/clusters/staging/api', 'staging', '/api'],
  ]
  for (const [target, name, rest] of rows) {
    const found = lookupCluster(INDEX, { authority: 'prod', target, localAddress: '10.0.0.5', localPort: 9443 })
    assert.ok(!('unknown' in found), target)
    assert.deepEqual([found.cluster.name, found.target, found.via], [name, rest, 'path'])
  }
})

test('an unknown name under /clusters/ is unknown, never the default', () => {
  for (const target of [
    '/clusters/nope/api',
    '/clusters/',
    '/clusters//api',
    '/clusters/Staging',
    '/clusters/stag%69ng/api',
  ]) {
    assert.match(via({ authority: 'prod', target }), /^unknown \/clusters\//, target)
  }
  // The name is metadata.name; a host name is not accepted.
  assert.match(via({ target: '/clusters/prod/api' }), /^unknown/)
})

test('what only looks like a prefix is a path of the cluster that the host names', () => {
  for (const target of [
    '/clusters',
    '/clusters?x',
    '//clusters/staging/api',
    '/%63lusters/staging/api',
    '/Clusters/staging',
  ]) {
    const found = lookupCluster(INDEX, { authority: 'prod', target, localAddress: '', localPort: 0 })
    assert.ok(!('unknown' in found))
    assert.deepEqual([found.cluster.name, found.target, found.via], ['prod.example.com', target, 'host'])
  }
})

test('an absolute-form target outranks Host, and is forwarded in origin-form', () => {
  const found = lookupCluster(INDEX, {
    authority: 'staging',
    target: 'https://u@PROD:1/api?x',
    localAddress: '',
    localPort: 0,
  })
  assert.ok(!('unknown' in found))
  assert.deepEqual([found.cluster.name, found.target], ['prod.example.com', '/api?x'])
})

test('the first cluster keeps a claim', () => {
  const spec = { ...names('shared', '*.shared.io'), addresses: { ips: ['10.0.0.5'], ports: [1] }, default: true }
  const index = buildClusterIndex([
    cluster('a', spec),
    cluster('b', { ...spec, ...names('SHARED.', 'a', '*.shared.io') }),
  ])
  assert.equal(via({ authority: 'shared' }, index), 'host a')
  assert.equal(via({ authority: 'a' }, index), 'host a')
  assert.equal(via({ authority: 'x.shared.io' }, index), 'host a')
  assert.equal(via({ localAddress: '10.0.0.5' }, index), 'ip a')
  assert.equal(via({ localPort: 1 }, index), 'port a')
  assert.equal(via({}, index), 'default a')
  assert.equal(via({ authority: 'b' }, index), 'host b')
})

test('TLS: server names exactly or by wildcard, never the default; addresses without SNI', () => {
  assert.equal(clusterForServerName(INDEX, 'PROD.example.com.')?.name, 'prod.example.com')
  assert.equal(clusterForServerName(INDEX, 'x.example.com')?.name, 'staging')
  assert.equal(clusterForServerName(INDEX, 'nobody'), undefined)
  assert.equal(clusterForServerName(INDEX, ''), undefined)
  assert.equal(clusterForAddress(INDEX, '::ffff:10.0.0.5', 9443)?.name, 'prod.example.com')
  assert.equal(clusterForAddress(INDEX, '10.0.0.6', 9443)?.name, 'staging')
  assert.equal(clusterForAddress(INDEX, '10.0.0.6', 1), undefined)
})

test('normalizeHost', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['Prod.Example.com.:443', 'prod.example.com'],
    ['prod..', 'prod.'],
    ['.', '.'],
    ['', ''],
    [':443', ''],
    ['[::1]:443', '::1'],
    ['[0:0::1]', '::1'],
    ['::1', '::1'],
    ['[::ffff:1.2.3.4]:1', '1.2.3.4'],
    ['::FFFF:1.2.3.4', '1.2.3.4'],
    ['[FE80::1%25eth0]', 'fe80::1'],
    ['[nonsense', 'nonsense'],
    ['a:b:c', 'a:b:c'],
    ['1.2.3.4:80', '1.2.3.4'],
  ]
  for (const [authority, host] of rows) assert.equal(normalizeHost(authority), host, authority)
})

test('normalizing twice changes nothing, for names and addresses', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.domain(),
        fc.ipV4(),
        fc.ipV6().map((ip) => `[${ip}]`),
      ),
      fc.constantFrom('', ':1', ':65535'),
      (host, port) => {
        const once = normalizeHost(host.toUpperCase() + port)
        assert.equal(normalizeHost(once), once)
        assert.equal(normalizeHost(`${host.includes('[') ? host : `${host}.`}${port}`), once)
      },
    ),
  )
})
