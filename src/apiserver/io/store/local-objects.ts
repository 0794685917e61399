// Objects of the embedded API server, for commands on its machine: through the API while the gateway runs, otherwise in its store. Read access to the
// data directory makes one an administrator: it contains the keys of all credentials.

import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import process from 'node:process'
import { controlPaths } from '../../../gateway/io/listener/control-paths.ts'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { SILENT } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { ADMIN_GROUP } from '../../../kube/api/own-names.ts'
import { type ResourceKind, resourceName } from '../../../kube/api/resource-kind.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { clientOf } from '../../../kube/io/client.ts'
import { readControlTokenKey } from '../../../pki/io/control-pki.ts'
import { issueControlToken } from '../../../pki/io/control-tokens.ts'
import { readTextFile } from '../../../pki/io/pki-files.ts'
import { openKeyedStore } from './keyed-store.ts'
import { lockStore, StoreInUse } from './lock.ts'

interface Created {
  /** The resulting object: a different one if the name was taken. */
  readonly object: JsonObject
  /** False: the name was taken. */
  readonly isNew: boolean
}

export interface LocalObjects {
  readonly running: boolean
  list(kind: ResourceKind): Promise<readonly JsonObject[]>
  /** Cluster-scoped kinds only. */
  create(kind: ResourceKind, object: JsonObject): Promise<Created>
  /** Whether it existed. */
  remove(kind: ResourceKind, name: string): Promise<boolean>
}

export interface LocalOptions {
  /** The gateway's `--data-dir`. */
  readonly dataDir: string
  /** Its `--store-key-file`; used if it is not running. */
  readonly storeKeyFile?: string | undefined
  /** Wall clock, milliseconds. */
  readonly now: () => number
}

const TOKEN_TTL_SECONDS = 60

/** @throws {UserError} if neither way works */
export async function withLocalObjects<T>(
  options: LocalOptions,
  action: (objects: LocalObjects) => Promise<T>,
): Promise<T> {
  const { store: file, storeKey } = controlPaths(options.dataDir)
  if (!existsSync(file)) {
    throw new UserError(
      `there is no store of an embedded API server in ${options.dataDir}`,
      'give the --data-dir of a gateway with --source embedded that has been started before',
    )
  }
  if (isOpen(file)) return withRunning(options, action)
  const store = openKeyedStore({ file, keyFile: options.storeKeyFile ?? storeKey, existing: true })
  try {
    return await action({
      running: false,
      list: async (kind) => store.list(resourceName(kind), { namespace: '' }).map(({ object }) => object),
      create: async (kind, object) => {
        const key = { resource: resourceName(kind), namespace: '', name: nameOf(object) }
        const known = store.get(key)
        if (known !== undefined) return { object: known.object, isNew: false }
        const metadata = {
          name: key.name,
          uid: randomUUID(),
          creationTimestamp: metaTime(options.now()),
          generation: 1,
        }
        const [written] = store.write([{ ...key, object: { ...object, metadata }, expected: 0 }])
        return { object: written?.object ?? object, isNew: true }
      },
      remove: async (kind, name) => {
        const key = { resource: resourceName(kind), namespace: '', name }
        const known = store.get(key)
        if (known === undefined) return false
        store.write([{ ...key, object: undefined, expected: known.revision }])
        return true
      },
    })
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    throw new UserError(error.message, 'keep a copy of its files first')
  } finally {
    store.close()
  }
}

function isOpen(file: string): boolean {
  try {
    lockStore(file).release()
    return false
  } catch (error) {
    if (error instanceof StoreInUse) return true
    throw error
  }
}

/** The OS account that runs the command; a container may have none for this uid. */
function accountName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid-${process.getuid?.() ?? ''}`
  }
}

async function withRunning<T>(
  { dataDir, now }: LocalOptions,
  action: (objects: LocalObjects) => Promise<T>,
): Promise<T> {
  const { pki, caCertificate, address } = controlPaths(dataDir)
  if (!existsSync(address)) {
    throw new UserError(
      'the gateway is running but does not say where its API server is',
      'wait until it is ready; one of an older version: stop it, or write RevokedCredentials with kubectl',
    )
  }
  const server = readTextFile(address).trim()
  const tls = { ca: readTextFile(caCertificate), cert: '', key: '', serverName: '', insecure: false }
  // A separate user name for the audit log, which cannot have been revoked by accident.
  const user = `portcullis:local:${accountName()}`
  const token = issueControlToken(readControlTokenKey(pki), {
    user,
    groups: [ADMIN_GROUP],
    ttlSeconds: TOKEN_TTL_SECONDS,
    nowMs: now(),
  })
  const access = { server, proxyUrl: '', tls, headers: { authorization: `Bearer ${token}` } }
  const client = clientOf({ server, access: async () => access, renew: () => false }, { log: SILENT })
  try {
    return await action({
      running: true,
      list: async (kind) => (await client.list(kind, '')).items,
      create: async (kind, object) => {
        try {
          return { object: await client.create(kind, object), isNew: true }
        } catch (error) {
          if (!(error instanceof StatusError && error.reason === 'AlreadyExists')) throw error
          return { object: await client.get(kind, { namespace: '', name: nameOf(object) }), isNew: false }
        }
      },
      remove: async (kind, name) => {
        try {
          await client.delete(kind, { namespace: '', name })
          return true
        } catch (error) {
          if (error instanceof StatusError && error.code === 404) return false
          throw error
        }
      },
    })
  } catch (error) {
    if (error instanceof UserError) throw error
    const said = errorMessage(error)
    throw new UserError(`the API server of the gateway at ${server} failed: ${said}`, 'look at its log, or use kubectl')
  } finally {
    await client.close()
  }
}
