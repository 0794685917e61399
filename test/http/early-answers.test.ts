// Answers that are complete while the client still sends its body: other people's clients read them, and report no reset.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { UPLOAD_CLIENTS, Uploads } from '../harness/uploads/uploads.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'

const BYTES = 900 * 1024
const PATH = '/api/v1/namespaces/default/configmaps'
const READS = { rules: [{ verbs: ['get'], apiGroups: ['*'], resources: ['*'] }] }
/** No peer may have a write under way. */
const NONE = { name: 'none', maxRequestsInflight: { max: 0 } }
const LIMITED = {
  flowControl: { flowControlSchemas: [NONE] },
  dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'none' }],
}
const ANSWERS = [
  ['gateway', '403'],
  ['gateway', '429'],
  ['upstream', '413'],
] as const
const MORE_ANSWERS = [...ANSWERS, ['upstream', '403'], ['upstream', '429']] as const
const clientCA = createCA({ commonName: 'clients' })
let uploads: Uploads
let stub: StubUpstream
let gateway: InProcessGateway

before(async () => {
  uploads = new Uploads(clientPair(clientCA, 'alice', ['dev']), BYTES)
  stub = await startStub()
  stub.answer = (request) => reply(request, Number(request.path.slice(-3)), '{}')
  gateway = await startInProcess([
    clusterObject([stub], { clientCA, name: 'gateway-403.example.com', spec: { dispatchPolicies: [READS] } }),
    clusterObject([stub], { clientCA, name: 'gateway-429.example.com', spec: LIMITED }),
    clusterObject([stub], { clientCA, name: 'upstream.example.com' }),
  ])
})
after(async () => {
  await gateway?.stop()
  await stub?.stop()
  uploads?.end()
})

for (const [title, runs, answers] of [
  ['', 10, ANSWERS],
  [', in each of 100 runs (long)', 100, MORE_ANSWERS],
] as const) {
  for (const client of UPLOAD_CLIENTS) {
    for (const [by, status] of answers) {
      test(`${client}: ${status} by the ${by} before the body has gone${title}`, PATIENT, async (t) => {
        const missing = await uploads.missing(client)
        if (missing !== undefined) {
          t.skip(missing)
          return
        }
        const host = by === 'gateway' ? `gateway-${status}.example.com` : 'upstream.example.com'
        const target = { port: gateway.port, host, path: `${PATH}?code=${status}` }
        let run = 0
        for await (const said of uploads.post(client, target, runs))
          assert.equal(`run ${++run}: ${said}`, `run ${run}: ${status}`)
        assert.equal(run, runs)
      })
    }
  }
}
