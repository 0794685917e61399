// explain against an API server that hides keys from its reader.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ExplainOptions, explain } from '../../src/cli/explain.ts'
import { ControlClient, cluster, UC } from '../harness/clients/control-client.ts'
import { base64 } from '../harness/clusters/kubeconfig.ts'
import { startControl } from '../harness/gateways/control.ts'

test('users who may not see keys get the same answer', async (t) => {
  const control = await startControl()
  const admin = new ControlClient(control, { cert: control.admin })
  t.after(async () => {
    admin.close()
    await control.stop()
  })
  const clientConfig = { bearerToken: base64('0123456789abcdef'), insecure: true }
  assert.equal((await admin.post(UC, cluster('prod', { clientConfig }))).code, 201)
  const run = async (kubeconfig: string): Promise<[number, string, string]> => {
    const said: [number, string, string] = [0, '', '']
    const request = { method: 'GET', target: '/api/v1/pods', host: 'prod' } as NonNullable<ExplainOptions['request']>
    said[0] = await explain({
      kubeconfig,
      stdin: false,
      request,
      output: 'json',
      input: (async function* () {})(),
      now: Date.now,
      out: (text) => {
        said[1] += text
      },
      err: (text) => {
        said[2] += text
      },
    })
    return said
  }
  const asAdmin = await run(control.kubeconfig)
  assert.deepEqual([asAdmin[0], asAdmin[2]], [0, ''])
  assert.equal(JSON.parse(asAdmin[1]).cluster, 'prod')
  assert.deepEqual(await run(control.kubeconfigFor({ cert: control.viewer })), asAdmin)
})
