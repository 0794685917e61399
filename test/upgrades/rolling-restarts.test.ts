// Two replicas behind HAProxy are restarted in turn, under clients that keep their connections, over HTTP/1.1 and HTTP/2: no request fails.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { startBalancer } from '../harness/balancers/haproxy.ts'
import { KeptTraffic, RestartTraffic } from '../harness/clients/restart-traffic.ts'
import { startGateway, type TestGateway } from '../harness/gateways/gateway.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { freePorts } from '../harness/ports.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const REPLICAS = 2
const KEPT = 8
const ANSWERS_IN_DELAY = 20
/** Generous: the bound of a failure. */
const READY_MS = 120_000
const LONG_MS = 600_000
const clientCA = createCA({ commonName: 'clients' })
const certificate = clientPair(clientCA, 'alice')
const path = '/api/v1/pods'

describe('rolling restarts', () => {
  for (const [title, restarts, requests, rate] of [
    ['', 2, 500, 50],
    [', twenty of them and 10,000 requests (long)', 20, 10_000, 200],
  ] as const) {
    test(`fail no request of clients that keep their connections${title}`, async (t) => {
      const stub = await startStub()
      const ports = await freePorts(2 * REPLICAS)
      const servers = Array.from({ length: REPLICAS }, (_, i) => {
        return { name: `replica-${i}`, port: ports[2 * i] ?? 0, healthPort: ports[2 * i + 1] ?? 0 }
      })
      const clusters = [clusterObject([stub], { clientCA })]
      const start = ({ port, healthPort }: { port: number; healthPort: number }): Promise<TestGateway> => {
        const args = [`--health-listen=127.0.0.1:${healthPort}`, '--shutdown-delay=1h']
        return startGateway({ clusters, own: `127.0.0.1:${port}`, args, readyTimeoutMs: READY_MS })
      }
      const running: TestGateway[] = []
      for (const server of servers) running.push(await start(server))
      const balancer = await startBalancer(servers)
      t.after(async () => {
        await balancer.stop()
        await Promise.all(running.map((gateway) => gateway.stop('SIGKILL')))
        await stub.stop()
      })
      const isUp = (name: string) => async () => (await balancer.stateOf(name)).startsWith('UP')
      for (const { name } of servers) await waitFor(`${name} to be up`, isUp(name))

      const at = { port: balancer.port, serverName: 'prod.example.com', certificate, path }
      const kept = new KeptTraffic(at)
      const http2 = new RestartTraffic({ ...at, requestsPerSecond: rate, sessions: 4, freshEvery: 10 })
      kept.start(KEPT)
      http2.start()
      const served = (): number => kept.counted.served + http2.counted.served
      for (let restart = 0; restart < restarts; restart++) {
        const until = (requests * (restart + 1)) / (restarts + 1)
        const many = (): boolean =>
          served() >= until || kept.counted.failures.length + http2.counted.failures.length > 0
        await waitFor('requests', many, { timeoutMs: LONG_MS })
        const i = restart % REPLICAS
        const [server, gateway] = [servers[i], running[i]]
        assert.ok(server !== undefined && gateway !== undefined)
        gateway.signal('SIGTERM')
        await waitFor(`${server.name} to be down`, async () => (await balancer.stateOf(server.name)) === 'DOWN')
        // The delay is to be longer than the balancer needs: until each connection has had its next answer, and nothing waits to be accepted.
        const { served: before } = kept.counted
        await waitFor('requests in the delay', () => kept.counted.served > before + ANSWERS_IN_DELAY * KEPT)
        gateway.signal('SIGTERM')
        assert.equal(await gateway.exited, 0)
        await gateway.stop()
        running[i] = await start(server)
        await waitFor(`${server.name} to be up`, isUp(server.name))
      }
      await waitFor('requests', () => served() >= requests, { timeoutMs: LONG_MS })
      const [one, two] = [await kept.stop(), await http2.stop()]
      t.diagnostic(`HTTP/1.1: ${one.served} served, ${one.failures.length} failed, ${one.moved} connections moved`)
      t.diagnostic(`HTTP/2: ${two.served} served, ${two.failures.length} failed, ${two.moved} connections moved`)
      assert.deepEqual([...one.failures, ...two.failures], [])
      assert.ok(one.moved > 0 && two.moved > 0, 'the restarts were noticed')
    })
  }
})
