// A gateway in front of stubs that all attacks are run against, and what its upstreams may receive.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, beforeEach } from 'node:test'
import { createCA, type KeyPair } from '../../../src/pki/io/pki.ts'
import type { Config } from '../../../src/process/config/config.ts'
import { h2Connect, h2Request } from '../clients/h2-client.ts'
import type { RawConnection } from '../clients/raw-clients.ts'
import { base64, clientPair, clusterObject } from '../objects/objects.ts'
import { type Http1Stub, startHttp1Stub } from '../upstreams/stub-http1.ts'
import { reply, replyReview, type SeenRequest, type StubUpstream, startStub } from '../upstreams/stub-upstream.ts'
import { waitFor } from '../wait.ts'
import { type InProcessGateway, startInProcess } from './in-process.ts'

/** Served by `stub`; `other.example.com` is served by `other`, EXEC_HOST by `http1`. */
export const HOST = 'prod.example.com'
export const EXEC_HOST = 'exec.example.com'
export const EXEC = '/api/v1/namespaces/default/pods/p/exec?command=sh'
export const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
export const alice: KeyPair = clientPair(clientCA, 'alice', ['dev'])
export const ALICE_GROUPS: readonly string[] = ['dev', 'system:authenticated']
/** A second request for a proxy that parses the first part differently. */
export const HIDDEN: string = `GET /smuggled HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`

export interface AttackedGateway {
  readonly stub: StubUpstream
  readonly other: StubUpstream
  readonly http1: Http1Stub
  readonly gateway: InProcessGateway
  /** A session of alice to HOST. */
  readonly session: ClientHttp2Session
  /** Options for a connection of alice to HOST. */
  readonly asAlice: { readonly port: number; readonly serverName: string; readonly cert: KeyPair }
  /** Fails unless the gateway still serves others. */
  assertServing(): Promise<void>
}

/**
 * Registers hooks: everything is as new before each test, and stopped behind the last.
 * @param overrides how long a client may take. Default: a minute for a head, however busy the machine is
 */
export async function attackedGateway(
  overrides: Pick<Partial<Config>, 'headerTimeoutMs' | 'handshakeTimeoutMs'> = { headerTimeoutMs: 60_000 },
): Promise<AttackedGateway> {
  const stub = await startStub()
  const other = await startStub()
  const http1 = await startHttp1Stub()
  const gateway = await startInProcess(
    [
      clusterObject([stub], { clientCA, spec: { authentication: { tokenFailureTTLSeconds: 0 } } }),
      clusterObject([other], { name: 'other.example.com', clientCA }),
      clusterObject([], {
        name: EXEC_HOST,
        clientCA,
        spec: {
          servers: [{ endpoint: http1.url }],
          clientConfig: { bearerToken: base64('gateway-token'), insecure: true },
        },
      }),
    ],
    overrides,
  )
  const session = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
  after(async () => {
    session.destroy()
    await gateway.stop()
    await stub.stop()
    await other.stop()
    await http1.stop()
  })
  const { answer, answerUpgrade } = http1
  beforeEach(() => {
    stub.seen.length = 0
    other.seen.length = 0
    http1.upgrades.length = 0
    http1.seen.length = 0
    http1.answer = answer
    http1.answerUpgrade = answerUpgrade
    stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
    stub.answerToken = undefined
    stub.answerAccess = (review) => replyReview(review, { allowed: false, reason: 'no' })
    stub.tokens.clear()
  })
  const assertServing = async (): Promise<void> => {
    const fresh = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
    try {
      assert.equal((await h2Request(fresh, [])).status, 200)
    } finally {
      fresh.destroy()
    }
  }
  const asAlice = { port: gateway.port, serverName: HOST, cert: alice }
  return { stub, other, http1, gateway, session, asAlice, assertServing }
}

/** All that upstream received about the user. */
export function identityOf(request: SeenRequest): Record<string, string[]> {
  const received: Record<string, string[]> = {}
  for (let i = 0; i + 1 < request.raw.length; i += 2) {
    const name = request.raw[i] ?? ''
    if (!/impersonate|x-remote|authorization|x-forwarded-user/.test(name)) continue
    received[name] = [...(received[name] ?? []), request.raw[i + 1] ?? '']
  }
  return received
}

/** Exactly alice, whose certificate also has a credential id. */
export function assertAlice(request: SeenRequest | undefined): void {
  assert.ok(request, 'nothing was forwarded')
  const { 'impersonate-extra-authentication.kubernetes.io%2fcredential-id': credential, ...received } =
    identityOf(request)
  assert.deepEqual(received, {
    authorization: ['Bearer gateway-token'],
    'impersonate-user': ['alice'],
    'impersonate-group': ALICE_GROUPS,
  })
  assert.match(credential?.join() ?? '', /^X509SHA256=[0-9a-f]{64}$/)
}

/** Resolves when the gateway has closed the connection. */
export function ended(connection: RawConnection): Promise<true> {
  return waitFor('the gateway to close the connection', () => connection.socket.destroyed, { intervalMs: 10 })
}
