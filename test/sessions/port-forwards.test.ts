// Recordings of port-forwards through a whole gateway: frames of a real kubectl, kube-apiserver and kubelet, as they were (test/e2e/ has the programs), and
// frames that none of them sends.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { requestHead } from '../harness/clients/http1-client.ts'
import { controlFrame, dataFrame } from '../harness/frames/spdy-frames.ts'
import { type Played, type PlayOptions, playRecording } from '../harness/sessions/play.ts'
import { recordingGateway, type SessionClient } from '../harness/sessions/recording-gateway.ts'
import { waitFor } from '../harness/wait.ts'

const scene = recordingGateway()
const { keyFile, start } = scene

type Chunks = readonly (readonly ['client' | 'server', string])[]
/** What passed the gateway in three sessions, in hex. */
const PASSED: Readonly<Record<'websocket' | 'spdy' | 'channels', Chunks>> = JSON.parse(
  readFileSync(new URL('../data/port-forward-sessions.json', import.meta.url), 'utf8'),
)
const SPDY_ANSWER = ['Upgrade: SPDY/3.1', 'X-Stream-Protocol-Version: portforward.k8s.io']
/** The frames that open both streams of the connection: the client waits for an answer in between. */
const OPENED = Buffer.concat([0, 2].map((at) => Buffer.from(PASSED.spdy[at]?.[1] ?? '', 'hex')))
const [ERRORS, DATA] = [1, 3]

/** @param answer header fields of upstream's 101 */
async function open(answer: readonly string[] = SPDY_ANSWER, query = ''): Promise<SessionClient> {
  scene.stub.answerUpgrade = ({ socket }) => {
    const fields = ['Connection: Upgrade', ...answer].map((one) => `${one}\r\n`).join('')
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`)
  }
  const client = await scene.connect()
  const upgrade = answer.find((one) => one.startsWith('Upgrade')) ?? ''
  const target = `/api/v1/namespaces/shop/pods/web-1/portforward${query}`
  client.send(requestHead(`POST ${target}`, ['Host: prod.example.com', 'Connection: Upgrade', upgrade]))
  assert.equal((await client.response()).status, 101)
  return client
}

const upstream = (): (typeof scene.stub.upgrades)[number] => {
  const found = scene.stub.upgrades.at(-1)
  assert.ok(found)
  return found
}

/** Sends both sides in order. */
async function replay(client: SessionClient, chunks: Chunks): Promise<void> {
  const before = client.raw.received().length
  let [up, down] = [0, 0]
  for (const [side, hex] of chunks) {
    const bytes = Buffer.from(hex, 'hex')
    if (side === 'client') {
      client.send(bytes)
      up += bytes.length
      await waitFor('upstream to have it', () => upstream().received().length >= up)
    } else {
      upstream().socket.write(bytes)
      down += bytes.length
      await waitFor('the client to have it', () => client.raw.received().length - before >= down)
    }
  }
}

async function recording(): Promise<string> {
  return await waitFor('a recording', () => {
    const name = existsSync(scene.dir) && readdirSync(scene.dir).find((one) => one.endsWith('.session'))
    return name !== false && name !== undefined && join(scene.dir, name)
  })
}

const played = (file: string, how: Omit<PlayOptions, 'keyFile'>): Promise<Played> =>
  playRecording(file, { keyFile, ...how })

/** What the audit log says at the end of the only session. */
async function audited(): Promise<Readonly<Record<string, string>>> {
  return await waitFor('the end in the audit log', () => {
    const lines = readFileSync(scene.auditLogPath, 'utf8').split('\n').slice(0, -1)
    return lines
      .map((line) => JSON.parse(line))
      .find(({ stage, annotations }) => stage === 'ResponseComplete' && annotations['portcullis.io/session-protocol'])
      ?.annotations
  })
}

const SENT = Buffer.from('GET / HTTP/1.1\r\n\x1b]52;c;cm0gLXJmIC8=\x07\r\n')
const ANSWERED = SENT.map((byte) => byte ^ 0xff)

for (const [name, answer] of [
  ['websocket', ['Upgrade: websocket', 'Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io']],
  ['spdy', SPDY_ANSWER],
] as const) {
  test(`frames of kubectl: ${name}`, async () => {
    await start({ portForwards: 'InputAndOutput', whenFull: 'Block' })
    const client = await open(answer)
    await replay(client, PASSED[name])
    client.destroy()
    const file = await recording()
    assert.ok((await played(file, { connection: '1', sent: true })).bytes.equals(SENT))
    assert.ok((await played(file, { connection: '1' })).bytes.equals(ANSWERED))
    const { code, out, err } = await played(file, { text: true })
    assert.deepEqual(
      [code, out.split('\n').at(0), out.split('\n').at(-2)],
      [0, 'connection 1 to port 80 begins', 'connection 1 to port 80 ends'],
    )
    assert.match(out, /^1:80 > .*\\x1b\]52;c;/m)
    assert.match(err, /user alice, cluster prod\.example\.com, namespace shop, pod web-1, kind portforward/)
    const live = await played(file, {})
    assert.equal(live.out, out)
    assert.ok(!live.out.includes('\x1b'), 'nothing for a terminal, not even a reset')
    const [header = ''] = (await played(file, { cast: true })).out.split('\n')
    assert.equal(JSON.parse(header).portcullis.dataEncoding, 'latin1')
  })
}

test('frames of an older client: channels', async () => {
  await start({ portForwards: 'InputAndOutput', whenFull: 'Block' })
  const channels = ['Upgrade: websocket', 'Sec-WebSocket-Protocol: v4.channel.k8s.io']
  const client = await open(channels, '?ports=80&ports=81')
  await replay(client, PASSED.channels)
  client.destroy()
  const file = await recording()
  assert.equal((await played(file, { connection: '2', sent: true })).bytes.toString(), 'to 81')
  assert.match((await played(file, { text: true })).err, /ports 80,81/)
})

test('port-forwards are recorded only where that is asked for, and what clients send, too', async () => {
  await start({ record: 'InputAndOutput', whenFull: 'Block' })
  const unrecorded = await open()
  await replay(unrecorded, PASSED.spdy)
  unrecorded.destroy()
  assert.equal((await audited())['portcullis.io/session-recording'], undefined)
  assert.deepEqual(existsSync(scene.dir) ? readdirSync(scene.dir) : [], [])
  await scene.stop()
  await start({ portForwards: 'Output' })
  const client = await open()
  await replay(client, PASSED.spdy)
  client.destroy()
  const file = await recording()
  assert.equal((await played(file, { connection: '1', sent: true })).bytes.length, 0)
  assert.ok((await played(file, { connection: '1' })).bytes.equals(ANSWERED))
})

test('options of play that do not go together', async () => {
  await start({ portForwards: 'Output' })
  const client = await open()
  await replay(client, PASSED.spdy)
  client.destroy()
  const file = await recording()
  for (const [how, message] of [
    [{ connection: '2' }, /no connection 2/],
    [{ connection: '\x1b[2J' }, /no connection \\x1b\[2J/],
    [{ connection: '1', isTerminal: true }, /send its output to a file/],
    [{ connection: '1', text: true }, /give one of them/],
    [{ sent: true }, /--connection 1/],
  ] as const) {
    const { code, err, bytes } = await played(file, how)
    assert.deepEqual([code, bytes.length], [1, 0])
    assert.match(err, message)
  }
})

describe('hostile frames', () => {
  for (const [name, bytes, why] of [
    ['a stream number that is used again', OPENED, /cannot be read/],
    ['header fields that are not compressed', controlFrame(1, Buffer.alloc(40)), /cannot be unpacked/],
    ['header fields of 16 MiB', Buffer.from([0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff]), /too many header fields/],
    ['data of no stream', dataFrame(99, 'x'), /not opened/],
    ['another protocol', Buffer.from('GET / HTTP/1.1\r\n\r\n'), /cannot be read/],
    ['more than fits', dataFrame(DATA, randomBytes(60_000)), /--session-recording-max-bytes/],
  ] as const) {
    const settings = { sessionRecordingMaxBytes: 65_536 }

    test(`${name}: the session goes on, and the audit log says so`, async () => {
      await start({ portForwards: 'InputAndOutput' }, settings)
      const client = await open()
      client.send(Buffer.concat([OPENED, dataFrame(DATA, 'first')]))
      client.send(bytes)
      client.send('and goes on')
      await waitFor('it to arrive', () => upstream().received().includes('and goes on'))
      client.destroy()
      assert.match((await audited())['portcullis.io/session-recording-incomplete'] ?? '', why)
      const file = await recording()
      assert.equal((await played(file, { connection: '1', sent: true })).bytes.toString('latin1').slice(0, 5), 'first')
      assert.match((await played(file, { text: true })).err, /the recording ends here/)
    })

    test(`${name}: with Block the session ends`, async () => {
      await start({ portForwards: 'InputAndOutput', whenFull: 'Block' }, settings)
      const client = await open()
      client.send(OPENED)
      await waitFor('it to arrive', () => upstream().received().length > 0)
      client.send(bytes)
      await waitFor('both ends', () => upstream().closed() && client.raw.socket.destroyed)
      const told = await audited()
      assert.match(told['portcullis.io/session-recording-incomplete'] ?? '', why)
      assert.equal(told['portcullis.io/session-ended-by'], 'gateway')
    })
  }

  test('a protocol that is not known, and a directory that is full, are what they are for exec', async () => {
    await start({ portForwards: 'Output' })
    const other = await open(['Upgrade: websocket', 'Sec-WebSocket-Protocol: SPDY/3.1+v9.k8s.io'])
    other.destroy()
    assert.match((await audited())['portcullis.io/session-recording-incomplete'] ?? '', /not one that is recorded/)
    await scene.stop()
    await start({ portForwards: 'Output', whenFull: 'Block' }, { sessionRecordingDir: '', sessionRecordingKeyFile: '' })
    const client = await scene.connect()
    const target = '/api/v1/namespaces/shop/pods/web-1/portforward'
    client.send(requestHead(`POST ${target}`, ['Host: prod.example.com', 'Connection: Upgrade', 'Upgrade: SPDY/3.1']))
    const { status, body } = await client.response()
    assert.equal(status, 403)
    assert.match(body.toString(), /session-not-recorded|must be recorded/)
    client.destroy()
  })

  test('a frame of 16 MiB that is announced, and errors without end: the recording goes on', async () => {
    await start({ portForwards: 'InputAndOutput', whenFull: 'Block' })
    const client = await open()
    client.send(OPENED)
    await waitFor('it to arrive', () => upstream().received().length > 0)
    for (let at = 0; at < 100; at++) upstream().socket.write(dataFrame(ERRORS, 'x'.repeat(10_000)))
    const announced = Buffer.from([0, 0, 0, DATA, 0, 0xff, 0xff, 0xff])
    upstream().socket.write(Buffer.concat([announced, Buffer.from('some of it')]))
    await client.raw.until(/some of it$/)
    client.destroy()
    const file = await recording()
    assert.equal((await played(file, { connection: '1' })).bytes.toString(), 'some of it')
    assert.equal((await audited())['portcullis.io/session-recording-incomplete'], undefined)
  })
})
