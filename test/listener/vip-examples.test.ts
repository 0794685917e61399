// The files of deploy/vip are read by the programs that they are for, and agree with each other.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { loadConfig } from '../../src/process/config/config.ts'

const VIP_DIR = resolve(import.meta.dirname, '../../deploy/vip')
const FILES = readdirSync(VIP_DIR)
/** keepalived takes no loopback interface. */
const INTERFACE = readdirSync('/sys/class/net').find((name) => name !== 'lo') ?? 'eth0'
const PAGE = readFileSync(resolve(import.meta.dirname, '../../docs/vip.md'), 'utf8')
let dir: string

before(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-vip-'))
})
after(() => rmSync(dir, { recursive: true, force: true }))

function read(file: string): string {
  return readFileSync(join(VIP_DIR, file), 'utf8')
}

test('docs/vip.md leads to every one of them', () => {
  for (const file of FILES) assert.ok(PAGE.includes(`(../deploy/vip/${file})`), file)
})

test('HAProxy accepts its configuration, and refuses a damaged one', () => {
  const check = (text: string): void => {
    const file = join(dir, 'haproxy.cfg')
    writeFileSync(file, text)
    execFileSync('haproxy', ['-c', '-f', file], { stdio: 'pipe' })
  }
  check(read('haproxy.cfg'))
  assert.throws(() => check(read('haproxy.cfg').replace('send-proxy-v2', 'send-proxy-v3')))
})

test('keepalived accepts its configurations, and refuses a damaged one', () => {
  const check = (text: string): void => {
    const file = join(dir, 'keepalived.conf')
    // What this machine has: an interface, a user that can be changed to, a script that exists.
    const here = text.replaceAll('eth0', INTERFACE).replace('script_user nobody', 'script_user root')
    writeFileSync(file, here.replace('/usr/local/bin/portcullis', '/bin/true'))
    execFileSync('keepalived', ['-t', '-f', file], { stdio: 'pipe', timeout: 30_000 })
  }
  const configurations = FILES.filter((file) => file.startsWith('keepalived'))
  assert.equal(configurations.length, 3)
  for (const file of configurations) check(read(file))
  assert.throws(() => check(read('keepalived.conf').replace('virtual_router_id 80', 'virtual_router_id 800')))
})

test('the settings are those of a gateway, and believe the load balancer of haproxy.cfg', () => {
  const config = loadConfig({ flags: { config: 'p.yaml' }, env: {}, readFile: () => read('proxy-protocol.yaml') })
  assert.deepEqual(config.listen[0], { host: '0.0.0.0', port: 8443, proxyProtocol: true })
  assert.deepEqual([...(config.proxyProtocolFrom[0]?.bytes ?? [])], [192, 0, 2, 5])
  assert.equal(config.healthListen?.port, 8081)
  const [, flags = ''] = /^#\s+(--listen .*)$/m.exec(read('haproxy.cfg')) ?? []
  const words = flags.split(' ')
  const flag = (name: string): string => words[words.indexOf(name) + 1] ?? ''
  const from = loadConfig({
    flags: {
      listen: [flag('--listen')],
      proxyProtocolFrom: [flag('--proxy-protocol-from')],
      healthListen: flag('--health-listen'),
    },
    env: {},
    readFile: () => '',
  })
  assert.deepEqual([from.listen[0], from.healthListen], [config.listen[0], config.healthListen])
})

test('health checks go to /readyz of the health port', () => {
  for (const file of FILES.filter((name) => /haproxy|keepalived|aws/.test(name))) {
    assert.match(read(file), /\/readyz/, file)
    assert.match(read(file), /8081/, file)
  }
})

test('Services lead to the port of clients, and values of annotations are strings', () => {
  const services = FILES.filter((file) => file.startsWith('service-'))
  assert.equal(services.length, 4)
  for (const file of services) {
    const [service] = parseAllDocuments(read(file)).map((document) => document.toJS())
    assert.equal(service.spec.ports[0].targetPort, 8443, file)
    for (const [name, value] of Object.entries(service.metadata.annotations)) assert.equal(typeof value, 'string', name)
  }
})
