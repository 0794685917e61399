// The Secrets of a namespace that UpstreamClusters refer to; no others are kept in memory. If the whole namespace may be watched, it is; otherwise
// each Secret is read separately, and again every minute. A refusal is not final: an API server that has just started answers its first requests with
// 403, until it has read its RBAC objects.

import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { FieldErrors } from '../../../kit/api/validation/field-errors.ts'
import { SECRETS } from '../../../kube/api/kinds/secret-kind.ts'
import type { Following, ObjectClient } from '../../../kube/api/object-client.ts'
import { StatusError } from '../../../kube/api/status.ts'
import { readSecret, secretName } from './secret-references.ts'
import { type ReleaseTerms, releaseTerms } from './secret-release.ts'

/** The state of a Secret. No terms unless it is `present`. */
export interface KnownSecretData extends ReleaseTerms {
  /** `unread`: no response yet; its users wait. `refused`: it must not be used, whether it exists or not. */
  readonly state: 'unread' | 'absent' | 'present' | 'unreadable' | 'refused'
  /** Reason for `unreadable` and `refused`. */
  readonly message: string
  /** The data, if `present`. */
  readonly data: ReadonlyMap<string, Buffer>
}

interface SecretEntry {
  readonly namespace: string
  readonly name: string
  known: KnownSecretData
  /** Number of references to it. */
  users: number
  /** resourceVersion of the known state, or of its deletion; '' = none. */
  version: string
  failures: number
  /** A read is running or queued. */
  queued: boolean
}

export interface NamedSecretsOptions {
  readonly client: ObjectClient
  readonly log: Logger
  /** The state of these (`namespace/name`) changed. */
  readonly onChange: (names: readonly string[]) => void
  /** Milliseconds between two reads of a Secret that cannot be watched. Default 60 s. */
  readonly refreshMs: number
  /** For all of them. */
  readonly namespace: string
  /** False: each is read separately, whatever the permissions. */
  readonly watched: boolean
}

const NO_DATA: ReadonlyMap<string, Buffer> = new Map()
/** Before the first response. */
export const UNREAD: KnownSecretData = { state: 'unread', message: '', data: NO_DATA, labelled: false }
const ABSENT: KnownSecretData = { state: 'absent', message: '', data: NO_DATA, labelled: false }
/** A list with this selector returns nothing, but shows whether listing is allowed. */
const SELECT_NOTHING = 'portcullis.io/none=none'
const PARALLEL_READS = 8
const FIRST_RETRY_MS = 1_000
/** Backoff after a refused watch; doubles each time. */
const FIRST_TRIAL_MS = 1_000
/** Finally once per this many refreshes: permissions may be granted later. */
const REFRESHES_PER_TRIAL = 10
/** This many refusals after a disconnect are not reported: a server that has just started has cold RBAC caches. */
const EXPECTED_REFUSALS = 3

export class NamedSecrets {
  readonly #client: ObjectClient
  readonly #log: Logger
  readonly #onChange: (names: readonly string[]) => void
  readonly #refreshMs: number
  readonly #namespace: string
  readonly #watched: boolean
  readonly #entries = new Map<string, SecretEntry>()
  readonly #queue: string[] = []
  readonly #stopping = new AbortController()
  #readers = 0
  #following: Following | undefined
  /** Until the first list of Secrets has arrived, or is known to be forbidden, no Secret is read separately. */
  #mode: 'idle' | 'starting' | 'followed' | 'single' = 'idle'
  #task: Promise<void> = Promise.resolve()
  /** Timer of the separate reads. */
  #refreshing: NodeJS.Timeout | undefined

  constructor({ client, log, onChange, refreshMs, namespace, watched }: NamedSecretsOptions) {
    this.#namespace = namespace
    this.#watched = watched
    this.#client = client
    this.#log = log
    this.#onChange = onChange
    this.#refreshMs = refreshMs
  }

  get(name: string): KnownSecretData {
    return this.#entries.get(name)?.known ?? UNREAD
  }

  /** Adds a reference to `name` (`namespace/name`). The very first one starts the watch. */
  retain(name: string): void {
    const known = this.#entries.get(name)
    if (known !== undefined) {
      known.users++
      return
    }
    const slash = name.indexOf('/')
    const entry = { namespace: name.slice(0, slash), name: name.slice(slash + 1), known: UNREAD, version: '' }
    this.#entries.set(name, { ...entry, users: 1, failures: 0, queued: false })
    if (this.#mode === 'idle') this.#begin()
    else if (this.#mode !== 'starting') this.#enqueue(name)
  }

  /** Removes a reference; a Secret without references is dropped. */
  release(name: string): void {
    const entry = this.#entries.get(name)
    if (entry !== undefined && --entry.users <= 0) this.#entries.delete(name)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    clearInterval(this.#refreshing)
    await this.#following?.stop()
    await this.#task
  }

  #begin(): void {
    if (!this.#watched) {
      this.#readSingly()
      return
    }
    this.#mode = 'starting'
    this.#task = this.#run(0)
  }

  /**
   * Tries to watch until it is allowed; until then each Secret is read separately. Never rejects. Ends when the watch runs.
   * @param expected this many refusals are not reported
   */
  async #run(expected: number): Promise<void> {
    const { signal } = this.#stopping
    for (let refusals = 0; !signal.aborted; refusals++) {
      const why = await this.#refusal()
      if (signal.aborted) return
      if (why === '') {
        clearInterval(this.#refreshing)
        this.#follow()
        return
      }
      if (refusals === expected) {
        const consequence = `each referenced Secret is read again every ${this.#refreshMs / 1000} s`
        const fields = { namespace: this.#namespace, why, consequence }
        this.#log.warn('Secrets cannot be watched; changes are seen later', fields)
      }
      if (refusals === 0) this.#readSingly()
      const delayMs = Math.min(FIRST_TRIAL_MS * 2 ** Math.min(refusals, 20), this.#refreshMs * REFRESHES_PER_TRIAL)
      await sleep(delayMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #readSingly(): void {
    this.#mode = 'single'
    const readAll = (): void => {
      for (const name of this.#entries.keys()) this.#enqueue(name)
    }
    readAll()
    clearInterval(this.#refreshing)
    this.#refreshing = setInterval(readAll, this.#refreshMs)
    this.#refreshing.unref()
  }

  /** Why Secrets may not be listed; '' if they may, or if unknown: then the watch finds out. */
  async #refusal(): Promise<string> {
    try {
      await this.#client.list(SECRETS, this.#namespace, SELECT_NOTHING)
      return ''
    } catch (error) {
      return error instanceof StatusError && (error.code === 403 || error.code === 401) ? error.message : ''
    }
  }

  #follow(): void {
    let lost = false
    this.#following = this.#client.follow(SECRETS, this.#namespace, {
      onReplace: (objects) => {
        this.#mode = 'followed'
        this.#replace(objects)
      },
      onChange: (type, object) => {
        const changed = this.#take(object, type === 'DELETED')
        if (changed !== undefined) this.#onChange([changed])
      },
      onState: (current, message) => {
        const namespace = this.#namespace
        if (current && lost) this.#log.info('Secrets are watched again', { namespace })
        if (!current) {
          this.#log.warn('Secrets cannot be watched; their known state stays in force', { namespace, why: message })
        }
        lost = !current
        if (!current) this.#task = this.#task.then(() => this.#reconsider())
      },
    })
  }

  /** Permission to watch may have been revoked. */
  async #reconsider(): Promise<void> {
    if (this.#following === undefined || this.#stopping.signal.aborted || (await this.#refusal()) === '') return
    const following = this.#following
    this.#following = undefined
    await following.stop()
    if (this.#stopping.signal.aborted) return
    this.#mode = 'starting'
    // Not awaited: it runs as long as the source.
    const waiting = this.#run(EXPECTED_REFUSALS)
    this.#task = waiting
  }

  #replace(objects: readonly JsonObject[]): void {
    const seen = new Set<string>()
    const changed: string[] = []
    for (const object of objects) {
      const name = keyOf(object)
      if (!this.#entries.has(name)) continue
      seen.add(name)
      if (this.#take(object, false, true) !== undefined) changed.push(name)
    }
    for (const [name, entry] of this.#entries) {
      if (seen.has(name) || entry.known.state === 'absent') continue
      entry.known = ABSENT
      changed.push(name)
    }
    if (changed.length > 0) this.#onChange(changed)
  }

  /**
   * The Secret's name, if it is referenced and has changed.
   * @param listed it comes from a list, and is current even if it is older: the server may have been restored from a backup
   */
  #take(object: JsonObject, gone: boolean, listed = false): string | undefined {
    const name = keyOf(object)
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    const version = versionOf(object)
    if (!listed && isOlder(version, entry.version)) return undefined
    entry.failures = 0
    const same = !gone && version !== '' && version === entry.version && entry.known.state === 'present'
    entry.version = version
    if (same) return undefined
    if (gone) entry.known = ABSENT
    else {
      const data = readSecret(object, new FieldErrors())
      entry.known = { state: 'present', message: '', data, ...releaseTerms(object) }
    }
    return name
  }

  #enqueue(name: string): void {
    const entry = this.#entries.get(name)
    if (entry === undefined || entry.queued || this.#stopping.signal.aborted) return
    entry.queued = true
    this.#queue.push(name)
    if (this.#readers < PARALLEL_READS) void this.#readQueue()
  }

  /** Never rejects. */
  async #readQueue(): Promise<void> {
    this.#readers++
    for (let name = this.#queue.shift(); name !== undefined; name = this.#queue.shift()) {
      if (this.#stopping.signal.aborted) break
      await this.#read(name)
    }
    this.#readers--
  }

  async #read(name: string): Promise<void> {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    const before = entry.version
    entry.queued = false
    try {
      const object = await this.#client.get(SECRETS, entry)
      if (this.#entries.get(name) === entry && this.#take(object, false) !== undefined) this.#changed(name)
    } catch (error) {
      if (this.#entries.get(name) !== entry || this.#stopping.signal.aborted) return
      if (error instanceof StatusError && error.code === 404) {
        // Meanwhile the watch has delivered a newer state.
        if (entry.version !== before || entry.known.state === 'absent') return
        entry.known = ABSENT
        this.#changed(name)
      } else this.#unreadable(name, entry, error)
    }
  }

  /** A known state is kept; a Secret that was never read becomes unreadable and is retried. */
  #unreadable(name: string, entry: SecretEntry, error: unknown): void {
    const message = errorMessage(error)
    const retryMs = Math.min(this.#refreshMs, FIRST_RETRY_MS * 2 ** Math.min(entry.failures++, 20))
    sleep(retryMs, undefined, { signal: this.#stopping.signal }).then(
      () => this.#enqueue(name),
      () => undefined,
    )
    const { state } = entry.known
    if (state === 'present' || state === 'absent' || entry.known.message === message) return
    entry.known = { state: 'unreadable', message, data: NO_DATA, labelled: false }
    this.#changed(name)
  }

  #changed(name: string): void {
    if (!this.#stopping.signal.aborted) this.#onChange([name])
  }
}

function keyOf({ metadata }: JsonObject): string {
  const { namespace, name } = recordOf(metadata)
  return secretName(namespace, name)
}

function versionOf({ metadata }: JsonObject): string {
  return textOf(recordOf(metadata)['resourceVersion'])
}

/** Decimal numbers without leading zeros (apimachinery/pkg/util/resourceversion); '' is older than everything. */
function isOlder(a: string, b: string): boolean {
  return a === '' ? false : a.length === b.length ? a < b : a.length < b.length
}
