// One TLS port without a gateway behind it: for what happens to connections before their handshake. A handshake or a request fails the test.

import assert from 'node:assert/strict'
import type { ListenerOptions } from '../../../src/gateway/io/listener/listener-socket.ts'

export const BARE_PORT: ListenerOptions = {
  host: '127.0.0.1',
  port: 0,
  maxHeaderBytes: 4096,
  maxConcurrentStreams: 1,
  headerTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
  maxConnectionsPerAddress: 0,
  contexts: { forAddress: () => assert.fail(), forCluster: () => assert.fail() },
  clusterForServerName: () => undefined,
  clusterForAddress: () => undefined,
  handler: () => assert.fail(),
  onUpgrade: () => assert.fail(),
}
