import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_SESSION_COMMAND, readSessionRequest, sessionKind, sessionProtocol } from './session-request.ts'

const POD = { isResourceRequest: true, resource: 'pods', subresource: 'exec' }
const NOTHING = { container: '', command: [], omitted: 0, ports: [], streams: [] }

test('exec, attach and port-forward of pods are sessions', () => {
  for (const [asked, kind] of [
    [{}, 'exec'],
    [{ subresource: 'attach' }, 'attach'],
    [{ subresource: 'portforward' }, 'portforward'],
    [{ subresource: 'log' }, undefined],
    [{ subresource: '' }, undefined],
    [{ resource: 'services', subresource: 'exec' }, undefined],
    [{ isResourceRequest: false }, undefined],
  ] as const) {
    assert.equal(sessionKind({ ...POD, ...asked }), kind, JSON.stringify(asked))
  }
})

test('container, command and streams are read as an API server reads them', () => {
  for (const [query, wanted] of [
    ['', {}],
    ['?', {}],
    ['?container=c&command=sh&command=-c&command=echo+a%20b', { container: 'c', command: ['sh', '-c', 'echo a b'] }],
    ['?container=first&container=second', { container: 'first' }],
    ['?command=&command=', { command: ['', ''] }],
    ['?command=%zz&command=ok;&command=ok', { command: ['ok'] }],
    ['?stdin=true&stdout=1&stderr=false&tty=0', { streams: ['stdin', 'stdout'] }],
    ['?tty&stdin=FALSE&stdin=true', { streams: ['tty'] }],
    ['?ports=80', {}],
  ] as const) {
    const read = readSessionRequest('exec', `/api/v1/namespaces/n/pods/p/exec${query}`)
    assert.deepEqual(read, { kind: 'exec', ...NOTHING, ...wanted }, query)
  }
  const forward = readSessionRequest('portforward', '/x?ports=80&ports=443&command=no')
  assert.deepEqual(forward, { kind: 'portforward', ...NOTHING, ports: ['80', '443'] })
})

test('what is kept of a command is limited, however it is divided', () => {
  for (const query of [
    'command='.repeat(20_000).replaceAll('command=', 'command=&'),
    `command=${'x'.repeat(200_000)}`,
    'command=xx&'.repeat(20_000),
  ]) {
    const { command, omitted } = readSessionRequest('exec', `/x?${query}`)
    assert.ok(command.join(' ').length <= MAX_SESSION_COMMAND, `${command.join(' ').length}`)
    const given = query.replaceAll(/command=|&/g, '').length
    assert.equal(command.join('').length + omitted, given)
  }
  assert.equal(readSessionRequest('portforward', `/x?${'ports=80&'.repeat(20_000)}`).ports.length, 64)
})

test('the protocol is what upstream has switched to', () => {
  const webSocket = ['upgrade', 'websocket', 'sec-websocket-protocol', 'v5.channel.k8s.io']
  assert.equal(sessionProtocol(webSocket), 'websocket v5.channel.k8s.io')
  const spdy = ['x-stream-protocol-version', 'v4.channel.k8s.io', 'upgrade', 'SPDY/3.1']
  assert.equal(sessionProtocol(spdy), 'SPDY/3.1 v4.channel.k8s.io')
  assert.equal(sessionProtocol(['upgrade', 'websocket']), 'websocket')
  assert.equal(sessionProtocol(['upgrade', 'x'.repeat(1000)]).length, 100)
})
