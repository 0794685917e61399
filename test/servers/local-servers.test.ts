// Servers of UpstreamClusters at addresses of this machine: a user who may edit one object must not reach, through the gateway, what
// trusts this machine. Two guards, each without the other: connections are refused, and the admin listener does not trust what was forwarded.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { parseAllowedServer } from '../../src/kit/core/dial/dial-rules.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clusterObject } from '../harness/objects/objects.ts'
import { freePorts } from '../harness/ports.ts'
import { waitFor } from '../harness/wait.ts'

/** A name that only the configuration has. */
const MARK = 'nobody-asks-for-this.example.com'

interface Ports {
  readonly admin: number
  readonly health: number
  readonly listen: number
  /** Not of the gateway. */
  readonly other: number
}

type Server = (ports: Ports) => string

interface Started {
  readonly gateway: InProcessGateway
  readonly ports: Ports
}

/** The addresses of names that are followed. */
const ADDRESSES: ReadonlyMap<string, string> = new Map([
  ['loopback.example.com', '127.0.0.1'],
  ['metadata.example.com', '169.254.169.254'],
])

/**
 * A gateway with clusters for every user, one for each server, called c0, c1 ...
 * @param allowed values of --allow-local-servers
 */
async function start(servers: readonly Server[], allowed: readonly string[], threads?: number): Promise<Started> {
  const [admin = 0, health = 0, listen = 0, other = 0] = await freePorts(4)
  const ports = { admin, health, listen, other }
  const objects = servers.map((server, at) => {
    const endpoint = server(ports)
    const resolve = endpoint.includes('.example.com')
    return clusterObject([], {
      name: `c${at}`,
      spec: {
        servers: [{ endpoint, ...(resolve && { resolve }) }],
        clientConfig: endpoint.startsWith('https') ? { bearerToken: base64('t'), insecure: true } : {},
        authentication: { anonymous: true },
        secureServing: { serverNames: [`${at}.${MARK}`] },
        healthCheck: { intervalSeconds: 1, path: '/livez' },
      },
    })
  })
  const config = {
    adminListen: `127.0.0.1:${admin}`,
    healthListen: { host: '0.0.0.0', port: health },
    listen: [{ host: '127.0.0.1', port: listen }],
    allowLocalServers: allowed.map((text) => {
      return parseAllowedServer(text.replace('ADMIN', String(admin))) ?? assert.fail(text)
    }),
    ...(threads !== undefined && { threads }),
  }
  const gateway = await startInProcess(objects, config, undefined, {
    lookUp: (name) => Promise.resolve({ v4: [ADDRESSES.get(name) ?? ''], v6: [], ttlSeconds: 1, message: '' }),
  })
  return { gateway, ports }
}

interface Answer {
  readonly status: number
  readonly text: string
}

/** What a stranger is answered at /clusters/c... */
async function ask({ gateway }: Started, path: string, head: readonly string[] = [], cluster = 0): Promise<Answer> {
  const session = h2Connect({ port: gateway.port })
  try {
    const { status, body } = await h2Request(session, [':path', `/clusters/c${cluster}${path}`, ...head])
    return { status, text: body.toString() }
  } finally {
    session.destroy()
  }
}

interface DebugConfig {
  readonly clusters: readonly { name: string; endpointStatus: readonly { lastProbe?: { message: string } }[] }[]
}

/** Why the server of this cluster is not healthy. */
function unhealthy({ gateway }: Started, cluster = 0): Promise<string> {
  return waitFor(`the server of c${cluster} to be checked`, async () => {
    const state = await fetch(`http://127.0.0.1:${gateway.adminPort}/debug/config`)
    const { clusters } = JSON.parse(await state.text()) as DebugConfig
    const message = clusters.find(({ name }) => name === `c${cluster}`)?.endpointStatus[0]?.lastProbe?.message ?? ''
    // On a busy machine the system may take longer than a check to look up a name; the next one says more.
    return message !== '' && !message.startsWith('no answer within') && message
  })
}

const atAdmin: Server = ({ admin }) => `http://127.0.0.1:${admin}`

for (const threads of [undefined, 2]) {
  describe(`the admin listener trusts nothing that was forwarded, ${threads === undefined ? 'one thread' : 'threads'}`, () => {
    let started: Started
    before(async () => {
      // The first guard alone: the operator has allowed the connection.
      started = await start([atAdmin], ['127.0.0.1:ADMIN'], threads)
    })
    after(() => started.gateway.stop())

    for (const [what, path, head] of [
      ['the configuration', '/debug/config', []],
      ['a support bundle', '/debug/support-bundle', []],
      ['a profile', '/debug/heap?seconds=1', []],
      ['the log level', '/debug/log-level', [':method', 'PUT', 'content-type', 'application/json']],
      ['requests of all', '/api/v1/tap?cluster=prod', []],
      ['shares', '/api/v1/shares', []],
      ['an address that it invents', '/debug/config', ['x-forwarded-for', '127.0.0.1']],
    ] as const) {
      test(what, async () => {
        const { status, text } = await ask(started, path, head)
        assert.equal(status, 403, text)
        assert.match(text, /a proxy has forwarded the request/)
        assert.ok(!text.includes(MARK), text)
      })
    }

    test('HTTP/1.1, whatever `Connection` lists, and an upgrade', async () => {
      for (const connection of [
        'Connection: x-forwarded-for, audit-id, impersonate-user, impersonate-group',
        'Connection: Upgrade, x-forwarded-for, audit-id\r\nUpgrade: websocket',
        'Connection: close',
      ]) {
        const raw = await openRaw({ port: started.gateway.port })
        raw.send(
          `GET /clusters/c0/debug/config HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 127.0.0.1\r\n${connection}\r\n\r\n`,
        )
        await raw.until(/^HTTP\/1\.1 403 /)
        assert.ok(!raw.text().includes(MARK))
        raw.destroy()
      }
    })

    test('this machine itself is trusted as before, other proxies are not', async () => {
      const url = `http://127.0.0.1:${started.ports.admin}/debug/config`
      assert.ok((await (await fetch(url)).text()).includes(MARK))
      const forwarded = await fetch(url, { headers: { via: '1.1 proxy' } })
      assert.equal(forwarded.status, 403)
      assert.match(await forwarded.text(), /it has via/)
    })
  })
}

const REFUSED: Readonly<
  Record<string, { readonly allowed: readonly string[]; readonly servers: Record<string, Server> }>
> = {
  'nothing is allowed': {
    allowed: [],
    servers: {
      '127.0.0.1': atAdmin,
      '127.0.0.1 over https': ({ other }) => `https://127.0.0.1:${other}`,
      'another address of the loopback network': ({ other }) => `http://127.8.9.10:${other}`,
      '0.0.0.0': ({ admin }) => `http://0.0.0.0:${admin}`,
      '[::1]': ({ other }) => `http://[::1]:${other}`,
      '[::]': ({ other }) => `http://[::]:${other}`,
      'IPv4 in IPv6': ({ admin }) => `http://[::ffff:127.0.0.1]:${admin}`,
      'IPv4 in IPv6, as hexadecimal': ({ admin }) => `http://[::ffff:7f00:1]:${admin}`,
      'link-local': () => 'http://169.254.169.254:80',
      'link-local IPv6': () => 'https://[fe80::1]:443',
      'the metadata service of AWS': () => 'http://[fd00:ec2::254]:80',
      localhost: ({ admin }) => `http://localhost:${admin}`,
      'a name that is followed': ({ admin }) => `http://loopback.example.com:${admin}`,
      'a followed name of a metadata service': () => 'http://metadata.example.com:80',
    },
  },
  'loopback is allowed, and another port': {
    allowed: ['127.0.0.0/8', '0.0.0.0', '10.9.8.7:1', '[::1]:1'],
    servers: {
      'the admin listener': atAdmin,
      'the admin listener by a name': ({ admin }) => `http://loopback.example.com:${admin}`,
      'the proxy port': ({ listen }) => `https://127.0.0.1:${listen}`,
      'a port that is open on all addresses': ({ health }) => `http://127.0.0.2:${health}`,
      'the unspecified address': ({ admin }) => `http://0.0.0.0:${admin}`,
      'an address that is allowed with another port': ({ other }) => `http://[::1]:${other}`,
    },
  },
}

for (const [rule, { allowed, servers }] of Object.entries(REFUSED)) {
  describe(`no connection to a server at an address of this machine: ${rule}`, () => {
    let started: Started
    before(async () => {
      started = await start(Object.values(servers), allowed)
    })
    after(() => started.gateway.stop())

    for (const [at, what] of Object.keys(servers).entries()) {
      test(what, async () => {
        assert.match(await unhealthy(started, at), /only --allow-local-servers=\S+:\d+ of the gateway allows it/)
        const { status, text } = await ask(started, '/debug/config', [], at)
        assert.ok(status === 502 || status === 503, text)
        assert.ok(!text.includes(MARK), text)
      })
    }
  })
}

test('nothing is sent: checks, requests, reviews and upgrades open no connection', async () => {
  const started = await start(
    [({ other }) => `http://127.0.0.1:${other}`, ({ other }) => `https://127.0.0.1:${other}`],
    [],
  )
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(started.ports.other, '127.0.0.1', resolve))
  try {
    for (const cluster of [0, 1]) {
      await unhealthy(started, cluster)
      await ask(started, '/api/v1/pods', [], cluster)
      await ask(started, '/api/v1/pods', ['authorization', 'Bearer invented'], cluster)
      const raw = await openRaw({ port: started.gateway.port })
      raw.send(
        `GET /clusters/c${cluster}/api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      )
      await raw.until(/^HTTP\/1\.1 50[23] /)
      raw.destroy()
    }
    assert.equal(connections, 0)
  } finally {
    server.close()
    await started.gateway.stop()
  }
})

test('an address that is allowed is connected to, whether the server is an address or a name', async () => {
  const { gateway } = await start([atAdmin, ({ admin }) => `http://localhost:${admin}`], ['127.0.0.1:ADMIN'])
  await waitFor('both to be healthy', async () => {
    return [...(await gateway.metrics()).matchAll(/^portcullis_endpoint_healthy\{.*\} 1$/gm)].length === 2
  })
  await gateway.stop()
})
