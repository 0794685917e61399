import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { KubeHttp } from '../../kube/io/client-http.ts'
import { expositionText } from './exposition.ts'
import { createProcessMetrics } from './process-metrics.ts'

async function serverWith(t: TestContext, listener: RequestListener): Promise<{ http: KubeHttp; read: Read }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const tls = { ca: '', cert: '', key: '', serverName: '', insecure: false }
  const access = { server: url, proxyUrl: '', tls, headers: {} }
  const metrics = createProcessMetrics(() => 0)
  const source = { server: url, access: () => Promise.resolve(access), renew: () => false }
  const http = new KubeHttp(source, 10_000, metrics.calls)
  t.after(async () => {
    await http.close()
    server.close()
  })
  const host = new URL(url).host
  const read: Read = async (name, labels = '') => {
    const start = `portcullis_kube_client_${name}{${labels}${labels === '' ? '' : ','}host="${host}"} `
    const line = (await expositionText(metrics.expose)).split('\n').find((each) => each.startsWith(start))
    return line === undefined ? undefined : Number(line.slice(start.length))
  }
  return { http, read }
}

type Read = (name: string, labels?: string) => Promise<number | undefined>

test('calls are counted by method and code, with the bytes that they send and get', async (t) => {
  const { http, read } = await serverWith(t, (request, response) => {
    response.writeHead(request.method === 'POST' ? 201 : 404, { 'content-type': 'application/json' })
    response.end(request.method === 'POST' ? '{"a":"€"}' : '{"kind":"Status","code":404,"reason":"NotFound"}')
  })
  await http.call({ method: 'POST', path: '/x', body: { b: '€' } })
  await assert.rejects(http.call({ method: 'GET', path: '/x' }))
  assert.equal(await read('requests_total', 'code="201",method="POST"'), 1)
  assert.equal(await read('requests_total', 'code="404",method="GET"'), 1)
  assert.equal(await read('request_duration_seconds_count', 'verb="GET"'), 1)
  assert.equal(await read('request_size_bytes_sum', 'verb="POST"'), 11)
  assert.equal(await read('response_size_bytes_sum', 'verb="POST"'), 11)
})

test('a call repeated after Retry-After is two attempts of one call', async (t) => {
  let asked = 0
  const { http, read } = await serverWith(t, (_, response) => {
    const busy = asked++ === 0
    response.writeHead(busy ? 429 : 200, busy ? { 'retry-after': '1' } : {})
    response.end('{}')
  })
  await http.call({ method: 'GET', path: '/x' })
  assert.equal(await read('request_retries_total', 'code="429",verb="GET"'), 1)
  assert.equal(await read('requests_total', 'code="429",method="GET"'), 1)
  assert.equal(await read('requests_total', 'code="200",method="GET"'), 1)
})

test('no answer is an attempt, too', async (t) => {
  const { http, read } = await serverWith(t, (request) => void request.socket.destroy())
  await assert.rejects(http.call({ method: 'POST', path: '/x', body: {} }), /no answer/)
  assert.equal(await read('requests_total', 'code="<error>",method="POST"'), 1)
  assert.equal(await read('request_duration_seconds_count', 'verb="POST"'), undefined)
})

test('a watch is a call that has its answer with the head', async (t) => {
  const { http, read } = await serverWith(t, (_, response) => void response.end('{"type":"BOOKMARK"}\n'))
  const chunks: Buffer[] = []
  for await (const chunk of await http.open('/x?watch=1', 10_000, new AbortController().signal)) chunks.push(chunk)
  assert.equal(Buffer.concat(chunks).toString(), '{"type":"BOOKMARK"}\n')
  assert.equal(await read('requests_total', 'code="200",method="GET"'), 1)
  assert.equal(await read('request_duration_seconds_count', 'verb="GET"'), 1)
  assert.equal(await read('response_size_bytes_count', 'verb="GET"'), undefined)
})

test('the age of the process, and failed checks', async () => {
  let nowMs = 5_000
  const metrics = createProcessMetrics(() => nowMs)
  nowMs = 7_500
  metrics.checkFailed('listeners')
  metrics.checkFailed('listeners')
  const text = await expositionText(metrics.expose)
  assert.match(text, /^portcullis_heartbeat 2\.5$/m)
  assert.match(text, /^portcullis_healthck_failure\{check="listeners",error="NotReady"\} 2$/m)
})
