// Other people's HTTP/2 clients against the gateway: nghttp2's h2load and nghttp, curl, node:http2, undici. (kubectl and
// kube-apiserver, on Go's implementation, are in e2e/.)

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Agent, request } from 'undici'
import { h2Connect, h2Request, valuesOf } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { endWithThisProcess } from '../harness/process.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'

const LIST = JSON.stringify({ kind: 'PodList', items: Array.from({ length: 100 }, (_, i) => ({ name: `pod-${i}` })) })
const UPLOAD = Buffer.alloc(10 * 1024 * 1024, 'upload')
/** node:http2's client keeps no more than 10 MB of what it was given to send. */
const HALF = UPLOAD.subarray(0, UPLOAD.length / 2)
const SUM = createHash('sha256').update(UPLOAD).digest('hex')

let stub: StubUpstream
let gateway: InProcessGateway
let url: string
let folder: string

before(async () => {
  stub = await startStub()
  gateway = await startInProcess([clusterObject([stub], { spec: { default: true } })])
  url = `https://127.0.0.1:${gateway.port}`
  folder = mkdtempSync(join(tmpdir(), 'portcullis-interop-'))
  writeFileSync(join(folder, 'upload'), UPLOAD)
})
after(async () => {
  await gateway.stop()
  await stub.stop()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  stub.seen.length = 0
  stub.answer = (request) => reply(request, 200, LIST)
})

/** Answers with the checksum of what was sent, and its trailers. */
function answerChecksum(seen: SeenRequest): void {
  const hash = createHash('sha256')
  let trailers: unknown
  seen.stream.on('data', (chunk: Buffer) => hash.update(chunk))
  seen.stream.on('trailers', (fields: unknown) => {
    trailers = fields
  })
  seen.stream.on('end', () => reply(seen, 200, JSON.stringify({ sum: hash.digest('hex'), trailers })))
}

interface Output {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program of the Debian packages nghttp2 and curl. */
function run(program: string, args: readonly string[]): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    endWithThisProcess(child)
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.once('error', (error) => {
      reject(new Error(`${program} cannot be run (install the packages nghttp2 and curl): ${error.message}`))
    })
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

describe('h2load', () => {
  const loads: [string, string[], number][] = [
    ['1 connection, 1 stream', ['-n', '500', '-c', '1', '-m', '1'], 500],
    ['10 connections, 100 streams each', ['-n', '5000', '-c', '10', '-m', '100'], 5_000],
    ['1 connection, 250 streams', ['-n', '2000', '-c', '1', '-m', '250'], 2_000],
    ['windows of 1 KiB on the stream', ['-n', '1000', '-c', '4', '-m', '20', '-w', '10'], 1_000],
    [
      'no dynamic table',
      ['-n', '500', '-c', '2', '-m', '20', '--header-table-size=0', '--encoder-header-table-size=0'],
      500,
    ],
    ['large frames', ['-n', '500', '-c', '2', '-m', '20', '-f', '256K'], 500],
  ]
  for (const [name, args, requests] of loads) {
    test(`${name}: every request gets 200, none is lost`, async () => {
      const { stdout, stderr } = await run('h2load', [...args, `${url}/api/v1/pods`])
      assert.match(stdout, new RegExp(`${requests} succeeded, 0 failed, 0 errored, 0 timeout`), stdout + stderr)
      assert.match(stdout, new RegExp(`status codes: ${requests} 2xx, 0 3xx, 0 4xx, 0 5xx`))
      assert.equal(stub.seen.length, requests)
    })
  }

  test('uploads of 64 KiB on 50 streams: each arrives whole', async () => {
    stub.answer = answerChecksum
    const file = join(folder, 'upload-64k')
    writeFileSync(file, UPLOAD.subarray(0, 65_536))
    const { stdout, stderr } = await run('h2load', [
      '-n',
      '500',
      '-c',
      '2',
      '-m',
      '50',
      '-d',
      file,
      `${url}/api/v1/pods`,
    ])
    assert.match(stdout, /status codes: 500 2xx, 0 3xx, 0 4xx, 0 5xx/, stdout + stderr)
  })
})

describe('nghttp', () => {
  test('GET, with the response checked by nghttp2', async () => {
    const { code, stdout, stderr } = await run('nghttp', ['-y', `${url}/api/v1/pods`])
    assert.equal(code, 0, stderr)
    assert.equal(stdout, LIST)
  })

  test('GET twenty times at once, with priorities', async () => {
    const { code, stderr } = await run('nghttp', ['-y', '-n', '-m', '20', '-p', '200', `${url}/api/v1/pods`])
    assert.equal(code, 0, stderr)
    assert.equal(stub.seen.length, 20)
  })

  for (const [name, args] of [
    ['content-length', []],
    ['no content-length, and trailers', ['--no-content-length', '--trailer', 'x-sum: 7']],
    ['padding', ['-b', '100']],
    ['Expect: 100-continue', ['--expect-continue']],
    ['heads in CONTINUATION frames', ['--continuation']],
  ] as const) {
    test(`POST of 10 MiB, ${name}: arrives whole`, async () => {
      stub.answer = (seen) => {
        // As Go's server does when the handler begins to read.
        if (seen.values('expect').length > 0) seen.stream.additionalHeaders({ ':status': 100 })
        answerChecksum(seen)
      }
      const command = ['-y', '-d', join(folder, 'upload'), ...args, `${url}/api/v1/namespaces/default/pods`]
      let { code, stdout, stderr } = await run('nghttp', command)
      // nghttp waits one second for 100, and prints nothing when that has passed, as it may on a busy machine: once more.
      if (name.startsWith('Expect') && stdout === '') ({ code, stdout, stderr } = await run('nghttp', command))
      assert.equal(code, 0, stderr)
      const answer = JSON.parse(stdout) as { sum: string; trailers?: Record<string, string> }
      assert.equal(answer.sum, SUM)
      assert.equal(answer.trailers, undefined, 'trailers of a request are left out')
    })
  }

  test('trailers of the answer', async () => {
    stub.answer = ({ stream }) => {
      stream.respond([':status', '200'], { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }))
      stream.end('body')
    }
    const { code, stdout } = await run('nghttp', ['-y', '-v', `${url}/api/v1/pods`])
    assert.equal(code, 0)
    assert.match(stdout, /x-sum: 7/)
  })
})

describe('curl --http2', () => {
  const curl = (...args: string[]): Promise<Output> => run('curl', ['--http2', '-sS', '-k', ...args])

  test('GET', async () => {
    const { code, stdout, stderr } = await curl('-w', '\n%{http_version} %{http_code}', `${url}/api/v1/pods`)
    assert.equal(code, 0, stderr)
    assert.equal(stdout, `${LIST}\n2 200`)
  })

  test('HEAD', async () => {
    stub.answer = ({ stream }) => stream.respond([':status', '200', 'content-length', '42'], { endStream: true })
    const { code, stdout, stderr } = await curl('-I', `${url}/api/v1/pods`)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /HTTP\/2 200/)
    assert.match(stdout, /content-length: 42/)
  })

  test('upload of 10 MiB, and the same back', async () => {
    stub.answer = (seen) => {
      seen.stream.respond([':status', '200'])
      seen.stream.pipe(seen.stream)
    }
    const back = join(folder, 'back')
    const { code, stderr } = await curl('--data-binary', `@${join(folder, 'upload')}`, '-o', back, `${url}/api/v1/pods`)
    assert.equal(code, 0, stderr)
    const { stdout } = await run('sha256sum', [back])
    assert.equal(stdout.split(' ')[0], SUM)
  })

  test('ten in parallel on one connection', async () => {
    const { code, stdout, stderr } = await curl('-Z', ...new Array<string>(10).fill(`${url}/api/v1/pods`))
    assert.equal(code, 0, stderr)
    assert.equal(stdout.length, 10 * LIST.length)
  })

  test('204 and 304 without a body', async () => {
    for (const status of ['204', '304']) {
      stub.answer = ({ stream }) => stream.respond([':status', status], { endStream: true })
      const { code, stdout, stderr } = await curl('-w', '%{http_code}', `${url}/api/v1/pods`)
      assert.equal(code, 0, stderr)
      assert.equal(stdout, status)
    }
  })
})

describe('libraries', () => {
  test('node:http2: 5 MiB both ways on one stream', async () => {
    stub.answer = (seen) => {
      seen.stream.respond([':status', '200'])
      seen.stream.pipe(seen.stream)
    }
    const session = h2Connect({ port: gateway.port })
    const answer = await h2Request(session, [':method', 'POST', ':authority', '127.0.0.1'], HALF)
    session.destroy()
    assert.equal(answer.status, 200)
    assert.equal(answer.resetCode, 0)
    assert.ok(answer.body.equals(HALF))
  })

  test('node:http2: 1,000 requests on one session', async () => {
    const session = h2Connect({ port: gateway.port })
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, () => h2Request(session, [':authority', '127.0.0.1'])),
    )
    session.destroy()
    assert.ok(answers.every(({ status, body, resetCode }) => status === 200 && resetCode === 0 && `${body}` === LIST))
    assert.ok(answers.every(({ head }) => valuesOf(head, 'content-type')[0] === 'application/json'))
  })

  test('undici: GETs and POSTs', async () => {
    const dispatcher = new Agent({ allowH2: true, connect: { rejectUnauthorized: false } })
    const read = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const { statusCode, body } = await request(`${url}/api/v1/pods`, { dispatcher })
        return statusCode === 200 && (await body.text()) === LIST
      }),
    )
    assert.ok(read.every(Boolean))
    stub.answer = answerChecksum
    const { body } = await request(`${url}/api/v1/pods`, { dispatcher, method: 'POST', body: UPLOAD })
    assert.equal(((await body.json()) as { sum: string }).sum, SUM)
    assert.ok(stub.seen.length === 201)
    await dispatcher.close()
  })
})
