// One CA for all replicas: a Secret where the objects are, made by the first replica, used by all. Each keeps a copy in its own
// directory, from which the rest of the process works as if the CA had been made there; it is what a start falls back to while that
// API server is away.

import { X509Certificate } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { NAMESPACES, SECRETS } from '../../api/kinds/scheme.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import { isRecord } from '../../api/kube/object-shape.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Logger } from '../../api/ports/ports.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { base64 } from '../../core/text/base64.ts'
import { createCA, isIssuedBy, type KeyPair } from './pki.ts'
import {
  existingPairFiles,
  makePrivateDirectory,
  readKeyPair,
  readTextFile,
  replaceFile,
  writeKeyPair,
} from './pki-files.ts'

export interface SharedCA {
  /** The Secret: kubernetes.io/tls, the CA as tls.crt and tls.key. */
  readonly namespace: string
  readonly name: string
  /** Where this replica keeps its copy: ca.crt and ca.key. */
  readonly dir: string
  /** Of a CA that is made. */
  readonly commonName: string
  /** Further files of `dir` that all replicas need alike, and how one is made. */
  readonly files?: Readonly<Record<string, () => string>>
  /** Where the rights to share it are missing: what else an operator can do than grant them. */
  readonly otherwise: string
  /** Whether a start without those rights is refused; else this replica goes on with a CA of its own, and says so. */
  readonly required: boolean
}

/** What is in the Secret. */
interface Shared {
  readonly ca: KeyPair
  readonly files: Readonly<Record<string, string>>
}

/** Certificates of the CA before, which nobody would trust any more. */
const LEAVES = ['tls', 'admin']
/** An API server that comes back refuses its first requests, until it has read its RBAC objects. */
const ATTEMPTS = 5
const FIRST_WAIT_MS = 250

/**
 * Makes the CA in `dir` the one that all replicas have.
 * @throws {UserError} when it cannot be shared: replicas with CAs of their own would each be trusted by some clients only
 */
export async function shareCA(client: ObjectClient, shared: SharedCA, log: Logger): Promise<void> {
  makePrivateDirectory(shared.dir)
  const local = readKeyPair(shared.dir, 'ca')
  const secret = `${shared.namespace}/${shared.name}`
  try {
    const { ca, files } = await settled(client, shared, local, log)
    for (const [file, text] of Object.entries(files)) keep(join(shared.dir, file), text)
    if (ca.certPem === local?.certPem) return
    if (local !== undefined) {
      dropLeaves(shared.dir, local)
      log.warn('the CA of this replica is replaced by the one that all replicas share', { secret, dir: shared.dir })
    }
    writeKeyPair(shared.dir, 'ca', ca)
  } catch (error) {
    if (error instanceof UserError) throw error
    const why = error instanceof Error ? error.message : String(error)
    if (error instanceof StatusError && error.code < 500 && error.code !== 429) {
      const fix = `apply deploy/rbac/control-cluster.yaml, or ${shared.otherwise}`
      const message = `the CA that all replicas share cannot be kept in Secret ${secret}`
      if (shared.required) throw new UserError(`${message}: ${why}`, fix)
      log.warn(`${message}; this replica goes on with one of its own`, { why, fix })
      return
    }
    if (local === undefined) {
      throw new UserError(`the CA that all replicas share cannot be read: ${why}`, 'is the API server up?')
    }
    log.warn('the CA that all replicas share cannot be read; the copy of this replica is used', { secret, why })
  }
}

async function settled(
  client: ObjectClient,
  shared: SharedCA,
  local: KeyPair | undefined,
  log: Logger,
): Promise<Shared> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await read(client, shared)) ?? (await create(client, shared, local, log))
    } catch (error) {
      const again = error instanceof StatusError && [403, 409, 429].includes(error.code)
      if (!again || attempt === ATTEMPTS) throw error
      await sleep(FIRST_WAIT_MS * 2 ** (attempt - 1))
    }
  }
}

/** undefined = there is none yet. */
async function read(client: ObjectClient, shared: SharedCA): Promise<Shared | undefined> {
  try {
    return parse(await client.get(SECRETS, shared), shared)
  } catch (error) {
    if (error instanceof StatusError && error.code === 404) return undefined
    throw error
  }
}

/** Rejects with AlreadyExists (409) when another replica was faster. */
async function create(
  client: ObjectClient,
  shared: SharedCA,
  local: KeyPair | undefined,
  log: Logger,
): Promise<Shared> {
  const { namespace, name, dir, commonName } = shared
  const ca = local ?? createCA({ commonName })
  const texts = Object.entries(shared.files ?? {}).map(([file, make]): [string, string] => {
    const known = join(dir, file)
    return [file, existsSync(known) ? readTextFile(known) : make()]
  })
  const data = { 'tls.crt': ca.certPem, 'tls.key': ca.keyPem, ...Object.fromEntries(texts) }
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name },
    type: 'kubernetes.io/tls',
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, base64(text)])),
  }
  try {
    await client.create(SECRETS, secret)
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 404) throw error
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
    await client.create(SECRETS, secret)
  }
  log.info('a CA for all replicas was made', { secret: `${namespace}/${name}` })
  return { ca, files: Object.fromEntries(texts) }
}

function parse(secret: JsonObject, shared: SharedCA): Shared {
  const data = isRecord(secret['data']) ? secret['data'] : {}
  const text = (key: string): string => {
    const value = data[key]
    if (typeof value === 'string' && value !== '') return Buffer.from(value, 'base64').toString('utf8')
    throw damaged(shared, `it has no ${key}`)
  }
  const ca = { certPem: text('tls.crt'), keyPem: text('tls.key') }
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(ca.certPem)
  } catch {
    throw damaged(shared, 'tls.crt is no certificate')
  }
  if (!certificate.ca) throw damaged(shared, 'tls.crt is no CA certificate')
  if (certificate.validToDate.getTime() <= Date.now()) throw damaged(shared, `it ended on ${certificate.validTo}`)
  return { ca, files: Object.fromEntries(Object.keys(shared.files ?? {}).map((file) => [file, text(file)])) }
}

function damaged({ namespace, name }: SharedCA, why: string): UserError {
  return new UserError(
    `Secret ${namespace}/${name} holds no CA that replicas can share: ${why}`,
    'delete it and start again: another one is made, and clients need its tls.crt',
  )
}

/** Only what the CA of before has issued: others were put there by somebody. */
function dropLeaves(dir: string, ca: KeyPair): void {
  for (const name of LEAVES) {
    const leaf = readKeyPair(dir, name)
    if (leaf === undefined || !isIssuedBy(leaf, ca)) continue
    for (const file of existingPairFiles(dir, name)) rmSync(file)
  }
}

function keep(file: string, text: string): void {
  if (!existsSync(file) || readTextFile(file) !== text) replaceFile(file, text, 0o600)
}
