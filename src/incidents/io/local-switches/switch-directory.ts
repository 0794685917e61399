// Follows the degrade switches set on this machine, by polling: DATA_DIR may be on a file system without events.

import { lstatSync, readdirSync, statSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { compareText } from '../../../kit/api/json/sorted-json.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { clusterOfFile, distrust, type LocalSwitch, readSwitchFile, switchDirectory } from './switch-file.ts'

export interface LocalSwitches {
  /** Keyed by cluster. */
  readonly switches: ReadonlyMap<string, LocalSwitch>
  /** Why a file is ignored, by file. */
  readonly errors: ReadonlyMap<string, string>
}

/** In force within a second, including threads. */
const LOOK_MS = 250
const NOTHING: LocalSwitches = { switches: new Map(), errors: new Map() }

export class SwitchDirectory {
  readonly #dir: string
  readonly #uid: number
  readonly #onChange: (now: LocalSwitches) => void
  #seen = ''
  #last: LocalSwitches = NOTHING
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  /** @param onChange called when files have changed */
  constructor(dir: string, onChange: (now: LocalSwitches) => void, uid: number = process.getuid?.() ?? 0) {
    this.#dir = dir
    this.#uid = uid
    this.#onChange = onChange
  }

  /** The current switches; keeps polling from then on. Never throws. */
  start(): LocalSwitches {
    this.#seen = identityNow(this.#dir)
    this.#last = this.#read()
    this.#later()
    return this.#last
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #later(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => void this.#look(), LOOK_MS).unref()
  }

  async #look(): Promise<void> {
    const identity = await identityOf(this.#dir)
    if (!this.#stopped && identity !== this.#seen) {
      this.#seen = identity
      this.#last = this.#read()
      this.#onChange(this.#last)
    }
    this.#later()
  }

  #read(): LocalSwitches {
    const stat = lstatSync(this.#dir, { throwIfNoEntry: false })
    if (stat === undefined) return NOTHING
    const why = stat.isDirectory() ? distrust(stat, this.#uid) : 'it is not a directory'
    if (why !== '') return { switches: new Map(), errors: new Map([[this.#dir, why]]) }
    const switches = new Map<string, LocalSwitch>()
    const errors = new Map<string, string>()
    for (const name of namesIn(this.#dir, errors)) {
      const cluster = clusterOfFile(name)
      if (cluster === undefined) continue
      const file = join(this.#dir, name)
      const read = readSwitchFile(this.#dir, name, this.#uid)
      if (read === undefined) continue
      if ('error' in read) {
        errors.set(file, read.error)
        // An error while editing must not lift the switch.
        const before = this.#last.switches.get(cluster)
        if (before !== undefined && !switches.has(cluster)) switches.set(cluster, before)
      } else if (switches.has(cluster)) errors.set(file, `another file is about ${cluster} too`)
      else switches.set(cluster, read.local)
    }
    return { switches, errors }
  }
}

/** The switches as the gateway that owns the data directory reads them now. */
export function switchesOf(dataDir: string): LocalSwitches {
  const uid = statSync(dataDir, { throwIfNoEntry: false })?.uid
  if (uid === undefined) return NOTHING
  const directory = new SwitchDirectory(switchDirectory(dataDir), () => undefined, uid)
  const found = directory.start()
  directory.stop()
  return found
}

function namesIn(dir: string, errors?: Map<string, string>): readonly string[] {
  try {
    return readdirSync(dir).sort(compareText)
  } catch (error) {
    errors?.set(dir, errorMessage(error))
    return []
  }
}

function identityNow(dir: string): string {
  return [
    dir,
    ...namesIn(dir)
      .filter(isSwitch)
      .map((name) => join(dir, name)),
  ]
    .map((file) => describe(file, lstatSync(file, { throwIfNoEntry: false, bigint: true })))
    .join(' ')
}

async function identityOf(dir: string): Promise<string> {
  const names = (await readdir(dir).catch((): string[] => [])).sort(compareText).filter(isSwitch)
  const files = [dir, ...names.map((name) => join(dir, name))]
  const stats = await Promise.all(files.map((file) => lstat(file, { bigint: true }).catch(() => undefined)))
  return files.map((file, i) => describe(file, stats[i])).join(' ')
}

function isSwitch(name: string): boolean {
  return clusterOfFile(name) !== undefined
}

/** The directory changes with every file in it, even irrelevant ones: only its owner and mode matter. */
function describe(file: string, stat: Identity | undefined): string {
  if (stat === undefined) return ''
  const { dev, ino, size, mtimeNs, ctimeNs, uid, mode } = stat
  return isSwitch(file.slice(file.lastIndexOf('/') + 1))
    ? [file, dev, ino, size, mtimeNs, ctimeNs, uid, mode].join(':')
    : [file, ino, uid, mode].join(':')
}

interface Identity {
  readonly dev: bigint
  readonly ino: bigint
  readonly size: bigint
  readonly mtimeNs: bigint
  readonly ctimeNs: bigint
  readonly uid: bigint
  readonly mode: bigint
}
