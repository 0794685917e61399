import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createCA, issueServingCertificate } from '../pki/io/pki.ts'
import { type ProbeOptions, probe } from './probe.ts'

interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function run(url: string, options: Partial<ProbeOptions> = {}): Promise<Result> {
  let stdout = ''
  let stderr = ''
  const code = await probe({
    url,
    insecureSkipTlsVerify: false,
    now: Date.now,
    pollMs: 5,
    out: (text) => {
      stdout += text
    },
    err: (text) => {
      stderr += text
    },
    ...options,
  })
  return { code, stdout, stderr }
}

async function listening<T extends Server>(
  server: T,
): Promise<{ port: number; [Symbol.asyncDispose](): Promise<void> }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function plain(listener: RequestListener): ReturnType<typeof listening> {
  return listening(createServer(listener))
}

test('2xx: the answer and 0; another: the answer as the error and 1', async () => {
  await using server = await plain((request, response) => {
    response.statusCode = request.url === '/readyz' ? 200 : 500
    response.end(request.url === '/readyz' ? 'ok' : '[-]threads failed: no gateway thread is running\n')
  })
  const url = `http://127.0.0.1:${server.port}`
  assert.deepEqual(await run(`${url}/readyz`), { code: 0, stdout: 'ok\n', stderr: '' })
  assert.deepEqual(await run(`${url}/livez`), {
    code: 1,
    stdout: '',
    stderr: `error: ${url}/livez: 500\n[-]threads failed: no gateway thread is running\n`,
  })
})

test('a redirect is not followed', async () => {
  let asked = 0
  await using server = await plain((_, response) => {
    asked++
    response.writeHead(302, { location: '/ok' }).end()
  })
  const { code, stderr } = await run(`http://127.0.0.1:${server.port}/readyz`)
  assert.deepEqual([code, asked], [1, 1])
  assert.match(stderr, /: 302\n$/)
})

test('nothing listens: one line; --wait waits for a listener', async () => {
  const server = createServer((_, response) => response.end('ok'))
  const first = await listening(server)
  const url = `http://127.0.0.1:${first.port}/readyz`
  await first[Symbol.asyncDispose]()
  const refused = await run(url)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /^error: \S+: connect ECONNREFUSED \S+\n$/)

  let attempts = 0
  const again = createServer((_, response) => {
    response.statusCode = ++attempts < 3 ? 500 : 200
    response.end('x')
  })
  const waiting = run(url, { wait: '60s' })
  await new Promise<void>((resolve) => again.listen(first.port, '127.0.0.1', resolve))
  assert.equal((await waiting).code, 0)
  assert.equal(attempts, 3)
  again.closeAllConnections()
  again.close()
})

test('what is never ready: 1 after --wait, which the error names', async () => {
  await using server = await plain((_, response) => response.writeHead(500).end('no\n'))
  let clock = 0
  const now = (): number => {
    clock += 60_000
    return clock
  }
  const { code, stderr } = await run(`http://127.0.0.1:${server.port}/readyz`, { wait: '10m', now })
  assert.equal(code, 1)
  assert.match(stderr, /\/readyz after 10m: 500\nno\n$/)
})

test('an answer that does not end, or has no end: 1, and no more than 64 KiB of it', async () => {
  await using silent = await plain(() => undefined)
  const none = await run(`http://127.0.0.1:${silent.port}/readyz`, { timeout: '50ms' })
  assert.match(none.stderr, /: no answer within 0\.05 s\n$/)
  await using endless = await plain((_, response) => {
    response.writeHead(500)
    const more = (): void => {
      while (response.write(Buffer.alloc(16384, 'x')));
    }
    response.on('drain', more)
    more()
  })
  const { code, stderr } = await run(`http://127.0.0.1:${endless.port}/readyz`)
  assert.equal(code, 1)
  assert.ok(stderr.length < 66_000, String(stderr.length))
})

test('TLS: a CA that signed it, none, or none wanted', async () => {
  const ca = createCA({ commonName: 'health' })
  const { certPem, keyPem } = issueServingCertificate(ca, ['127.0.0.1'])
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-probe-'))
  const caFile = join(dir, 'ca.crt')
  writeFileSync(caFile, ca.certPem)
  await using server = await listening(
    createTlsServer({ cert: certPem, key: keyPem }, (_, response) => response.end('ok')) as unknown as Server,
  )
  const url = `https://127.0.0.1:${server.port}/readyz`
  try {
    assert.equal((await run(url, { caFile })).code, 0)
    assert.equal((await run(url, { insecureSkipTlsVerify: true })).code, 0)
    const unknown = await run(url)
    assert.equal(unknown.code, 1)
    assert.match(unknown.stderr, /certificate/)
    await assert.rejects(run(url, { caFile: join(dir, 'missing.crt') }), /cannot read .*missing\.crt/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

for (const url of ['localhost:9090/readyz', 'file:///etc/passwd', '/readyz', '']) {
  test(`${JSON.stringify(url)} is not a URL that can be probed`, async () => {
    await assert.rejects(run(url), /is not an http or https URL/)
  })
}
