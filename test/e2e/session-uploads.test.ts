// Recordings on their way to a real S3 server, by a gateway that is killed, refused, and told other credentials.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { playCommand } from '../../src/sessions/cli/play.ts'
import { castEvent } from '../../src/sessions/core/recording/asciicast.ts'
import { RecordingFile } from '../../src/sessions/io/recording-file.ts'
import { S3Bucket } from '../../src/sessions/io/s3-bucket.ts'
import { parseCredentials } from '../../src/sessions/io/s3-files.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { gatewayCA, serverCertificate } from '../harness/pki.ts'
import { S3_CREDENTIALS, S3_SECRET, type S3Server, startS3Server } from '../harness/servers/s3-server.ts'
import { waitFor } from '../harness/wait.ts'

const folder = mkdtempSync(join(tmpdir(), 'session-uploads-'))
const key = randomBytes(32)
const keyFile = join(folder, 'sessions.key')
writeFileSync(keyFile, `${key.toString('base64')}\n`)
const caFile = join(folder, 'ca.crt')
const REGION = 'eu-test-1'

let server: S3Server
let gateway: TestGateway | undefined
let dir = ''
let credentialsFile = ''
let bucket = ''
let runs = 0

before(async () => {
  const { certPem: cert, keyPem } = serverCertificate(gatewayCA(), ['localhost'], ['127.0.0.1'])
  writeFileSync(caFile, gatewayCA().certPem)
  server = await startS3Server({ cert, key: keyPem })
})
after(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  dir = mkdtempSync(join(folder, 'spool-'))
  bucket = `audit-${++runs}`
  credentialsFile = join(folder, `credentials-${runs}`)
  writeFileSync(credentialsFile, S3_CREDENTIALS)
})
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

async function start(endpoint = server.url, args: readonly string[] = []): Promise<TestGateway> {
  gateway = await startGateway({
    clusters: [],
    args: [
      `--session-recording-dir=${dir}`,
      `--session-recording-key-file=${keyFile}`,
      `--session-recording-s3-endpoint=${endpoint}`,
      `--session-recording-s3-bucket=${bucket}`,
      '--session-recording-s3-prefix=prod/sessions',
      `--session-recording-s3-region=${REGION}`,
      `--session-recording-s3-credentials-file=${credentialsFile}`,
      `--session-recording-s3-ca-file=${caFile}`,
      ...args,
    ],
  })
  return gateway
}

/** A recording that shows this. @returns its name */
async function record(text: string, second = 1): Promise<string> {
  const name = `20260102T0304${String(second).padStart(2, '0')}Z_prod_0ff_6d1f0b1c-0000-4000-8000-000000000000.session`
  await new Promise<void>((resolve, reject) => {
    const onFailed = (why: string): void => reject(new Error(why))
    const file = new RecordingFile({
      path: join(dir, name),
      key,
      onDrained: () => undefined,
      onFailed,
      onClosed: resolve,
    })
    const lines = [`{"version":2,"portcullis":{}}\n`, castEvent(0, 'o', text)]
    for (const line of lines) file.add(line, Buffer.byteLength(line))
    file.end(false)
  })
  return name
}

async function shown(name: string): Promise<string> {
  const file = join(folder, 'object.session')
  writeFileSync(file, server.object(bucket, `prod/sessions/2026/01/02/${name}`))
  let shownText = ''
  const code = await playCommand({
    ...{ file, keyFile, speed: '1', idleLimit: '0s', cast: false, text: true },
    out: (text) => {
      shownText += text
    },
    err: () => undefined,
    outBytes: () => undefined,
    terminal: { columns: () => undefined, interrupted: () => new AbortController().signal },
  })
  assert.equal(code, 0)
  return shownText
}

const uploaded = (name: string): Promise<boolean> =>
  waitFor(
    `${name} in the bucket`,
    () => server.objects(bucket).some((one) => one.endsWith(name)) && !existsSync(join(dir, name)),
  )

test('recordings that wait are in the bucket, whole, and play from there', async () => {
  server.makeBucket(bucket)
  const large = Array.from({ length: 400_000 }, (_, at) => `line ${at} ä漢😀\n`).join('')
  const [first, second] = [await record('hello\n'), await record(large, 2)]
  const running = await start()
  await uploaded(first)
  await uploaded(second)
  assert.equal(await shown(first), 'hello\n')
  assert.equal(await shown(second), large)
  assert.deepEqual(
    server.objects(bucket),
    [first, second].map((name) => `prod/sessions/2026/01/02/${name}`),
  )
  await waitFor('the metrics', async () => {
    const metrics = await running.metrics()
    return (
      /^portcullis_session_recording_uploads_total\{result="uploaded"\} 2$/m.test(metrics) &&
      /^portcullis_session_recording_upload_oldest_seconds 0$/m.test(metrics) &&
      /^portcullis_session_recording_dir_bytes 0$/m.test(metrics)
    )
  })
})

test('with wrong credentials, and without the bucket, they wait; the gateway says why, and takes the right ones without a restart', async () => {
  const name = await record('waits\n')
  writeFileSync(credentialsFile, S3_CREDENTIALS.replace(S3_SECRET, 'wrong'))
  const running = await start()
  await waitFor('the refusal', () =>
    /SignatureDoesNotMatch.*--session-recording-s3-credentials-file/.test(running.logs()),
  )
  assert.ok(existsSync(join(dir, name)))
  writeFileSync(credentialsFile, S3_CREDENTIALS)
  const state = async (): Promise<string> => (await running.admin('/debug/config')).text
  await waitFor('the missing bucket', async () => /NoSuchBucket/.test(await state()))
  assert.match(await running.metrics(), /^portcullis_session_recording_uploads_total\{result="failed"\} [1-9]/m)
  server.makeBucket(bucket)
  // A file that is written anew is a reason to try at once.
  writeFileSync(credentialsFile, `${S3_CREDENTIALS}\n`)
  await uploaded(name)
  assert.equal(await shown(name), 'waits\n')
  assert.doesNotMatch(`${running.logs()}${await state()}`, new RegExp(S3_SECRET.slice(0, 8)))
})

test('a gateway that is killed in the middle leaves no torn object, and the next one goes on', async () => {
  server.makeBucket(bucket)
  const text = randomBytes(4 * 1024 * 1024).toString('base64')
  const name = await record(text)
  const bytes = readFileSync(join(dir, name))
  const port = Number(new URL(server.url).port)
  const stopped = Promise.withResolvers<void>()
  const slow = await stuttering(port, 1_000_000, stopped.resolve)
  const address = slow.address()
  assert.ok(typeof address === 'object' && address !== null)
  const running = await start(`https://127.0.0.1:${address.port}`)
  await stopped.promise
  await running.stop('SIGKILL')
  slow.close()
  assert.deepEqual(server.objects(bucket), [])
  assert.deepEqual(readFileSync(join(dir, name)), bytes)
  await start()
  await uploaded(name)
  assert.deepEqual(server.object(bucket, `prod/sessions/2026/01/02/${name}`), bytes)
})

/** Passes connections on, and after so many bytes of a client nothing any more. */
function stuttering(onwardPort: number, most: number, onStopped: () => void): Promise<Server> {
  const passing = createServer((socket) => {
    const onward = connect(onwardPort, '127.0.0.1')
    const end = (): void => {
      socket.destroy()
      onward.destroy()
    }
    for (const one of [socket, onward]) one.once('error', end).once('close', end)
    onward.pipe(socket)
    let passed = 0
    socket.on('data', (chunk: Buffer) => {
      passed += chunk.length
      if (passed < most) onward.write(chunk)
      else {
        socket.pause()
        onStopped()
      }
    })
  })
  return new Promise((resolve) => void passing.listen(0, '127.0.0.1', () => resolve(passing)))
}

test('a clock that is wrong is what is said; the same again is no error', async () => {
  server.makeBucket(bucket)
  mkdirSync(dir, { recursive: true })
  const file = join(dir, await record('twice\n'))
  const credentials = parseCredentials(S3_CREDENTIALS)
  assert.ok(credentials)
  let aheadMs = 3_600_000
  const store = new S3Bucket({
    url: `${server.url}/${bucket}`,
    region: REGION,
    files: { credentials, ca: gatewayCA().certPem },
    clock: { now: () => Date.now() + aheadMs },
  })
  const { signal } = new AbortController()
  const late = await store.put(file, 'one', signal)
  assert.equal(late.kind, 'failed')
  assert.match(JSON.stringify(late), /RequestTimeTooSkewed.*set the clock/)
  aheadMs = 0
  for (let time = 0; time < 2; time++) assert.deepEqual(await store.put(file, 'one', signal), { kind: 'stored' })
  assert.deepEqual(server.objects(bucket), ['one'])
  await store.stop()
})

test('while the store is away, recordings wait, and metrics say for how long', async () => {
  const names = [await record('one\n'), await record('two\n', 2)]
  const running = await start('https://127.0.0.1:1')
  await waitFor('the age', async () => {
    const metrics = await running.metrics()
    return (
      /^portcullis_session_recording_uploads_total\{result="failed"\} [1-9]/m.test(metrics) &&
      /^portcullis_session_recording_upload_oldest_seconds [1-9]/m.test(metrics)
    )
  })
  assert.deepEqual(readdirSync(dir), names)
})
