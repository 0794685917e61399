// Contexts of a kubeconfig that lead to an API server with UpstreamClusters: which are named, and that none is waited for long.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { degradeCommand } from '../../src/incidents/cli/degrade.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'

const ca = createCA({ commonName: 'servers' })
const { certPem: cert, keyPem: key } = issueCertificate(ca, {
  commonName: 'server',
  usage: 'server',
  ipAddresses: ['127.0.0.1'],
})
const LIST = {
  kind: 'UpstreamClusterList',
  apiVersion: 'proxy.kubegateway.io/v1alpha1',
  metadata: { resourceVersion: '7' },
  items: [],
}
const servers: Server[] = []
let dir: string
let file: string

/** `answer` undefined: none ever comes. */
async function serve(answer: { code: number; body: string } | undefined): Promise<string> {
  const server = createServer({ cert, key }, (_, response) => {
    if (answer === undefined) return
    response.writeHead(answer.code, { 'content-type': 'application/json' }).end(answer.body)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-contexts-'))
  file = join(dir, 'kubeconfig')
  const urls: Record<string, string> = {
    worker: await serve({ code: 404, body: '404 page not found\n' }),
    gateway: await serve({ code: 200, body: JSON.stringify(LIST) }),
    forbidden: await serve({ code: 403, body: '{}' }),
    silent: await serve(undefined),
    plugin: await serve({ code: 200, body: JSON.stringify(LIST) }),
  }
  const data = Buffer.from(ca.certPem).toString('base64')
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: join(dir, 'asks-for-a-login') }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'worker',
    clusters: Object.entries(urls).map(([name, server]) => ({
      name,
      cluster: { server, 'certificate-authority-data': data },
    })),
    users: [
      { name: 'token', user: { token: 'x' } },
      { name: 'plugin', user: { exec } },
    ],
    contexts: Object.keys(urls).map((name) => ({
      name,
      context: { cluster: name, user: name === 'plugin' ? 'plugin' : 'token' },
    })),
  }
  writeFileSync(file, JSON.stringify(config))
})

after(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  rmSync(dir, { recursive: true, force: true })
})

test("degrade with a worker's kubeconfig names the context that has UpstreamClusters", async () => {
  const said: string[] = []
  const io = { out: () => undefined, err: (text: string) => void said.push(text), now: Date.now }
  const code = await degradeCommand({ cluster: 'prod', mode: 'Off', status: false, kubeconfig: file, ...io })
  assert.equal(code, 1)
  assert.deepEqual(said, [
    'error: this API server has no UpstreamClusters; is it the one of the gateway? these contexts have: gateway\n',
  ])
})
