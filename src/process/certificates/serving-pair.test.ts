import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, type NetworkInterfaceInfo, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { machineHosts, readPairFiles } from './serving-pair.ts'

test('a certificate that TLS refuses is refused when it is read, not in each handshake', () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-pair-'))
  const openssl = (args: string): unknown => execFileSync('openssl', args.split(' '), { cwd: dir, stdio: 'pipe' })
  const read = (): unknown =>
    readPairFiles(
      { flag: '--tls-cert-file', file: join(dir, 'tls.crt') },
      { flag: '--tls-private-key-file', file: join(dir, 'tls.key') },
    )
  try {
    const ec = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
    openssl(`req -x509 ${ec} -keyout ca.key -out ca.crt -days 1 -subj /CN=ca`)
    openssl(`req ${ec} -keyout tls.key -out tls.csr -subj /CN=gateway`)
    openssl('x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -sha1 -days 1 -out tls.crt')
    assert.throws(read, (error) => {
      assert.ok(error instanceof UserError)
      assert.match(error.message, /^--tls-cert-file .*tls\.crt cannot be used for TLS: .*md too weak$/)
      return true
    })
    openssl('x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -sha256 -days 1 -out tls.crt')
    assert.doesNotThrow(read)
    writeFileSync(join(dir, 'tls.key'), 'no key')
    assert.throws(read, /holds no PEM private key/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

const BASE = [...new Set(['localhost', '127.0.0.1', '::1', hostname().toLowerCase()])]

function info(address: string, internal = false): NetworkInterfaceInfo {
  const rest = { netmask: '', mac: '', internal, cidr: null }
  return address.includes(':') ? { address, family: 'IPv6', scopeid: 0, ...rest } : { address, family: 'IPv4', ...rest }
}

const INTERFACES = {
  lo: [info('127.0.0.1', true), info('::1', true)],
  eth0: [info('fe80::1'), info('2001:DB8::2'), info('192.0.2.2')],
  eth1: [info('169.254.7.7'), info('198.51.100.7')],
}

test('a listener on any address: those of the interfaces, without loopback and link-local ones', () => {
  for (const host of ['0.0.0.0', '::', '0:0::0', '']) {
    const expected = [...BASE, '192.0.2.2', '198.51.100.7', '2001:db8::2']
    assert.deepEqual(machineHosts([{ host }], INTERFACES), expected, host)
  }
})

test('listeners on some addresses: these alone', () => {
  const listen = [{ host: '127.0.0.1' }, { host: '192.0.2.10' }, { host: 'fe80::1%eth0' }, { host: 'gw.example.com' }]
  assert.deepEqual(machineHosts(listen, INTERFACES), [...BASE, '192.0.2.10', 'fe80::1', 'gw.example.com'])
})

test('a machine with very many addresses: some of them, the IPv4 ones first', () => {
  const many = Array.from({ length: 500 }, (_, i) =>
    info(i % 2 === 0 ? `2001:db8::${i + 1}` : `10.0.${i >> 8}.${i & 255}`),
  )
  const hosts = machineHosts([{ host: '0.0.0.0' }], { eth0: many })
  assert.equal(hosts.length, BASE.length + 32)
  assert.ok(hosts.slice(BASE.length).every((host) => host.startsWith('10.0.')))
})
