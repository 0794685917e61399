// A degrade switch set on this machine: a file in DATA_DIR/degrade.d. Write permission there is permission to set it: directory and file must belong
// to the gateway's user or to root, and must not be writable by others.

import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parse, stringify } from 'yaml'
import { DEGRADE_MODES, type DegradeMode } from '../../../gateway/api/upstream-cluster/degrade-modes.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { nearestName } from '../../../kit/api/validation/nearest-name.ts'
import { makePrivateDirectory, replaceFile } from '../../../pki/io/pki-files.ts'

export interface LocalSwitch {
  /** metadata.name of the UpstreamCluster. */
  readonly cluster: string
  readonly mode: DegradeMode
  /** '' only with Off. */
  readonly reason: string
  /** RFC 3339; '' = no end. */
  readonly expiresAt: string
  readonly shadow: boolean
  /** Who set it, as far as this machine knows. */
  readonly by: string
  /** RFC 3339. */
  readonly at: string
}

/** @param error why the file is ignored, with the fix */
type ReadSwitch = { readonly local: LocalSwitch } | { readonly error: string }

const MAX_BYTES = 64 * 1024
const OTHERS_WRITE = 0o022
const FIELDS = ['mode', 'reason', 'expiresAt', 'shadow', 'by', 'at']
const FILE = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)\.ya?ml$/

export function switchDirectory(dataDir: string): string {
  return join(dataDir, 'degrade.d')
}

/** The cluster that a file in the directory belongs to; undefined = not one of ours. */
export function clusterOfFile(name: string): string | undefined {
  return FILE.exec(name)?.[1]
}

/** Mode 0600, atomically, owned by the owner of the data directory. @throws {Error} from the file system */
export function writeSwitch(dataDir: string, { cluster, ...local }: LocalSwitch): string {
  const { mode, reason, expiresAt, shadow, by, at } = local
  const dir = switchDirectory(dataDir)
  const file = join(dir, `${cluster}.yaml`)
  const ends = expiresAt === '' ? {} : { expiresAt }
  handOver(dir, dataDir)
  asOwnerOf(dataDir, () => {
    makePrivateDirectory(dir)
    replaceFile(file, stringify({ mode, reason, ...ends, ...(shadow && { shadow }), by, at }), 0o600)
  })
  return file
}

/** A directory once created by root is given to the owner of the data directory. */
function handOver(dir: string, dataDir: string): void {
  const { uid, gid } = statSync(dataDir)
  if (process.geteuid?.() !== 0 || uid === 0 || lstatSync(dir, { throwIfNoEntry: false })?.uid !== 0) return
  // By descriptor: the path may lead elsewhere a moment later.
  const opened = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    if (fstatSync(opened).uid === 0) fchownSync(opened, uid, gid)
  } finally {
    closeSync(opened)
  }
}

/** False if there is none. @throws {Error} from the file system */
export function removeSwitch(dataDir: string, cluster: string): boolean {
  const before = ['yaml', 'yml'].map((end) => join(switchDirectory(dataDir), `${cluster}.${end}`))
  return asOwnerOf(dataDir, () => {
    const existing = before.filter((file) => lstatSync(file, { throwIfNoEntry: false }) !== undefined)
    for (const file of existing) rmSync(file)
    return existing.length > 0
  })
}

/**
 * Root acts as the owner of the data directory: the gateway must be able to read what is written, and symbolic links placed there by the owner must
 * not lead root anywhere that the owner could not go.
 */
function asOwnerOf<T>(dataDir: string, action: () => T): T {
  const { uid, gid } = statSync(dataDir)
  const { geteuid, seteuid, getegid, setegid, getgroups, setgroups } = process
  if (geteuid?.() !== 0 || uid === 0 || getegid === undefined || getgroups === undefined) return action()
  const before = { gid: getegid(), groups: getgroups() }
  setgroups?.([])
  setegid?.(gid)
  seteuid?.(uid)
  try {
    return action()
  } finally {
    seteuid?.(0)
    setegid?.(before.gid)
    setgroups?.(before.groups)
  }
}

/** Why a directory or file is not trusted; '' = it is. @param uid of this process */
export function distrust({ uid: owner, mode }: Pick<Stats, 'uid' | 'mode'>, uid: number): string {
  if (owner !== uid && owner !== 0) return `it belongs to user ${owner}, neither to the gateway's (${uid}) nor to root`
  if ((mode & OTHERS_WRITE) !== 0) return 'others may write it: chmod go-w'
  return ''
}

/** Never throws. undefined = it is gone. */
export function readSwitchFile(dir: string, name: string, uid: number): ReadSwitch | undefined {
  const file = join(dir, name)
  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  if (!stat.isFile()) return { error: 'it is not a plain file' }
  const why = distrust(stat, uid)
  if (why !== '') return { error: why }
  if (stat.size > MAX_BYTES) return { error: `it is larger than ${MAX_BYTES} bytes` }
  try {
    return parseSwitch(clusterOfFile(name) ?? '', readFileSync(file, 'utf8'), stat)
  } catch (error) {
    return { error: error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error) }
  }
}

function parseSwitch(cluster: string, text: string, { uid, mtimeMs }: Stats): ReadSwitch {
  const value: unknown = parse(text, { logLevel: 'error' })
  if (!isRecord(value)) return { error: 'it has no fields; write at least mode and reason' }
  for (const field of Object.keys(value)) {
    if (!FIELDS.includes(field)) return { error: `unknown field ${JSON.stringify(field)}${meant(field, FIELDS)}` }
  }
  const { reason = '', expiresAt = '', shadow = false, by = `user ${uid}`, at } = value
  const mode = DEGRADE_MODES.find((known) => known.toLowerCase() === String(value['mode']).toLowerCase())
  if (mode === undefined) {
    const asked = String(value['mode'])
    return {
      error: `mode ${JSON.stringify(asked)} is not one of ${DEGRADE_MODES.join(', ')}${meant(asked, DEGRADE_MODES)}`,
    }
  }
  if (typeof shadow !== 'boolean') return { error: 'shadow is true or false' }
  if (typeof reason !== 'string' || typeof by !== 'string') return { error: 'reason and by are texts' }
  if (mode !== 'Off' && reason.trim() === '') return { error: `${mode} needs a reason: every refused client reads it` }
  if (
    expiresAt !== '' &&
    !(typeof expiresAt === 'string' && TIME.test(expiresAt) && !Number.isNaN(Date.parse(expiresAt)))
  ) {
    return { error: 'expiresAt is not a time like 2030-01-31T12:00:00Z' }
  }
  const written = `${new Date(mtimeMs).toISOString().slice(0, 19)}Z`
  const since = typeof at === 'string' && TIME.test(at) ? at : written
  return { local: { cluster, mode, reason, expiresAt: String(expiresAt), shadow, by, at: since } }
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

function meant(text: string, names: readonly string[]): string {
  const nearest = nearestName(text, names)
  return nearest === '' ? '' : `; did you mean ${nearest}?`
}

/** The OS user that runs this process; under sudo, the original user. */
export function machineUser(): string {
  const uid = process.getuid?.() ?? -1
  const { SUDO_USER: before = '' } = process.env
  return `${userName()} (uid ${uid})${before === '' ? '' : `, as sudo of ${before}`}`
}

export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container the user may have no name.
    return 'user'
  }
}
