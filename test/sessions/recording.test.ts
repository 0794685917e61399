// Recordings of sessions through a whole gateway, in front of an upstream of which the test writes every byte.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Config } from '../../src/process/config/config.ts'
import { requestHead } from '../harness/clients/http1-client.ts'
import { type S3Stub, startS3Stub } from '../harness/servers/s3-stub.ts'
import { type Played, type PlayOptions, playRecording } from '../harness/sessions/play.ts'
import { recordingGateway, type SessionClient } from '../harness/sessions/recording-gateway.ts'
import { waitFor } from '../harness/wait.ts'

const scene = recordingGateway()
const { keyFile, start } = scene
const SUCCESS = '{"metadata":{},"status":"Success"}'

interface Session {
  readonly client: SessionClient
  readonly status: number
  readonly message: string
}

async function open(
  path = 'pods/web-1/exec?container=c&command=sh',
  fields: readonly string[] = ['Sec-WebSocket-Protocol: v5.channel.k8s.io'],
): Promise<Session> {
  scene.stub.answerUpgrade = ({ socket }) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${fields.map((one) => `${one}\r\n`).join('')}\r\n`,
    )
  }
  const client = await scene.connect()
  const secrets = ['Authorization: Basic c2VjcmV0', 'Cookie: secret']
  const target = path.startsWith('/') ? path : `/api/v1/namespaces/shop/${path}`
  client.send(
    requestHead(`GET ${target}`, [
      'Host: prod.example.com',
      'Connection: Upgrade',
      'Upgrade: websocket',
      ...secrets.slice(1),
    ]),
  )
  const answer = await client.response()
  const isStatus = answer.status !== 101 && answer.body.length > 0
  return { client, status: answer.status, message: isStatus ? String(JSON.parse(answer.body.toString()).message) : '' }
}

function frame(channel: number, text: string | Buffer, isClient = false): Buffer {
  const payload = Buffer.concat([Buffer.from([channel]), Buffer.from(text)])
  const { length } = payload
  const masked = isClient ? 0x80 : 0
  const size = length < 126 ? [length | masked] : [126 | masked, length >> 8, length & 255]
  const mask = isClient ? [9, 8, 7, 6] : []
  return Buffer.concat([
    Buffer.from([0x82, ...size, ...mask]),
    isClient ? payload.map((byte, at) => byte ^ (mask[at & 3] ?? 0)) : payload,
  ])
}

const upstream = (): (typeof scene.stub.upgrades)[number] => {
  const found = scene.stub.upgrades.at(-1)
  assert.ok(found)
  return found
}

async function files(suffix = '.session', count = 1): Promise<string[]> {
  return await waitFor(`${count} files that end in ${suffix}`, () => {
    const found = readdirSync(scene.dir).filter((name) => name.endsWith(suffix))
    return found.length >= count && found.map((name) => join(scene.dir, name))
  })
}

async function played(file: string, how: Partial<PlayOptions> = {}): Promise<Played> {
  return await playRecording(file, { keyFile, text: true, ...how })
}

/** What the audit log says of the recording of the only session. */
async function audited(): Promise<Readonly<Record<string, string>>> {
  return await waitFor('the end in the audit log', () => {
    const lines = readFileSync(scene.auditLogPath, 'utf8').split('\n').slice(0, -1)
    const end = lines
      .map((line) => JSON.parse(line))
      .find(({ stage, annotations }) => {
        return stage === 'ResponseComplete' && annotations['portcullis.io/session-protocol'] !== undefined
      })
    return end?.annotations
  })
}

test('a session becomes an asciicast that only the key opens', async () => {
  await start({})
  const { client } = await open()
  client.send(frame(4, '{"Width":100,"Height":30}', true))
  client.send(frame(0, 'typed secret\n', true))
  await waitFor('the input to arrive', () => upstream().received().length > 40)
  upstream().socket.write(frame(1, '\x1b[1mhello\x1b[0m \xf0\x9f').subarray())
  upstream().socket.write(Buffer.concat([frame(2, 'error\r\n'), frame(3, SUCCESS)]))
  await client.raw.until(/Success/)
  client.destroy()
  const [file = ''] = await files()
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(statSync(scene.dir).mode & 0o777, 0o700)
  for (const text of ['hello', 'alice', 'web-1']) assert.ok(!readFileSync(file).includes(text))
  const { code, out, err } = await played(file)
  assert.equal(code, 0, err)
  assert.match(out, /^hello .*error\n/)
  assert.match(err, /user alice, cluster prod\.example\.com, namespace shop, pod web-1, container c, kind exec/)
  assert.match(err, /ended: success/)
  const cast = (await played(file, { text: false, cast: true })).out.split('\n').filter((line) => line !== '')
  const [header, ...events] = cast.map((line) => JSON.parse(line))
  assert.deepEqual([header.version, header.title], [2, 'shop/web-1'])
  assert.deepEqual(Object.keys(header.portcullis).sort(), [
    'auditId',
    'cluster',
    'command',
    'container',
    'groups',
    'impersonator',
    'input',
    'kind',
    'namespace',
    'pod',
    'protocol',
    'remoteAddress',
    'startMs',
    'user',
  ])
  assert.deepEqual(
    events.map(([, event]) => event),
    ['r', 'o', 'o', 'm'],
  )
  assert.equal(events[0][2], '100x30')
  assert.ok(!cast.join('\n').includes('secret'), 'neither input nor credentials')
  const told = await audited()
  assert.equal(told['portcullis.io/session-outcome'], 'success')
  assert.equal(told['portcullis.io/session-recording'], file.split('/').at(-1))
  assert.equal(told['portcullis.io/session-recording-incomplete'], undefined)
  const other = join(scene.folder, 'other.key')
  writeFileSync(other, `${randomBytes(32).toString('base64')}\n`)
  const wrong = await played(file, { keyFile: other })
  assert.deepEqual([wrong.code, wrong.out], [1, ''])
})

test('input is recorded if asked for', async () => {
  await start({ record: 'InputAndOutput' })
  const { client } = await open()
  client.send(frame(0, 'typed\n', true))
  await waitFor('the input to arrive', () => upstream().received().length > 8)
  client.destroy()
  const [file = ''] = await files()
  const { out } = await played(file, { text: false, cast: true })
  assert.match(out, /,"i","typed\\n"\]/)
  assert.equal((await played(file)).out, '', 'it is not shown as if it had been printed')
})

test('what a program printed for the terminal does nothing to the one it is played on', async () => {
  await start({})
  const { client } = await open()
  const evil = 'a\x1b]52;c;cm0gLXJmIC8=\x07b\x1b]0;title\x07\x1b[21t\x1b[6nc\x1b[?1000h\r\n'
  upstream().socket.write(frame(1, evil))
  await client.raw.until(/1000h/)
  client.destroy()
  const [file = ''] = await files()
  const live = await played(file, { text: false })
  assert.ok(live.out.startsWith('abc\r\n'), JSON.stringify(live.out))
  assert.equal((await played(file)).out, 'abc\n')
})

test('a gateway that is killed leaves a file that plays up to there', async () => {
  await start({})
  const { client } = await open()
  upstream().socket.write(frame(1, 'before the end'))
  const [part = ''] = await files('.part')
  await waitFor('what was printed to be on disk', async () => (await played(part)).out === 'before the end')
  const { code, err } = await played(part)
  assert.equal(code, 1)
  assert.match(err, /ends here/)
  client.destroy()
})

describe('what cannot be recorded', () => {
  for (const [name, bytes, why] of [
    ['a malformed stream', Buffer.from([0xf2, 1, 1]), /cannot be read: a frame with reserved bits/],
    ['more than fits', frame(1, 'x'.repeat(60_000)), /--session-recording-max-bytes/],
  ] as const) {
    const settings = { sessionRecordingMaxBytes: 50_000 }

    test(`${name}: the session goes on, and the audit log says so`, async () => {
      await start({}, settings)
      const { client } = await open()
      upstream().socket.write(frame(1, 'first'))
      upstream().socket.write(bytes)
      upstream().socket.write('and goes on')
      await client.raw.until(/and goes on$/)
      client.destroy()
      const told = await audited()
      assert.match(told['portcullis.io/session-recording-incomplete'] ?? '', why)
      const [file = ''] = await files()
      const { code, out, err } = await played(file)
      assert.deepEqual([code, out.slice(0, 5)], [0, 'first'])
      assert.match(err, /the recording ends here/)
    })

    test(`${name}: with Block the session ends, and upstream's end, too`, async () => {
      await start({ whenFull: 'Block' }, settings)
      const { client } = await open()
      upstream().socket.write(frame(1, 'first'))
      await client.raw.until(/first/)
      upstream().socket.write(bytes)
      await waitFor('both ends', () => upstream().closed() && client.raw.socket.destroyed)
      const told = await audited()
      assert.match(told['portcullis.io/session-recording-incomplete'] ?? '', why)
      assert.equal(told['portcullis.io/session-ended-by'], 'gateway')
      const { out } = await played((await files())[0] ?? '')
      const passed = client.raw.text().split('x').length
      assert.ok(passed <= out.split('x').length && passed < 60_000, 'nothing passes that is not recorded')
    })
  }

  test('a directory that is full', async () => {
    await start({}, { sessionRecordingMaxDirBytes: 10_000 })
    writeFileSync(join(scene.dir, 'other'), 'x'.repeat(20_000))
    await scene.stop()
    await start({}, { sessionRecordingMaxDirBytes: 10_000 })
    const { client, status } = await open()
    assert.equal(status, 101)
    client.destroy()
    assert.match((await audited())['portcullis.io/session-recording-incomplete'] ?? '', /is full/)
    await scene.stop()
    await start({ whenFull: 'Block' }, { sessionRecordingMaxDirBytes: 10_000 })
    const refused = await open()
    assert.equal(refused.status, 403)
    assert.match(refused.message, /must be recorded .* directory of recordings is full/)
    assert.equal(scene.stub.upgrades.length, 1, 'it was not sent')
  })

  test('a directory with less room than the header of the recording needs', async () => {
    const settings = { sessionRecordingMaxDirBytes: 10_000 }
    await start({}, settings)
    writeFileSync(join(scene.dir, 'other'), 'x'.repeat(7500))
    await scene.stop()
    await start({ whenFull: 'Block' }, settings)
    const refused = await open(`pods/web-1/exec?command=${'x'.repeat(4000)}`)
    assert.equal(refused.status, 403)
    assert.match(refused.message, /must be recorded .* directory of recordings is full/)
    await waitFor('upstream to hear of it', () => upstream().closed())
    assert.deepEqual(readdirSync(scene.dir), ['other'])
  })

  test('without a directory, by another protocol, and through the proxy of a node', async () => {
    await start({ whenFull: 'Block' }, { sessionRecordingDir: '', sessionRecordingKeyFile: '' })
    const nowhere = await open()
    assert.equal(nowhere.status, 403)
    assert.match(nowhere.message, /--session-recording-dir/)
    await scene.stop()
    await start({ whenFull: 'Block' })
    const other = await open(undefined, ['Sec-WebSocket-Protocol: v9.channel.k8s.io'])
    assert.equal(other.status, 403)
    assert.match(other.message, /websocket v9\.channel\.k8s\.io/)
    await waitFor('upstream to hear of it', () => upstream().closed())
    const kubelet = await open('/api/v1/nodes/n/proxy/exec/shop/web-1/c?command=sh')
    assert.equal(kubelet.status, 403)
    assert.match(
      await scene.metrics(),
      /portcullis_session_recordings_total\{cluster="prod.example.com",result="refused"\} 2/,
    )
    // Not a terminal.
    const forward = await open('pods/web-1/portforward')
    assert.equal(forward.status, 101)
    forward.client.destroy()
  })

  test('a disk that breaks', async () => {
    await start({ whenFull: 'Block' })
    rmSync(scene.dir, { recursive: true })
    const { client, status } = await open()
    assert.equal(status, 101)
    await waitFor('the session to end', () => client.raw.socket.destroyed)
    assert.match((await audited())['portcullis.io/session-recording-incomplete'] ?? '', /cannot be written: ENOENT/)
  })
})

test('a frame of a gigabyte that is announced: the session and the recording go on', async () => {
  await start({ whenFull: 'Block' })
  const { client } = await open()
  const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0x40, 0, 0, 0, 1])
  upstream().socket.write(Buffer.concat([head, Buffer.from('some of it')]))
  await client.raw.until(/some of it$/)
  client.destroy()
  const [file = ''] = await files()
  assert.equal((await played(file)).out, 'some of it\n')
})

test('with Block, everything that passes a slow disk is recorded', async () => {
  await start({ whenFull: 'Block' })
  const { client } = await open()
  const line = 'x'.repeat(1000)
  const many = 3000
  for (let at = 0; at < many; at++) upstream().socket.write(frame(1, `${at} ${line}\n`))
  upstream().socket.write(frame(3, SUCCESS))
  await client.raw.until(/Success/)
  client.destroy()
  const [file = ''] = await files()
  const { code, out } = await played(file)
  assert.equal(code, 0)
  assert.deepEqual(
    out
      .trimEnd()
      .split('\n')
      .map((text) => text.split(' ', 1)[0]),
    Array.from({ length: many }, (_, at) => String(at)),
  )
})

test('a gateway that stops ends its recordings', async () => {
  await start({})
  await open()
  upstream().socket.write(frame(1, 'shown'))
  await files('.part')
  await scene.stop()
  const [file = ''] = await files()
  const { code, out, err } = await played(file)
  assert.deepEqual([code, out], [0, 'shown\n'])
  assert.match(err, /ended by the gateway/)
})

describe('with a bucket', () => {
  let bucket: S3Stub
  let settings: Partial<Config> = {}

  beforeEach(async () => {
    bucket = await startS3Stub()
    const credentialsFile = join(scene.folder, 'credentials')
    writeFileSync(credentialsFile, '[default]\naws_access_key_id = ID\naws_secret_access_key = KEY\n')
    settings = {
      sessionRecordingS3Endpoint: `${bucket.url}/`,
      sessionRecordingS3Bucket: 'audit',
      sessionRecordingS3CredentialsFile: credentialsFile,
    }
  })
  afterEach(() => bucket.stop())

  /** Plays the object. */
  const fromBucket = async (name: string): Promise<string> => {
    const found = [...bucket.objects].find(([path]) => path.endsWith(`/${name}`))
    assert.match(
      found?.[0] ?? '',
      /^\/audit\/\d{4}\/\d\d\/\d\d\/\d{8}T\d{6}Z_prod\.example\.com_[0-9a-f]{3}_[0-9a-f-]{36}\.session$/,
    )
    const file = join(scene.folder, 'from-bucket.session')
    writeFileSync(file, found?.[1].body ?? '')
    const { code, out } = await played(file)
    assert.equal(code, 0)
    return out
  }

  test('a recording is moved there under the name that the audit log has', async () => {
    await start({}, { ...settings, threads: 2 })
    const { client } = await open()
    upstream().socket.write(frame(1, 'shown'))
    await client.raw.until(/shown/)
    client.destroy()
    const name = (await audited())['portcullis.io/session-recording'] ?? ''
    await waitFor('it to be moved', () => bucket.objects.size === 1 && readdirSync(scene.dir).length === 0)
    assert.equal(await fromBucket(name), 'shown\n')
  })

  test('one that ends with the gateway is moved before the gateway has ended', async () => {
    await start({}, settings)
    await open()
    upstream().socket.write(frame(1, 'to the end'))
    await files('.part')
    await scene.stop()
    assert.deepEqual(readdirSync(scene.dir), [])
    const [path = ''] = bucket.objects.keys()
    assert.equal(await fromBucket(path.split('/').at(-1) ?? ''), 'to the end\n')
  })

  test('while it is away, the directory fills up, and whenFull decides; once it is back, there is room', async () => {
    bucket.answer = (_, response) => void response.writeHead(503).end()
    const small = { ...settings, sessionRecordingMaxDirBytes: 10_000 }
    await start({ whenFull: 'Block' }, small)
    const { client } = await open()
    upstream().socket.write(frame(1, 'x'.repeat(7_000)))
    await client.raw.until(/x{7000}/)
    client.destroy()
    await files()
    const refused = await open(`pods/web-1/exec?command=${'x'.repeat(4000)}`)
    assert.equal(refused.status, 403)
    assert.match(refused.message, /directory of recordings is full/)
    await scene.stop()
    bucket.answer = bucket.store
    await start({ whenFull: 'Block' }, small)
    await waitFor('it to be moved', () => readdirSync(scene.dir).length === 0)
    // The directory is looked through from time to time.
    await waitFor('room', async () => {
      const again = await open(`pods/web-1/exec?command=${'x'.repeat(4000)}`)
      again.client.destroy()
      return again.status === 101
    })
  })
})
