// The embedded API server inside the test process: a real listener, a store in memory, a PKI of its own.

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthenticator } from '../../../src/apiserver/access/authenticate.ts'
import { createAuthorizer, roleBindings } from '../../../src/apiserver/access/authorize.ts'
import { shownTo } from '../../../src/apiserver/access/redaction.ts'
import { RevokedCredentials } from '../../../src/apiserver/access/revoked-credentials.ts'
import type { ObjectStore } from '../../../src/apiserver/api/object-store.ts'
import { openSqliteStore } from '../../../src/apiserver/io/store/store.ts'
import { Registry } from '../../../src/apiserver/registry/registry.ts'
import { selfReviews } from '../../../src/apiserver/self-reviews.ts'
import { type ControlHandler, createControlHandler } from '../../../src/apiserver/server.ts'
import { UPSTREAM_CLUSTERS } from '../../../src/gateway/api/upstream-cluster-kind.ts'
import { listenControl } from '../../../src/gateway/io/listener/control-listener.ts'
import type { Logger } from '../../../src/kit/api/ports.ts'
import type { ResourceKind } from '../../../src/kube/api/resource-kind.ts'
import { ensureControlPki, issueControlCertificate } from '../../../src/pki/io/control-pki.ts'
import { createTokenVerifier } from '../../../src/pki/io/control-tokens.ts'
import { nodePemChecks } from '../../../src/pki/io/pem-checks.ts'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import { SCHEME } from '../../../src/program/api/scheme.ts'
import { SUBJECTS } from '../../../src/program/subjects/subjects.ts'
import { writeKubeconfig } from '../clusters/kubeconfig.ts'

export interface ControlOptions {
  /** Revisions of history that the store keeps. Default: the store's own. */
  readonly historyRevisions?: number
  /** The row of UpstreamClusters. Default: that of the scheme. */
  readonly clusters?: ResourceKind
  /** Wall clock, milliseconds. Default: the machine's. */
  now?(): number
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape
export type AuditedRequest = any

export interface TestControl {
  readonly port: number
  readonly server: string
  readonly caPem: string
  readonly dir: string
  readonly store: ObjectStore
  readonly registry: Registry
  /** Certificates in the groups portcullis:admins and portcullis:viewers. */
  readonly admin: KeyPair
  readonly viewer: KeyPair
  /** The kubeconfig of the administrator. */
  readonly kubeconfig: string
  /** PEM of the key that signs tokens. */
  readonly tokenKey: string
  /** Events of its audit log so far. */
  readonly audited: readonly AuditedRequest[]
  readonly errors: readonly { message: string; fields: Record<string, unknown> }[]
  kubeconfigFor(user: { readonly cert?: KeyPair; readonly token?: string }): string
  endWatches(): void
  stop(): Promise<void>
}

export async function startControl(options: ControlOptions = {}): Promise<TestControl> {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-control-'))
  const now = (): number => (options.now ?? Date.now)()
  const pki = ensureControlPki(join(dir, 'pki'), ['127.0.0.1', 'localhost'])
  const store = openSqliteStore({
    file: ':memory:',
    key: undefined,
    now,
    ...(options.historyRevisions !== undefined && { historyRevisions: options.historyRevisions }),
  })
  const random = Math.random
  const kinds = SCHEME.map((kind) => (kind === UPSTREAM_CLUSTERS ? (options.clusters ?? kind) : kind))
  const registry = new Registry({ store, kinds, pem: nodePemChecks, now, uuid: randomUUID, random })
  const errors: { message: string; fields: Record<string, unknown> }[] = []
  const quiet = (): void => undefined
  const log: Logger = {
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (message, fields = {}) => void errors.push({ message, fields }),
  }
  const roles = SUBJECTS.flatMap((subject) => subject.roles ?? []).map(({ role }) => ({ role, given: [] }))
  const bindings = roleBindings([], [], roles)
  const audited: AuditedRequest[] = []
  const revoked = new RevokedCredentials(store, () => queueMicrotask(() => handler.endRefused()))
  const handler: ControlHandler = createControlHandler({
    registry,
    reviews: selfReviews(bindings, kinds),
    shownTo: (user) => shownTo(bindings, user),
    version: '0.0.0',
    checks: [],
    authenticate: createAuthenticator({
      clientCA: () => pki.caPem,
      tokens: createTokenVerifier(pki.tokenKey),
      revoked: revoked.check,
      now,
    }),
    authorize: createAuthorizer(bindings),
    audit: (line) => void audited.push(JSON.parse(line)),
    log,
    random,
    uuid: randomUUID,
  })
  const serving = { cert: pki.servingCert, key: pki.servingKey }
  const listener = await listenControl({ host: '127.0.0.1', port: 0, serving, clientCA: pki.caPem, handler })
  const server = `https://127.0.0.1:${listener.port}`
  let kubeconfigs = 0
  const kubeconfigFor = (user: { readonly cert?: KeyPair; readonly token?: string }): string =>
    writeKubeconfig(join(dir, `${kubeconfigs++}.kubeconfig`), { server, ca: pki.caPem, user })
  const admin = issueControlCertificate(join(dir, 'pki'), { user: 'alice', groups: ['portcullis:admins'] })
  const viewer = issueControlCertificate(join(dir, 'pki'), { user: 'bob', groups: ['portcullis:viewers'] })
  return {
    port: listener.port,
    server,
    caPem: pki.caPem,
    dir,
    store,
    registry,
    admin,
    viewer,
    kubeconfig: kubeconfigFor({ cert: admin }),
    tokenKey: pki.tokenKey,
    audited,
    errors,
    kubeconfigFor,
    endWatches: () => handler.endWatches(),
    async stop() {
      handler.endWatches()
      listener.close()
      store.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
