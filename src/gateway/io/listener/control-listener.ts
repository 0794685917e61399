// The control port: HTTP/1.1 and HTTP/2 on the data path's engine, with the control plane's own certificate and client CA.

import { constants } from 'node:crypto'
import type { SecureContext } from 'node:tls'
import type { RequestHandler } from '../../../kit/api/stream.ts'
import type { ListenerContexts, PortAdmission } from './connections.ts'
import { type Listener, listen } from './listener-socket.ts'
import { type SharedContextOptions, sharedSecureContext } from './secure-contexts.ts'
import type { AddressContext, ServingPair } from './tls-contexts.ts'
import { DEFAULT_TLS_POLICY, type TlsPolicy } from './tls-policy.ts'

interface ControlListenerOptions {
  readonly host: string
  /** 0 = any. */
  readonly port: number
  /** Like the listener's. */
  readonly fds?: readonly number[]
  /** PEM. */
  readonly serving: ServingPair
  /** PEM bundle of the CAs that verify client certificates. */
  readonly clientCA: string
  /** Default: TLS 1.2, Node's suites. */
  readonly tls?: TlsPolicy
  readonly handler: RequestHandler
  /** Default: its own handshakes, unlimited connections, and failures not counted. */
  readonly admission?: PortAdmission
}

export interface ControlListener extends Listener {
  /** Applies to new connections. @throws OpenSSL's error; the previous ones stay in force */
  setCertificates(serving: ServingPair, clientCA: string): void
}

/** Generous for interactive tools, which send large tokens at most. */
const MAX_HEADER_BYTES = 64 * 1024
const MAX_CONCURRENT_STREAMS = 250
const HEADER_TIMEOUT_MS = 10_000
const IDLE_TIMEOUT_MS = 120_000
/** Generous for people, replicas and kube-apiservers, which open a few each. */
const MAX_CONNECTIONS_PER_ADDRESS = 256

/** @throws if the port cannot be opened; OpenSSL's error if the certificate or key is invalid */
export async function listenControl(options: ControlListenerOptions): Promise<ControlListener> {
  const { host, port, fds = [], handler, admission } = options
  const contexts = new ControlContexts(options.serving, options.clientCA, options.tls ?? DEFAULT_TLS_POLICY)
  const listener = await listen({
    host,
    port,
    fds,
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConcurrentStreams: MAX_CONCURRENT_STREAMS,
    headerTimeoutMs: HEADER_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    maxConnectionsPerAddress: MAX_CONNECTIONS_PER_ADDRESS,
    contexts,
    clusterForServerName: () => undefined,
    clusterForAddress: () => undefined,
    handler,
    ...admission,
    // No upgrades here: a watch over WebSocket gets an ordinary response.
    onUpgrade: (peer, answer, head) => handler(peer, answer, head, true),
  })
  return { ...listener, setCertificates: (serving, clientCA) => contexts.set(serving, clientCA) }
}

class ControlContexts implements ListenerContexts {
  readonly #tls: TlsPolicy
  #built: AddressContext

  constructor(serving: ServingPair, clientCA: string, tls: TlsPolicy) {
    this.#tls = tls
    this.#built = this.#build(serving, clientCA)
  }

  set(serving: ServingPair, clientCA: string): void {
    this.#built = this.#build(serving, clientCA)
  }

  forAddress(): AddressContext {
    return this.#built
  }

  forCluster(): SecureContext {
    return this.#built.context
  }

  #build({ cert, key }: ServingPair, clientCA: string): AddressContext {
    const options: SharedContextOptions = {
      cert,
      key,
      ...this.#tls,
      // No resumption: each connection verifies the identity in its own handshake (see tls-contexts.ts).
      secureOptions: constants.SSL_OP_NO_TICKET,
      sessionTimeout: 1,
      ca: [clientCA],
      allowPartialTrustChain: true,
    }
    return { options, context: sharedSecureContext(options) }
  }
}
