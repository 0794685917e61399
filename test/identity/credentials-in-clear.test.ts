// No credential is sent to servers that are asked over http://, neither the gateway's nor a client's: the checks refuse such an
// object, and here one is in force all the same.

import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { after, before, test } from 'node:test'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, base64 } from '../harness/objects/objects.ts'
import { waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const seen: { path: string; headers: IncomingHttpHeaders; body: string }[] = []
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    seen.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() })
    response.end('{}')
  })
})
let gateway: InProcessGateway

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  gateway = await startInProcess([
    {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: HOST },
      spec: {
        servers: [{ endpoint: `http://127.0.0.1:${port}` }],
        clientConfig: { bearerToken: base64('of-the-gateway') },
        dispatchPolicies: [ALLOW_ALL],
      },
    },
  ])
})

after(async () => {
  await gateway.stop()
  server.close()
  server.closeAllConnections()
})

test('health checks, requests and token reviews', async () => {
  await waitFor('a health check', () => seen.some(({ path }) => path === '/readyz'))
  const session = h2Connect({ port: gateway.port, serverName: HOST })
  assert.equal((await h2Request(session, [])).status, 200, 'anonymous')
  const answer = await h2Request(session, ['authorization', 'Bearer of-alice'])
  assert.equal(answer.status, 503, 'a token cannot be verified, and is not taken for nothing')
  session.destroy()
  assert.ok(seen.some(({ path }) => path === '/api/v1/pods'))
  assert.deepEqual(
    seen.filter(({ path }) => path.endsWith('/tokenreviews')),
    [],
  )
  for (const { path, headers, body } of seen) {
    assert.equal(headers.authorization, undefined, path)
    assert.doesNotMatch(JSON.stringify(headers) + body, /of-the-gateway|of-alice/, path)
  }
})
