// The sessions that have been ended at their OpenID providers, as a thread knows them, by session and by user. Each logout has an id: the same once more
// replaces itself.

import type { EndedSession, TokenSession } from '../api/token-session.ts'
import { hasEnded } from '../core/logout/token-session.ts'

export class EndedSessions {
  readonly #all = new Map<string, EndedSession>()
  /** By everything that a token may be compared with: its session, its user. */
  readonly #bySubject = new Map<string, Map<string, EndedSession>>()

  get size(): number {
    return this.#all.size
  }

  get(id: string): EndedSession | undefined {
    return this.#all.get(id)
  }

  entries(): Iterable<readonly [id: string, ended: EndedSession]> {
    return this.#all
  }

  /** undefined = it is forgotten: no token of the session can be valid. */
  set(id: string, ended: EndedSession | undefined): void {
    const before = this.#all.get(id)
    if (before !== undefined) this.#drop(id, before)
    if (ended === undefined) return
    this.#all.set(id, ended)
    for (const key of subjectsOf(ended)) {
      const there = this.#bySubject.get(key) ?? new Map<string, EndedSession>()
      this.#bySubject.set(key, there.set(id, ended))
    }
  }

  /** The logouts of a user, and those of any user by its session alone. */
  *about({ sid, sub }: Pick<EndedSession, 'sid' | 'sub'>): Generator<EndedSession> {
    for (const key of subjectsOf({ sid, sub })) yield* this.#bySubject.get(key)?.values() ?? NONE
  }

  hasEnded(session: TokenSession): boolean {
    if (this.#all.size === 0) return false
    for (const ended of this.about(session)) if (hasEnded(session, ended)) return true
    return false
  }

  #drop(id: string, ended: EndedSession): void {
    this.#all.delete(id)
    for (const key of subjectsOf(ended)) {
      const there = this.#bySubject.get(key)
      there?.delete(id)
      if (there?.size === 0) this.#bySubject.delete(key)
    }
  }
}

const NONE: readonly EndedSession[] = []

/** A logout of all sessions of a user is found by the user, and one that names a session alone by the session. */
function subjectsOf({ sid, sub }: Pick<EndedSession, 'sid' | 'sub'>): string[] {
  if (sid === '') return [`sub ${sub}`]
  return sub === '' ? [`sid ${sid}`] : [`sub ${sub}`, `sid ${sid}`]
}
