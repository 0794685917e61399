// A gateway whose objects are in a cluster: how many watches of them its API server has to serve.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { UpstreamClusterStatus } from '../../src/gateway/api/upstream-cluster/status.ts'
import { compareText } from '../../src/kit/api/json/sorted-json.ts'
import { loadConfig } from '../../src/process/config/config.ts'
import { startGateway } from '../../src/program/lifecycle/start-gateway.ts'
import { ControlClient } from '../harness/clients/control-client.ts'
import { startControl } from '../harness/gateways/control.ts'
import { UC_PATH } from '../harness/gateways/embedded.ts'
import { base64, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'

const cleanups: (() => unknown)[] = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
})

test(
  'with --source kubernetes one watch for each kind feeds all who follow it: sources, controllers, the ledger and the generator',
  PATIENT,
  async () => {
    const control = await startControl()
    cleanups.push(() => control.stop())
    const admin = new ControlClient(control, { cert: control.admin })
    cleanups.push(() => admin.close())
    const recovery = { hold: '1h' }
    const degrade = { mode: 'ReadOnly', reason: 'INC-1', recovery, auto: { nodes: {} } } as const
    const servers = [{ endpoint: 'https://127.0.0.1:1' }]
    const clientConfig = { bearerToken: base64('token'), insecure: true }
    const object = clusterObject([], { name: 'prod', spec: { servers, clientConfig, degrade } })
    const created = await admin.post(UC_PATH, object)
    assert.equal(created.code, 201, created.text)
    const flags = {
      source: 'kubernetes',
      kubeconfig: control.kubeconfig,
      installCrds: false,
      dataDir: control.dir,
      listen: ['127.0.0.1:0'],
      controlListen: '127.0.0.1:0',
      adminListen: '127.0.0.1:0',
      protectionListen: '127.0.0.1:0',
      accessLog: false,
    }
    const quiet = (): void => undefined
    const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
    const config = { ...loadConfig({ flags, env: {}, readFile: () => '' }), threads: 1 }
    const gateway = await startGateway(config, { inline: true, log })
    cleanups.push(() => gateway.stop())
    const until = (what: string, holds: (status: UpstreamClusterStatus) => boolean): Promise<unknown> =>
      waitFor(what, async () => holds((await admin.get(`${UC_PATH}/prod`)).json.status ?? {}))
    await until('all of them to hear of it', ({ gateways, degrade }) => {
      return gateways?.[0]?.observedGeneration === 1 && degrade?.recovery !== undefined && degrade.auto !== undefined
    })
    // What is missed while no watch is open must be caught up with.
    control.endWatches()
    const changed = { spec: { degrade: { mode: 'Off', recovery: null, auto: null } } }
    await admin.mergePatch(`${UC_PATH}/prod`, changed)
    await until('all of them to hear of the change', ({ gateways, degrade }) => {
      return gateways?.[0]?.observedGeneration === 2 && degrade?.recovery === undefined && degrade?.auto === undefined
    })
    const open = (): string[] => {
      const watches = control.audited.filter(({ verb }) => verb === 'watch')
      const ended = new Set(watches.filter(({ stage }) => stage === 'ResponseComplete').map(({ auditID }) => auditID))
      return watches
        .filter(({ stage, auditID }) => stage === 'ResponseStarted' && !ended.has(auditID))
        .map(({ objectRef }) => `${objectRef?.namespace ?? ''} ${objectRef?.resource}`.trim())
        .toSorted(compareText)
    }
    const kinds = ['podprotectors', 'scaledownpolicies', 'scaleupguards', 'upstreamclusters']
    await waitFor('a watch of each', () => kinds.every((kind) => open().includes(kind)))
    const all = open()
    assert.deepEqual(all, [...new Set(all)])
  },
)
