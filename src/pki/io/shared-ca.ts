// One CA for all replicas: a Secret next to the objects, created by the first replica and used by all. Each keeps a copy in its own directory, which
// the rest of the process uses as if the CA had been created there; a start falls back to it while that API server is unavailable.

import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { toBase64 } from '../../kit/core/text/base64.ts'
import { NAMESPACES } from '../../kube/api/kinds/namespace-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { createCA, isIssuedBy, type KeyPair } from './pki.ts'
import {
  makePrivateDirectory,
  readKeyPair,
  readTextFile,
  removeKeyPair,
  replaceFile,
  writeKeyPair,
} from './pki-files.ts'
import { fileFault, hasExpired, parseShared, type Shared, type SharedCA, type SharedFile } from './shared-ca-secret.ts'

export type SecretClient = Pick<ObjectClient, 'get' | 'create'>

/** This replica's copy. */
interface LocalCA {
  /** undefined = absent or damaged. */
  readonly pair: KeyPair | undefined
  /** Why it is unusable; undefined = it is usable, or absent. */
  readonly damage: unknown
}

/** Certificates issued by the previous CA, which are no longer trusted. */
const LEAVES = ['tls', 'admin']
/** An API server that has just started refuses its first requests, until it has read its RBAC objects. */
const ATTEMPTS = 5
const FIRST_WAIT_MS = 250

/**
 * Makes the CA in `dir` the one shared by all replicas.
 * @param hasCopy the one in `dir` is known to have been shared: it is used if the Secret cannot be read immediately, for whatever reason
 * @throws {UserError} if it cannot be shared: with separate CAs, each replica would be trusted by some clients only
 */
export async function shareCA(client: SecretClient, shared: SharedCA, log: Logger, hasCopy = false): Promise<void> {
  const local = readLocal(shared.dir)
  const secret = `${shared.namespace}/${shared.name}`
  try {
    const attempts = hasCopy && local.pair !== undefined ? 1 : ATTEMPTS
    const { ca, files } = await settled(client, shared, local, log, attempts)
    makePrivateDirectory(shared.dir)
    for (const [file, text] of Object.entries(files)) keep(join(shared.dir, file), text)
    take(shared, local, ca, log)
  } catch (error) {
    if (error instanceof UserError) throw error
    const why = error instanceof Error ? error.message : String(error)
    const usesCopy = hasCopy && local.pair !== undefined
    if (!usesCopy && error instanceof StatusError && error.code < 500 && error.code !== 429) {
      const fix = `apply deploy/rbac/control-cluster.yaml, or ${shared.otherwise}`
      const message = `the CA that all replicas share cannot be kept in Secret ${secret}`
      if (shared.required) throw new UserError(`${message}: ${why}`, fix)
      log.warn(`${message}; this replica continues with its own`, { why, fix })
      return
    }
    if (local.damage !== undefined) throw local.damage
    if (local.pair === undefined) {
      throw new UserError(`the CA that all replicas share cannot be read: ${why}`, 'is the API server up?')
    }
    log.warn('the CA that all replicas share cannot be read; the copy of this replica is used', {
      secretName: secret,
      why,
    })
  }
}

/**
 * Rereads the Secret while the gateway runs: a changed CA replaces the one in `dir`. Other files are kept until the next start, which applies them
 * together.
 * @throws {UserError} (rejects) if the Secret is unusable; {Error} if it cannot be read; the CA in `dir` is kept
 */
export async function refreshCA(client: Pick<SecretClient, 'get'>, shared: SharedCA, log: Logger): Promise<void> {
  const found = await read(client, shared)
  if (found !== undefined) take(shared, readLocal(shared.dir), found.ca, log)
}

/** Drops certificates issued by the previous CA: they will no longer be trusted. */
function take(shared: SharedCA, local: LocalCA, ca: KeyPair, log: Logger): void {
  if (ca.certPem === local.pair?.certPem && ca.keyPem === local.pair.keyPem) return
  if (local.pair !== undefined || local.damage !== undefined) {
    const secretName = `${shared.namespace}/${shared.name}`
    dropLeaves(shared, local.pair, ca)
    log.warn('the CA of this replica is replaced by the one that all replicas share', { secretName, dir: shared.dir })
  }
  writeKeyPair(shared.dir, 'ca', ca)
}

/** A damaged copy only matters if the Secret cannot be read. */
function readLocal(dir: string): LocalCA {
  try {
    return { pair: readKeyPair(dir, 'ca'), damage: undefined }
  } catch (damage) {
    return { pair: undefined, damage }
  }
}

async function settled(
  client: SecretClient,
  shared: SharedCA,
  local: LocalCA,
  log: Logger,
  attempts: number,
): Promise<Shared> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await read(client, shared)) ?? (await create(client, shared, local, log))
    } catch (error) {
      const again = error instanceof StatusError && [403, 409, 429].includes(error.code)
      if (!again || attempt === attempts) throw error
      await sleep(FIRST_WAIT_MS * 2 ** (attempt - 1))
    }
  }
}

/** undefined = none yet. */
async function read(client: Pick<SecretClient, 'get'>, shared: SharedCA): Promise<Shared | undefined> {
  try {
    return parseShared(await client.get(SECRETS, shared), shared)
  } catch (error) {
    if (error instanceof StatusError && error.code === 404) return undefined
    throw error
  }
}

/** Rejects with AlreadyExists (409) if another replica created it first. */
async function create(client: SecretClient, shared: SharedCA, local: LocalCA, log: Logger): Promise<Shared> {
  const { namespace, name, commonName } = shared
  // Clients may trust it: a new one would lock them out.
  if (local.damage !== undefined) throw local.damage
  const ca = local.pair === undefined || hasExpired(local.pair) ? createCA({ commonName }) : local.pair
  const texts = Object.entries(shared.files ?? {}).map(([file, kind]): [string, string] => {
    return [file, knownFile(join(shared.dir, file), kind) ?? kind.make()]
  })
  // cert-manager's CA injector reads ca.crt, in Secrets that allow it, for the caBundle of webhooks.
  const data = { 'tls.crt': ca.certPem, 'tls.key': ca.keyPem, 'ca.crt': ca.certPem, ...Object.fromEntries(texts) }
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name, annotations: { 'cert-manager.io/allow-direct-injection': 'true' } },
    type: 'kubernetes.io/tls',
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, toBase64(text)])),
  }
  try {
    await client.create(SECRETS, secret)
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 404) throw error
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
    await client.create(SECRETS, secret)
  }
  log.info('a CA for all replicas was made', { secretName: `${namespace}/${name}` })
  return { ca, files: Object.fromEntries(texts) }
}

/** This replica's existing file becomes the shared one. @throws {UserError} if it is damaged */
function knownFile(file: string, kind: SharedFile): string | undefined {
  if (!existsSync(file)) return undefined
  const text = readTextFile(file)
  const fault = fileFault(text, kind)
  if (fault !== '') throw new UserError(`${file}: ${fault}`, 'remove the file, and a new one is created')
  return text
}

/** Drops only certificates issued by the previous CA: others were placed there on purpose. A damaged CA is recognised by its name. */
function dropLeaves({ dir, commonName }: SharedCA, before: KeyPair | undefined, ca: KeyPair): void {
  for (const name of LEAVES) {
    const leaf = readKeyPair(dir, name)
    if (leaf === undefined) continue
    const ours =
      before === undefined
        ? !isIssuedBy(leaf, ca) && new X509Certificate(leaf.certPem).issuer === `CN=${commonName}`
        : isIssuedBy(leaf, before) && !isIssuedBy(leaf, ca)
    if (ours) removeKeyPair(dir, name)
  }
}

function keep(file: string, text: string): void {
  if (!existsSync(file) || readTextFile(file) !== text) replaceFile(file, text, 0o600)
}
