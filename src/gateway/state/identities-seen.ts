// Which users a thread has seen lately. No request looks anything up: what is kept of an authenticated credential holds its entry, which is found by name
// once. Nothing is decided by what stands here.

import type { CredentialOrigin, IdentitySeen } from '../api/identity-seen.ts'

/** What is kept of an authenticated credential, in one cluster. */
interface Credential {
  readonly user: { readonly name: string }
  /** undefined = anonymous. */
  readonly origin: CredentialOrigin | undefined
  seen: IdentityEntry | undefined
}

/** Entries of a thread. Those that were seen least recently go first. */
export const MAX_IDENTITIES = 4096
/** Dropped at once, so that a new entry rarely costs a look at all. */
const DROPPED_AT_ONCE = MAX_IDENTITIES / 4
/** Characters of a user or of where it comes from; longer ones are not shown. */
export const MAX_SHOWN_NAME = 256
/** An identity without an open request is shown this long after its latest one. */
export const SHOWN_MS = 3_600_000

export class IdentityEntry implements IdentitySeen {
  readonly cluster: string
  readonly user: string
  readonly by: string
  sinceMs: number
  lastMs: number
  expiresMs = 0
  open = 0
  /** Whether it is among those that are shown. */
  listed = false

  constructor(cluster: string, user: string, by: string, nowMs: number) {
    this.cluster = cluster
    this.user = user
    this.by = by
    this.sinceMs = nowMs
    this.lastMs = nowMs
  }
}

export class IdentitiesSeen {
  readonly #entries = new Map<string, IdentityEntry>()

  get size(): number {
    return this.#entries.size
  }

  /** A request of the user. undefined = it is not shown. */
  see(credential: Credential, cluster: string, nowMs: number): IdentityEntry | undefined {
    const { seen } = credential
    if (seen?.listed === true) {
      seen.lastMs = nowMs
      return seen
    }
    return this.#list(credential, cluster, nowMs)
  }

  /** Those of the last hour, and those with an open request. @param user '' = all */
  report(user: string, nowMs: number): IdentitySeen[] {
    const found: IdentitySeen[] = []
    for (const [key, entry] of this.#entries) {
      if (entry.open === 0 && nowMs - entry.lastMs > SHOWN_MS) this.#drop(key, entry)
      else if (user === '' || entry.user === user) {
        const { cluster, user: name, by, sinceMs, lastMs, expiresMs, open } = entry
        found.push({ cluster, user: name, by, sinceMs, lastMs, expiresMs, open })
      }
    }
    return found
  }

  #list(credential: Credential, cluster: string, nowMs: number): IdentityEntry | undefined {
    const { origin, user } = credential
    if (origin === undefined || user.name.length > MAX_SHOWN_NAME || origin.by.length > MAX_SHOWN_NAME) return undefined
    // Names of clusters have no space, and neither has a URL.
    const key = `${cluster} ${origin.by} ${user.name}`
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      if (this.#entries.size >= MAX_IDENTITIES) this.#makeRoom()
      // It may have open requests that began before it was dropped.
      entry = credential.seen ?? new IdentityEntry(cluster, user.name, origin.by, nowMs)
      entry.listed = true
      this.#entries.set(key, entry)
    }
    entry.lastMs = nowMs
    entry.expiresMs = Math.max(entry.expiresMs, origin.expiresMs)
    credential.seen = entry
    return entry
  }

  /** Those with open requests go last. */
  #makeRoom(): void {
    const age = (entry: IdentityEntry): number =>
      entry.open > 0 ? entry.lastMs : entry.lastMs - Number.MAX_SAFE_INTEGER / 2
    const byAge = [...this.#entries].sort(([, a], [, b]) => age(a) - age(b))
    for (const [key, entry] of byAge.slice(0, DROPPED_AT_ONCE)) this.#drop(key, entry)
  }

  #drop(key: string, entry: IdentityEntry): void {
    entry.listed = false
    this.#entries.delete(key)
  }
}
