import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseIp } from './ip-address.ts'
import { localAddressKind, localServerMessage } from './local-address.ts'

test('what an address must not be, however it is written', () => {
  const said = (text: string): string => localAddressKind(parseIp(text) ?? assert.fail(text))
  const refused = {
    loopback: ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '64:ff9b::127.0.0.1', '2002:7f00:1::'],
    'link-local': ['169.254.169.254', 'fe80::1', 'febf::1', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe'],
    unspecified: ['0.0.0.0', '0.1.2.3', '::', '::10.0.0.1'],
    'a metadata service': ['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', '168.63.129.16', '::ffff:100.100.100.200'],
    multicast: ['224.0.0.1', '239.1.1.1', 'ff02::1'],
    reserved: ['240.0.0.1', '255.255.255.255'],
  }
  for (const [why, addresses] of Object.entries(refused)) {
    assert.deepEqual(
      addresses.map(said),
      addresses.map(() => why),
    )
  }
  const taken = [
    '10.0.0.1',
    '192.168.0.1',
    '100.64.0.1',
    '192.0.2.2',
    'fd00::1',
    '2001:db8::1',
    '64:ff9b::a00:1',
    'fd00:ec3::254',
    '2002:a00:1::',
  ]
  assert.deepEqual(
    taken.map(said),
    taken.map(() => ''),
  )
})

test('a server, by address or by a name that means this machine', () => {
  for (const host of ['127.0.0.1', '::1', '0.0.0.0', 'localhost', 'api.localhost'])
    assert.equal(localServerMessage(host), "is on the gateway's own machine", host)
  assert.equal(localServerMessage('169.254.169.254'), 'is a link-local address')
  assert.equal(localServerMessage('fd00:ec2::254'), 'is a metadata service')
  for (const host of ['10.0.0.1', 'localhost.example.com', 'kube.example.com', ''])
    assert.equal(localServerMessage(host), '', host)
})
