// Servers that the gateway needs and reaches through itself: which are found, and that each is named once, with the fix.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { CompiledCluster } from '../../src/gateway/core/cluster/compiled-cluster.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import {
  type Dependency,
  DependencyLoops,
  loopOf,
  type OwnAddresses,
} from '../../src/program/last-good/dependency-loops.ts'

const OWN: OwnAddresses = {
  addresses: new Set(['192.0.2.1', '::1']),
  ports: new Set([8443]),
  claimed: new Map([['192.0.2.10', 'vip']]),
  names: new Map([
    ['core.example', 'core'],
    ['*.wild.example', 'wild'],
    ['bare', 'bare'],
  ]),
}

test('addresses, host names and paths by which a gateway is reached', () => {
  const at = { what: '', setting: '', server: '', path: '/', addresses: [] }
  const table: [Partial<Dependency> & Pick<Dependency, 'host' | 'port'>, RegExp][] = [
    [{ host: '192.0.2.1', port: 8443 }, /^192\.0\.2\.1:8443 is an address of --listen$/],
    [{ host: '::1', port: 8443 }, /address of --listen/],
    [{ host: 'gw.example', port: 8443, addresses: ['192.0.2.9', '192.0.2.1'] }, /^192\.0\.2\.1:8443 is/],
    [
      { host: 'vip.example', port: 443, addresses: ['192.0.2.10'] },
      /^192\.0\.2\.10 is in spec\.addresses\.ips of UpstreamCluster vip$/,
    ],
    [{ host: 'CORE.example.', port: 443 }, /is a host name of UpstreamCluster core$/],
    [{ host: 'a.wild.example', port: 443 }, /UpstreamCluster wild$/],
    [
      { host: 'lb.example', port: 443, path: '/clusters/core' },
      /its path \/clusters\/core is how a gateway names UpstreamCluster core$/,
    ],
    // The API server itself, on the machine of the gateway, and others.
    [{ host: '192.0.2.1', port: 6443 }, /^$/],
    [{ host: 'api.example', port: 8443, addresses: ['192.0.2.7'] }, /^$/],
    [{ host: 'b.a.wild.example', port: 443 }, /^$/],
    [{ host: 'bare', port: 6379 }, /^$/],
    [{ host: 'lb.example', port: 443, path: '/k8s/clusters' }, /^$/],
  ]
  for (const [dependency, because] of table) {
    assert.match(loopOf({ ...at, ...dependency }, OWN), because, dependency.host)
  }
})

test('a gateway names each loop once: by its listeners at once, by its clusters when they are known', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-loops-'))
  try {
    const kubeconfigFor = (name: string, server: string): string => {
      const file = join(dir, name)
      const parts = [
        'apiVersion: v1',
        'kind: Config',
        `clusters: [{ name: c, cluster: { server: '${server}' } }]`,
        'users: [{ name: u, user: { token: secret-token } }]',
        'contexts: [{ name: x, context: { cluster: c, user: u } }]',
        'current-context: x',
      ]
      writeFileSync(file, parts.join('\n'))
      return file
    }
    const flags = {
      source: 'kubernetes',
      dataDir: dir,
      listen: ['0.0.0.0:18443'],
      kubeconfig: kubeconfigFor('objects', 'https://127.0.0.1:18443/clusters/core'),
      protectionKubeconfig: kubeconfigFor('core', 'https://192.0.2.10:443'),
      redisUrl: 'rediss://:hush@127.0.0.1:6379',
    }
    const config = loadConfig({ flags, env: {}, readFile: () => '' })
    const lines: string[] = []
    const write = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
    const loops = new DependencyLoops(config, { debug: write, info: write, warn: write, error: write })
    await loops.look()
    assert.equal(lines.length, 1, lines.join('\n'))
    assert.match(
      lines[0] ?? '',
      /^dependency loop: .*the API server of the objects.*18443 is an address of --listen.*let --kubeconfig name/,
    )
    const cluster = { name: 'vip', ips: ['192.0.2.10'], hosts: ['vip'] } as unknown as CompiledCluster
    await loops.look([cluster])
    await loops.look([cluster])
    assert.equal(lines.length, 2, lines.join('\n'))
    assert.match(
      lines[1] ?? '',
      /the API server of the PodProtectors.*spec\.addresses\.ips of UpstreamCluster vip.*let --protection-kubeconfig name/,
    )
    assert.ok(!lines.join().includes('hush') && !lines.join().includes('secret-token'))
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('Redis behind the gateway is found in each form of its address', async () => {
  for (const redisUrl of [
    'redis://:hush@127.0.0.1:18443',
    'rediss+sentinel://gw:hush@192.0.2.77:26379,127.0.0.1:18443/mymaster',
    'redis+cluster://192.0.2.77,127.0.0.1:18443',
  ]) {
    const flags = { configDir: tmpdir(), listen: ['127.0.0.1:18443'], redisUrl }
    const config = loadConfig({ flags, env: {}, readFile: () => '' })
    const lines: string[] = []
    const write = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
    await new DependencyLoops(config, { debug: write, info: write, warn: write, error: write }).look()
    assert.equal(lines.length, 1, `${redisUrl}: ${lines.join('\n')}`)
    assert.match(lines[0] ?? '', /"Redis","server":"[^"]*127\.0\.0\.1:18443.*let --redis-url name/)
    assert.ok(!lines.join().includes('hush'))
  }
})
