// Looking up names with a real DNS server: addresses, TTLs, and every way in which there is no answer.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { LookedUp } from '../../src/gateway/core/endpoints/resolution.ts'
import { type LookUpOptions, lookUp } from '../../src/gateway/io/dns/look-up.ts'
import { type DnsServer, startDnsServer } from '../harness/servers/dns-server.ts'

let dns: DnsServer
before(async () => {
  dns = await startDnsServer()
})
after(() => dns.stop())

const UNKNOWN = (): Promise<never> => Promise.reject(new Error('getaddrinfo ENOTFOUND'))

function look(options: LookUpOptions = {}): Promise<LookedUp> {
  const given = { servers: [dns.address], hostsFile: '/dev/null', hasIPv6: true, system: UNKNOWN, ...options }
  return lookUp('api.prod.test', given)
}

test('all addresses of both families, with the shortest TTL', async () => {
  dns.answer = { addresses: ['10.0.0.1', '10.0.0.2', 'fd00::1:2'], ttl: 17 }
  assert.deepEqual(await look(), { v4: ['10.0.0.1', '10.0.0.2'], v6: ['fd00::1:2'], ttlSeconds: 17, message: '' })
  assert.deepEqual((await look({ hasIPv6: false })).v6, [])
  dns.answer = { addresses: ['10.0.0.1'], ttl: 0 }
  assert.equal((await look()).ttlSeconds, 1)
})

test('no answer of one family says nothing about it', async () => {
  dns.answer = { addresses: ['10.0.0.1'], ttl: 5, silent: ['AAAA'] }
  const { v4, v6, message } = await look()
  assert.deepEqual([v4, v6], [['10.0.0.1'], undefined])
  assert.match(message, /ETIMEOUT/)
})

test('SERVFAIL and REFUSED are errors, and the system is not asked', async () => {
  for (const code of ['SERVFAIL', 'REFUSED'] as const) {
    dns.answer = { code }
    const { v4, v6, message } = await look({ system: () => Promise.resolve(['10.9.9.9']) })
    assert.deepEqual([v4, v6], [undefined, undefined])
    assert.match(message, new RegExp(code))
  }
})

test('what DNS does not know under this name the system may: without a TTL', async () => {
  for (const answer of [{ code: 'NXDOMAIN' }, {}] as const) {
    dns.answer = answer
    assert.deepEqual(await look({ system: () => Promise.resolve(['10.9.9.9', 'fd00::9']) }), {
      v4: ['10.9.9.9'],
      v6: ['fd00::9'],
      ttlSeconds: 0,
      message: '',
    })
    assert.deepEqual(await look(), { v4: [], v6: [], ttlSeconds: 0, message: 'getaddrinfo ENOTFOUND' })
  }
})

test('/etc/hosts comes first', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-hosts-'))
  try {
    const hostsFile = join(dir, 'hosts')
    writeFileSync(
      hostsFile,
      '# 10.1.1.9 api.prod.test\n10.1.1.1 other API.prod.test # x\nfd00::1 api.prod.test\nbad api.prod.test\n',
    )
    const asked = dns.questions
    assert.deepEqual(await look({ hostsFile }), { v4: ['10.1.1.1'], v6: ['fd00::1'], ttlSeconds: 0, message: '' })
    assert.equal(dns.questions, asked)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
