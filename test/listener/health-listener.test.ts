// --health-listen: what probes, load balancers and Prometheus reach from other machines, who may read /metrics there, and that clients
// which send nothing, or too much, do not keep a probe out.

import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket, connect as tcpConnect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { Agent, type Dispatcher, request } from 'undici'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import type { Config } from '../../src/process/config/config.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { serverCertificate } from '../harness/pki.ts'
import { waitFor } from '../harness/wait.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0 }
/** Others reach it; the tests do not. */
const ANYWHERE = { host: '0.0.0.0', port: 0 }
const TOKEN = 'abc-._~+/123=='
const ca = createCA({ commonName: 'health' })
const trusting = new Agent({ connect: { ca: ca.certPem } })
let dir: string
let gateway: InProcessGateway | undefined

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-health-'))
})
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
  rmSync(dir, { recursive: true, force: true })
})

async function start(overrides: Partial<Config>): Promise<InProcessGateway> {
  gateway = await startInProcess([], { healthListen: LOOPBACK, ...overrides })
  return gateway
}

interface Answer {
  readonly code: number
  readonly text: string
  readonly headers: Readonly<Record<string, unknown>>
}

async function get(path: string, authorization = '', method: Dispatcher.HttpMethod = 'GET'): Promise<Answer> {
  const url = `http://127.0.0.1:${gateway?.healthPort ?? 0}${path}`
  const headers = authorization === '' ? {} : { authorization }
  const response = await request(url, { method, headers, reset: true })
  return { code: response.statusCode, text: await response.body.text(), headers: response.headers }
}

function write(name: string, text: string): string {
  const file = join(dir, name)
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
  return file
}

function writePair({ certPem, keyPem }: KeyPair): Partial<Config> {
  return { healthTlsCertFile: write('tls.crt', certPem), healthTlsPrivateKeyFile: write('tls.key', keyPem) }
}

describe('--health-listen', () => {
  test('shows three paths, and nothing else of the admin listener', async () => {
    await start({})
    for (const path of ['/livez', '/readyz'])
      assert.deepEqual([(await get(path)).code, (await get(path)).text], [200, 'ok'])
    assert.match(
      (await get('/readyz?verbose')).text,
      /^\[\+\]ping ok\n\[\+\]configuration ok\n(\[\+\].* ok\n)+readyz check passed\n$/,
    )
    assert.match((await get('/livez?verbose')).text, /livez check passed\n$/)
    assert.match((await get('/metrics')).text, /^portcullis_build_info\{/m)
    for (const path of ['/', '/healthz', '/debug/config', '/metrics/', '/api', '//readyz', '/%6detrics']) {
      assert.deepEqual(
        [(await get(path)).code, (await get(path)).text],
        [404, 'not found; paths: /livez /readyz /metrics\n'],
      )
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'HEAD'] as const) {
      for (const path of ['/readyz', '/metrics']) assert.equal((await get(path, '', method)).code, 405)
    }
  })

  test('to other machines, /metrics is not shown unless a setting says to which clients', async () => {
    await start({ healthListen: ANYWHERE })
    assert.equal((await get('/readyz')).code, 200)
    for (const authorization of ['', 'Bearer x']) {
      const { code, text } = await get('/metrics', authorization)
      assert.equal(code, 403)
      assert.match(text, /--metrics-token-file/)
      assert.doesNotMatch(text, /build_info/)
    }
  })

  test('is not opened without being asked for', async () => {
    assert.equal((await start({ healthListen: undefined })).healthPort, 0)
  })

  test('a port in use, and files that cannot be used, are one clear line', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', () => resolve()))
    const address = taken.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const healthListen = { host: '127.0.0.1', port }
    const message = `cannot listen on 127.0.0.1:${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`
    await assert.rejects(start({ healthListen }), {
      message,
      fix: 'another process uses it; stop that process, or choose another --health-listen',
    })
    taken.close()
    const missing = join(dir, 'missing')
    await assert.rejects(start({ metricsTokenFile: missing }), {
      message: /^cannot read --metrics-token-file .*missing/,
    })
    for (const text of ['', '\n', 'two words', 'ümlaut', 'a\nb']) {
      const metricsTokenFile = write('token', text)
      await assert.rejects(start({ metricsTokenFile }), { message: /holds no bearer token$/ }, JSON.stringify(text))
    }
    const pair = writePair(serverCertificate(ca, ['a'], []))
    await assert.rejects(start({ ...pair, healthTlsCertFile: missing }), {
      message: /^cannot read --health-tls-cert-file/,
    })
    const other = write('other.key', serverCertificate(ca, ['b'], []).keyPem)
    await assert.rejects(start({ ...pair, healthTlsPrivateKeyFile: other }), {
      message: /^--health-tls-private-key-file .* does not belong to/,
    })
  })
})

describe('--metrics-token-file', () => {
  test('/metrics needs the token, on a loopback address too; probes need none', async () => {
    for (const healthListen of [LOOPBACK, ANYWHERE]) {
      await start({ healthListen, metricsTokenFile: write('token', `${TOKEN}\n`) })
      const wrong = ['', TOKEN, `Basic ${TOKEN}`, 'Bearer', 'Bearer ', `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`]
      for (const authorization of wrong) {
        const { code, headers, text } = await get('/metrics', authorization)
        assert.deepEqual([code, headers['www-authenticate']], [401, 'Bearer'], authorization)
        assert.doesNotMatch(text, /build_info|abc/)
      }
      const { code, text } = await get('/metrics', `Bearer ${TOKEN}`)
      assert.equal(code, 200)
      assert.match(text, /^portcullis_build_info\{/m)
      assert.equal((await get('/livez')).code, 200)
      await gateway?.stop()
    }
  })

  test('a new token counts, the one before no longer; a file that cannot be used changes nothing', async () => {
    const running = await start({ metricsTokenFile: write('token', 'first') })
    const code = async (token: string): Promise<number> => (await get('/metrics', `Bearer ${token}`)).code
    assert.equal(await code('first'), 200)
    write('token', 'second')
    await waitFor('the new token', async () => (await code('second')) === 200)
    assert.equal(await code('first'), 401)
    write('token', '')
    const inForce = async (): Promise<string> =>
      /file_last_reload_successful\{file="metrics-token-file"\} (\d)/.exec(await running.metrics())?.[1] ?? ''
    await waitFor('the empty file to be seen', async () => (await inForce()) === '0')
    assert.deepEqual([await code('second'), await code('')], [200, 401])
    assert.ok(running.logged.some(({ message }) => message.includes('--metrics-token-file cannot be used')))
    write('token', 'third')
    await waitFor('the third token', async () => (await code('third')) === 200)
    assert.equal(await inForce(), '1')
  })
})

describe('--health-tls-cert-file', () => {
  const first = serverCertificate(ca, ['localhost', 'first'], ['127.0.0.1'])
  const second = serverCertificate(ca, ['localhost', 'second'], ['127.0.0.1'])

  async function secured(path: string): Promise<number> {
    const url = `https://127.0.0.1:${gateway?.healthPort ?? 0}${path}`
    const { statusCode, body } = await request(url, { dispatcher: trusting, reset: true })
    await body.dump()
    return statusCode
  }

  async function serial(): Promise<string> {
    const { socket } = await openRaw({ port: gateway?.healthPort ?? 0 })
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }

  test('TLS, and the certificate follows its files', async () => {
    const running = await start(writePair(first))
    assert.equal(await secured('/readyz'), 200)
    await assert.rejects(get('/readyz'))
    const before = await serial()
    writePair(second)
    await waitFor('the new certificate', async () => (await serial()) !== before)
    assert.equal(await secured('/metrics'), 200)
    assert.match(await running.metrics(), /certificate="health-serving"/)
    write('tls.crt', 'nothing')
    await waitFor('the broken file to be seen', async () =>
      /file="health-tls-cert-file"\} 0/.test(await running.metrics()),
    )
    assert.equal(await secured('/livez'), 200)
  })

  test('handshakes that do not come make room for a probe', async () => {
    await start(writePair(first))
    const silent = await openSilent(100)
    assert.equal(await secured('/livez'), 200)
    silent.destroy()
  })
})

interface Silent {
  closed(): number
  destroy(): void
}

async function openSilent(count: number, first = ''): Promise<Silent> {
  const sockets: Socket[] = []
  let closed = 0
  await Promise.all(
    Array.from({ length: count }, (_, i) => {
      // From five addresses, so that the limit of them all is met too.
      const socket = tcpConnect({
        host: '127.0.0.1',
        port: gateway?.healthPort ?? 0,
        localAddress: `127.0.0.${(i % 5) + 1}`,
      })
      sockets.push(socket)
      socket.on('error', () => undefined).on('close', () => closed++)
      socket.write(first)
      socket.resume()
      return new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()))
    }),
  )
  return { closed: () => closed, destroy: () => sockets.forEach((socket) => void socket.destroy()) }
}

describe('clients that mean no good', () => {
  test('silent connections and heads that never end give way to a probe, and are bounded', async () => {
    await start({})
    for (const begun of ['', 'GET /livez HTTP/1.1\r\nHost: a\r\nX-']) {
      const silent = await openSilent(600, begun)
      for (let i = 0; i < 10; i++) assert.equal((await get('/livez')).code, 200)
      await waitFor('all but those that are allowed to be closed', () => silent.closed() >= 600 - 256)
      silent.destroy()
    }
  })

  test('a head without end is refused', async () => {
    const { healthPort } = await start({})
    const socket = tcpConnect({ host: '127.0.0.1', port: healthPort })
    let text = ''
    const closed = new Promise<void>((resolve) => socket.on('error', () => undefined).once('close', () => resolve()))
    socket.on('data', (chunk) => {
      text += String(chunk)
    })
    socket.write(`GET /livez HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(70_000)}\r\n\r\n`)
    await closed
    assert.match(text, /^HTTP\/1\.1 431 /)
  })
})
