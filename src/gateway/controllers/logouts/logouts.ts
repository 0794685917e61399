// Keeps the sessions that OpenID providers have ended, for all threads, and as EndedSession objects for the other replicas and the next start. A logout
// is in force here before it is written. It is forgotten, and its object removed, once every token from before it has expired.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../../kit/api/ports.ts'
import { metaTime } from '../../../kit/core/text/meta-time.ts'
import { RareWarnings } from '../../../kit/io/logs/rare-warnings.ts'
import type { Tickable } from '../../../kit/io/world/coarse-ticker.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { apiVersionOf } from '../../../kube/api/resource-kind.ts'
import { isMissing, StatusError } from '../../../kube/api/status.ts'
import { Informer } from '../../../kube/controllers/kernel/informer.ts'
import { patchSame } from '../../../kube/controllers/kernel/object-patch.ts'
import { type ReconcileOutcome, WorkQueue } from '../../../kube/controllers/kernel/work-queue.ts'
import { ENDED_SESSIONS, type EndedSessionSpec, endedSessionErrors } from '../../api/ended-session-kind.ts'
import type { EndedSession, LogoutOutcome } from '../../api/token-session.ts'
import type { SessionChange } from '../../core/logout/ended-session.ts'
import { forgottenAtMs } from '../../core/logout/token-session.ts'
import { sha256 } from '../../io/reviews/credential-hashes.ts'
import { EndedSessions } from '../../state/ended-sessions.ts'

interface LogoutsDeps {
  /** undefined = objects are files, so that no other replica can be told. */
  readonly client: ObjectClient | undefined
  readonly clock: Clock
  /** In [0, 1). */
  random(): number
  readonly log: Logger
  /** To all gateway threads. */
  publish(change: SessionChange): void
}

/** Logouts that are remembered. */
export const MAX_ENDED_SESSIONS = 20_000
/** Sessions of one user that are remembered one by one; the next logout then ends all of the user until then. */
export const MAX_ENDED_OF_USER = 64
/** How often those are looked for that can be forgotten. */
const FORGET_EVERY_MS = 60_000
/** All replicas remove an object, so not at once: the first one does it for all. */
const REMOVED_WITHIN_MS = 60_000
/** Concurrent removals. */
const REMOVALS = 2
const FIELD_MANAGER = 'portcullis'

export class Logouts implements Tickable {
  readonly #deps: LogoutsDeps
  readonly #ended = new EndedSessions()
  readonly #removals: WorkQueue
  readonly #tooMany: RareWarnings
  /** undefined = no cluster has an issuer that tells of logouts. */
  #objects: Informer<EndedSession> | undefined
  #lookedMs = 0

  constructor(deps: LogoutsDeps) {
    this.#deps = deps
    const { clock, log } = deps
    this.#removals = new WorkQueue({
      reconcile: (name) => this.#remove(name),
      onError: (_, error) => log.error('an EndedSession could not be removed', { error }),
      clock,
      random: () => deps.random(),
      limit: REMOVALS,
    })
    this.#tooMany = new RareWarnings({ log, clock }, 'error')
    this.#lookedMs = clock.monotonic()
  }

  get size(): number {
    return this.#ended.size
  }

  /** The logouts that other replicas were told of are known, or there is none to know. */
  get known(): boolean {
    return this.#objects === undefined || this.#objects.listed
  }

  /** From the first cluster on whose issuer tells of logouts. */
  follow(): void {
    const { client, log } = this.#deps
    if (client === undefined || this.#objects !== undefined) return
    this.#objects = new Informer<EndedSession>({
      client,
      kind: ENDED_SESSIONS,
      keep: (object, _, name) => this.#learn(object, name),
      onGone: (_, name) => this.#forget(name),
      onState: (current, message) => {
        if (!current)
          log.warn('EndedSessions cannot be followed: logouts that other replicas are told of end here late', {
            why: message,
          })
      },
    })
  }

  /** A provider has ended these. Never rejects. */
  async end(all: readonly EndedSession[]): Promise<LogoutOutcome> {
    let outcome: LogoutOutcome = this.#deps.client === undefined ? 'here' : 'everywhere'
    for (const told of all) {
      const one = await this.#endOne(told)
      if (one !== 'everywhere' && outcome !== 'full') outcome = one
    }
    return outcome
  }

  /** Once a second. */
  tick(): void {
    const { clock } = this.#deps
    if (clock.monotonic() - this.#lookedMs < FORGET_EVERY_MS) return
    this.#lookedMs = clock.monotonic()
    for (const [name, ended] of [...this.#ended.entries()]) if (this.#isOver(ended)) this.#forget(name)
    for (const [name, ended] of this.#objects?.objects ?? []) if (this.#isOver(ended)) this.#removeLater(name)
  }

  async stop(): Promise<void> {
    await this.#objects?.stop()
    await this.#removals.stop()
  }

  async #endOne(told: EndedSession): Promise<LogoutOutcome> {
    const { client, log } = this.#deps
    if (this.#isOver(told)) return 'everywhere'
    const ended = this.#widened(told)
    const name = nameOfLogout(ended)
    if (this.#ended.get(name) === undefined && this.#ended.size >= MAX_ENDED_SESSIONS) {
      this.#tooMany.warn('a logout is not in force: too many are remembered', { issuer: told.issuer })
      return 'full'
    }
    this.#set(name, ended)
    log.info('a session was ended at its provider', { issuer: told.issuer, session: name })
    if (client === undefined) return 'here'
    // A provider that repeats itself costs the API server nothing.
    if ((this.#objects?.objects.get(name)?.endedSeconds ?? 0) >= ended.endedSeconds) return 'everywhere'
    try {
      await write(client, name, ended)
      return 'everywhere'
    } catch (error) {
      log.error('a logout is in force in this replica alone: its EndedSession could not be written', {
        session: name,
        error,
      })
      return 'failed'
    }
  }

  /** A user who logs in and out all day has one entry, which ends more than it must: the sessions that go on need a new token. */
  #widened(told: EndedSession): EndedSession {
    if (told.sid === '' || told.sub === '' || this.#ended.get(nameOfLogout(told)) !== undefined) return told
    let of = 0
    for (const one of this.#ended.about({ sid: '', sub: told.sub })) if (one.source === told.source) of++
    return of < MAX_ENDED_OF_USER ? told : { ...told, sid: '' }
  }

  #learn(object: JsonObject, name: string): EndedSession | undefined {
    const ended = readEndedSession(object)
    if (ended === undefined) return undefined
    if (this.#isOver(ended)) this.#removeLater(name)
    else if (this.#ended.get(name) !== undefined || this.#ended.size < MAX_ENDED_SESSIONS) this.#set(name, ended)
    else this.#tooMany.warn('an EndedSession is not in force: there are too many', { session: name })
    return ended
  }

  /** The latest counts: what is read may be older than what this replica was told. */
  #set(name: string, ended: EndedSession): void {
    const known = this.#ended.get(name)
    if (known !== undefined && known.endedSeconds >= ended.endedSeconds) return
    this.#ended.set(name, ended)
    this.#deps.publish({ id: name, ended })
  }

  #forget(name: string): void {
    if (this.#ended.get(name) === undefined) return
    this.#ended.set(name, undefined)
    this.#deps.publish({ id: name, ended: undefined })
  }

  #isOver(ended: EndedSession): boolean {
    return forgottenAtMs(ended) <= this.#deps.clock.now()
  }

  #removeLater(name: string): void {
    this.#removals.add(name, this.#deps.random() * REMOVED_WITHIN_MS)
  }

  async #remove(name: string): Promise<ReconcileOutcome> {
    const { client, log } = this.#deps
    const ended = this.#objects?.objects.get(name)
    // Another replica has removed it, or the user was logged out again.
    if (client === undefined || ended === undefined || !this.#isOver(ended)) return 'done'
    try {
      await client.delete(ENDED_SESSIONS, { namespace: '', name })
      return 'written'
    } catch (error) {
      if (isMissing(error, name)) return 'done'
      log.warn('an EndedSession that has no effect any more cannot be removed', { session: name, error })
      return 'failed'
    }
  }
}

function nameOfLogout(ended: EndedSession): string {
  return sha256(logoutKey(ended))
}

/** Creates the object, or brings it to the time of this logout. @throws (rejects) if it cannot be written */
async function write(client: ObjectClient, name: string, ended: EndedSession): Promise<void> {
  const object = endedSessionObject(name, ended)
  try {
    await client.create(ENDED_SESSIONS, object)
  } catch (error) {
    if (!(error instanceof StatusError && error.reason === 'AlreadyExists')) throw error
    const there = await client.get(ENDED_SESSIONS, { namespace: '', name })
    const before = readEndedSession(there)
    if (before !== undefined && before.endedSeconds >= ended.endedSeconds) return
    const target = { client, kind: ENDED_SESSIONS, fieldManager: FIELD_MANAGER }
    await patchSame(target, there, { spec: object['spec'] })
  }
}

// A logout as an EndedSession object, and back.

export function endedSessionObject(name: string, ended: EndedSession): JsonObject {
  const { issuer, source: keys, audiences, sid, sub, endedSeconds } = ended
  const spec: EndedSessionSpec = {
    issuer,
    keys,
    audiences,
    ...(sid !== '' && { sid }),
    ...(sub !== '' && { sub }),
    endedAt: metaTime(endedSeconds * 1000),
  }
  return { apiVersion: apiVersionOf(ENDED_SESSIONS), kind: ENDED_SESSIONS.kind, metadata: { name }, spec }
}

/** undefined = it ends nothing: a server without the CRD's schema may have any object. */
function readEndedSession(object: JsonObject): EndedSession | undefined {
  const { spec } = object
  if (endedSessionErrors(spec).length > 0) return undefined
  const { issuer, keys, audiences, sid = '', sub = '', endedAt } = recordOf(spec) as Partial<EndedSessionSpec>
  if (issuer === undefined || keys === undefined || audiences === undefined || endedAt === undefined) return undefined
  return { issuer, source: keys, audiences, sid, sub, endedSeconds: Date.parse(endedAt) / 1000 }
}

/** What identifies a logout: the same once more, or a later one of the same, has the same. */
function logoutKey({ source, audiences, sid, sub }: EndedSession): string {
  return JSON.stringify([source, audiences, sid, sub])
}
