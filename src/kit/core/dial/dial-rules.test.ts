import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DialRules, parseAllowedServer } from './dial-rules.ts'

const OWN_ADDRESSES = new Set(['10.0.0.5', '127.0.0.1', '::1', 'fd00::5'])

function rules(...allowed: readonly string[]): DialRules {
  const parsed = allowed.map((text) => parseAllowedServer(text) ?? assert.fail(text))
  const made = new DialRules(parsed, (address) => OWN_ADDRESSES.has(address))
  made.setOwnListeners([
    { host: '0.0.0.0', port: 8443 },
    { host: '127.0.0.1', port: 9090 },
    { host: '10.0.0.9', port: 6443 },
    { host: 'localhost', port: 8081 },
    { host: '', port: 0 },
  ])
  return made
}

function connects(made: DialRules, server: string): boolean {
  const colon = server.lastIndexOf(':')
  return made.refusal(server.slice(0, colon).replace(/[[\]]/g, ''), Number(server.slice(colon + 1))) === ''
}

test('what the operator allows, and own listeners only by their port', () => {
  const TABLE: readonly (readonly [
    allowed: readonly string[],
    connects: readonly string[],
    refused: readonly string[],
  ])[] = [
    [
      [],
      ['10.0.0.1:6443', '10.0.0.5:6443', '[fd00::1]:6443', '10.0.0.5:9090'],
      [
        ...['127.0.0.1:6443', '127.9.9.9:1', '[::1]:6443', '0.0.0.0:6443', '[::]:1', '[::ffff:127.0.0.1]:1'],
        ...['169.254.169.254:80', '[fe80::1]:443', '[fe80::1%eth0]:443', '[fd00:ec2::254]:80'],
        // Our own listeners, at each of their addresses; 10.0.0.9 has only the virtual address's listener.
        ...['10.0.0.5:8443', '[fd00::5]:8443', '10.0.0.9:6443', '10.0.0.5:8081', 'no address:1'],
      ],
    ],
    [
      ['127.0.0.1'],
      ['127.0.0.1:6443', '127.0.0.1:1', '[::ffff:127.0.0.1]:6443'],
      ['127.0.0.2:6443', '[::1]:6443', '127.0.0.1:8443', '127.0.0.1:9090', '127.0.0.1:8081', '0.0.0.0:6443'],
    ],
    [
      ['127.0.0.1:9090', '10.0.0.5:8443'],
      ['127.0.0.1:9090', '10.0.0.5:8443'],
      ['127.0.0.1:6443', '[fd00::5]:8443'],
    ],
    [
      ['127.0.0.0/8', '::1/128'],
      ['127.1.2.3:5', '[::1]:5'],
      ['0.0.0.0:5', '[::1]:8443', '127.0.0.1:9090'],
    ],
    [
      ['127.0.0.0/8:5', '[::1]:5'],
      ['127.1.2.3:5', '[::1]:5'],
      ['127.1.2.3:6', '[::1]:6'],
    ],
    [['localhost:5'], ['127.0.0.1:5', '[::1]:5'], ['127.0.0.2:5']],
    [['0.0.0.0'], ['0.0.0.0:5'], ['0.0.0.0:9090', '0.0.0.0:8443', '127.0.0.1:5']],
    [['169.254.169.254:80'], ['169.254.169.254:80'], ['169.254.169.254:443', '169.254.169.253:80']],
  ]
  for (const [allowed, good, bad] of TABLE) {
    const made = rules(...allowed)
    assert.deepEqual(
      good.filter((server) => !connects(made, server)),
      [],
      `refused with ${allowed}`,
    )
    assert.deepEqual(
      bad.filter((server) => connects(made, server)),
      [],
      `connected to with ${allowed}`,
    )
  }
})

test('a refusal names the value of the flag that would allow it', () => {
  const made = rules()
  for (const [address, port] of [
    ['127.0.0.1', 6443],
    ['::1', 6443],
    ['::ffff:127.0.0.1', 9090],
    ['10.0.0.5', 8443],
    ['fe80::1', 1],
  ] as const) {
    const [, value = ''] = /--allow-local-servers=(\S+) of the gateway/.exec(made.refusal(address, port)) ?? []
    assert.equal(rules(value).refusal(address, port), '', value)
  }
  assert.match(made.refusal('10.0.0.5', 8443), /^10\.0\.0\.5:8443 is a listener of this gateway; only /)
  assert.match(made.refusal('127.0.0.1', 1), /^127\.0\.0\.1:1 is on the gateway's own machine; only /)
})

test('what is not a address or range', () => {
  for (const text of [
    ...[
      '',
      ':6443',
      'kube.example.com',
      'kube.example.com:6443',
      '127.0.0.1:0',
      '127.0.0.1:65536',
      '127.0.0.1:x',
      '127.1',
    ],
    ...['127.0.0.0/33', '[::1', '[::1]6443', '[::1]:', '127.0.0.1:6443:1', '*', 'http://127.0.0.1:1', '[]', '[]:1'],
  ])
    assert.equal(parseAllowedServer(text), undefined, text)
  assert.equal(parseAllowedServer('::1')?.port, 0)
  assert.equal(parseAllowedServer('[::1]:6443')?.port, 6443)
})
