// Kubeconfig files.

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { stringify } from 'yaml'
import type { KeyPair } from '../../../src/pki/io/pki.ts'

/** How a client says who it is; neither means anonymous. */
export interface Credentials {
  readonly cert?: KeyPair
  readonly token?: string
}

export interface KubeconfigOptions {
  /** `https://host:port`, and a path where the cluster is served under one. */
  readonly server: string
  /** PEM of what signed the server's certificate. */
  readonly ca: string
  readonly user: Credentials
  /** `http://host:port` of a CONNECT proxy. */
  readonly proxyUrl?: string
  /** Name to send as SNI and to verify, instead of the server's host. */
  readonly tlsServerName?: string
}

/** Writes one cluster, one user and one context to `file`; returns `file`. */
export function writeKubeconfig(file: string, options: KubeconfigOptions): string {
  const { cert, token } = options.user
  const cluster = {
    server: options.server,
    'certificate-authority-data': base64(options.ca),
    ...(options.proxyUrl !== undefined && { 'proxy-url': options.proxyUrl }),
    ...(options.tlsServerName !== undefined && { 'tls-server-name': options.tlsServerName }),
  }
  const user = {
    ...(cert !== undefined && {
      'client-certificate-data': base64(cert.certPem),
      'client-key-data': base64(cert.keyPem),
    }),
    ...(token !== undefined && { token }),
  }
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  }
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, stringify(kubeconfig), { mode: 0o600 })
  return file
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
