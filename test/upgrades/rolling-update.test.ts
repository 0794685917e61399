// Three replicas behind HAProxy are replaced one after the other, under requests, watches and execs: no request fails.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { startBalancer } from '../harness/balancers/haproxy.ts'
import { numberEvents } from '../harness/clients/numbered-events.ts'
import { EchoSessions, RestartTraffic, ResumedWatch } from '../harness/clients/restart-traffic.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { PATIENT } from '../harness/patience.ts'
import { freePorts } from '../harness/ports.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { startUpgradeUpstream } from '../harness/upstreams/upgrade-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const REPLICAS = 3
const WATCHES = 10
const EXECS = 5
/** Generous: the bound of a failure. */
const READY_MS = 120_000
const clientCA = createCA({ commonName: 'clients' })
const alice = clientPair(clientCA, 'alice')

describe('a rolling update of three replicas', () => {
  for (const [title, rate, rounds] of [
    ['', 100, 1],
    [' at 500 requests/s, three times (long)', 500, 3],
  ] as const) {
    test(`no request fails, no event is lost or comes twice, execs end only in a drain${title}`, PATIENT, async (t) => {
      const stub = await startStub()
      const events = numberEvents(stub)
      const execs = await startUpgradeUpstream()
      const execSpec = {
        servers: [{ endpoint: execs.url }],
        clientConfig: { caData: base64(execs.caPem), bearerToken: base64('gateway-token') },
      }
      const clusters = [
        clusterObject([stub], { clientCA }),
        clusterObject([stub], { clientCA, name: 'exec.example.com', spec: execSpec }),
      ]
      const ports = await freePorts(2 * REPLICAS)
      const servers = Array.from({ length: REPLICAS }, (_, i) => {
        return { name: `replica-${i}`, port: ports[2 * i] ?? 0, healthPort: ports[2 * i + 1] ?? 0 }
      })
      const start = ({ port, healthPort }: { port: number; healthPort: number }): Promise<TestGateway> => {
        const args = [`--health-listen=127.0.0.1:${healthPort}`, '--shutdown-delay=1h']
        return startGateway({ clusters, own: `127.0.0.1:${port}`, args, drainTimeout: '6s', readyTimeoutMs: READY_MS })
      }
      // One after the other: this may run beside many other tests.
      const running: TestGateway[] = []
      for (const server of servers) running.push(await start(server))
      const balancer = await startBalancer(servers)
      t.after(async () => {
        await balancer.stop()
        await Promise.all(running.map((gateway) => gateway.stop('SIGKILL')))
        events.stop()
        await Promise.all([stub.stop(), execs.stop()])
      })
      const isUp = (name: string) => async () => (await balancer.stateOf(name)).startsWith('UP')
      for (const { name } of servers) await waitFor(`${name} to be up`, isUp(name))

      let draining = false
      const at = { port: balancer.port, serverName: 'prod.example.com', certificate: alice }
      const traffic = new RestartTraffic({
        ...at,
        requestsPerSecond: rate,
        sessions: 9,
        freshEvery: 10,
        path: '/api/v1/pods',
      })
      const path = '/api/v1/configmaps?watch=1&resourceVersion='
      const watches = Array.from({ length: WATCHES }, () => new ResumedWatch({ ...at, path, since: events.version }))
      const exec = '/api/v1/namespaces/default/pods/web/exec?command=sh'
      const echoes = new EchoSessions({ ...at, serverName: 'exec.example.com', path: exec }, () => draining)
      traffic.start()
      for (const watch of watches) watch.start()
      echoes.start(EXECS)
      for (let round = 0; round < rounds; round++) {
        for (const [i, server] of servers.entries()) {
          const before = traffic.counted.served
          await waitFor('traffic', () => traffic.counted.served > before + rate / 2)
          const gateway = running[i]
          assert.ok(gateway)
          gateway.signal('SIGTERM')
          // As long as the balancer needs to notice: then the delay may end.
          await waitFor(`${server.name} to be down`, async () => (await balancer.stateOf(server.name)) === 'DOWN')
          draining = true
          gateway.signal('SIGTERM')
          assert.equal(await gateway.exited, 0)
          await gateway.stop()
          draining = false
          running[i] = await start(server)
          await waitFor(`${server.name} to be up`, isUp(server.name))
        }
      }
      const last = events.version
      await waitFor('all events', () => watches.every(({ seen }) => (seen.at(-1) ?? 0) >= last))
      for (const watch of watches) await watch.stop()
      await echoes.stop()
      const { served, repeated, moved, failures } = await traffic.stop()
      const resumed = watches.reduce((sum, watch) => sum + watch.resumed, 0)
      t.diagnostic(
        `requests: ${served} served, ${repeated} repeated, ${failures.length} failed; ${moved} connections moved`,
      )
      t.diagnostic(`${resumed} watches resumed; ${echoes.opened} execs, ${echoes.cutOff} ended by a drain`)
      assert.deepEqual(failures, [])
      assert.deepEqual(echoes.failures, [])
      assert.ok(moved > 0 && resumed > 0 && echoes.cutOff > 0, 'the update was noticed')
      for (const { seen, failures: broken } of watches) {
        assert.deepEqual(broken, [])
        const [first = 0] = seen
        assert.deepEqual(
          seen,
          seen.map((_, i) => first + i),
        )
      }
    })
  }
})
