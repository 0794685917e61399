// Answers that are complete while the client still sends its body: clients read them, and report no reset.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { createCA } from '../../src/io/pki/pki.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'

const RUNS = 10
const BODY = Buffer.alloc(900 * 1024)
const READS = { rules: [{ verbs: ['get'], apiGroups: ['*'], resources: ['*'] }] }
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'early-'))
let stub: StubUpstream
let gateway: InProcessGateway

before(async () => {
  const clientCA = createCA({ commonName: 'clients' })
  const alice = clientPair(clientCA, 'alice', ['dev'])
  writeFileSync(join(folder, 'body'), BODY)
  writeFileSync(join(folder, 'crt'), alice.certPem)
  writeFileSync(join(folder, 'key'), alice.keyPem)
  stub = await startStub()
  stub.answer = (request) => reply(request, 403, '{}')
  gateway = await startInProcess([
    clusterObject([stub], { clientCA, name: 'gateway.example.com', spec: { dispatchPolicies: [READS] } }),
    clusterObject([stub], { clientCA, name: 'upstream.example.com' }),
  ])
})
after(async () => {
  await gateway.stop()
  await stub.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function post(version: string, host: string): Promise<string> {
  const { port } = gateway
  const tls = ['--resolve', `${host}:${port}:127.0.0.1`, '--cert', 'crt', '--key', 'key']
  const args = ['-sSk', version, ...tls, '--data-binary', '@body', '-o', '/dev/null', '-w', '%{http_code}']
  const url = `https://${host}:${port}/api/v1/namespaces/default/configmaps`
  return run('curl', [...args, '--max-time', '30', url], { cwd: folder }).then(
    ({ stdout }) => stdout,
    (error: unknown) => String(error),
  )
}

for (const by of ['gateway', 'upstream']) {
  describe(`403 by the ${by} before the body has come`, () => {
    for (const version of ['--http2', '--http1.1']) {
      test(`is what curl ${version} shows`, async () => {
        for (let i = 0; i < RUNS; i++) assert.equal(await post(version, `${by}.example.com`), '403')
      })
    }
  })
}
