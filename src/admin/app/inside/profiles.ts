// Profiles of the main thread and of every gateway thread, one file each, in a tar archive. One at a time: profiling affects what it measures.

import type { PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import { type TarFile, tarOf } from '../../../kit/core/text/tar.ts'
import { type ProfileKind, profileThread } from '../../io/profile.ts'
import type { AdminRoute } from '../../io/server/route.ts'
import type { AdminThreads } from './admin-threads.ts'

const DEFAULT_SECONDS = 10
const LONGEST_SECONDS = 60
/** Time beyond the profile's duration after which an unresponsive thread is omitted. */
const GRACE_MS = 5_000

export class Profiles {
  readonly #pool: Pick<AdminThreads, 'askThreads'>
  #running = false

  constructor(pool: Pick<AdminThreads, 'askThreads'>) {
    this.#pool = pool
  }

  /** undefined = one is already being taken. Threads that do not respond are omitted. */
  async take(kind: ProfileKind, seconds: number): Promise<readonly TarFile[] | undefined> {
    if (this.#running) return undefined
    this.#running = true
    try {
      const [main, threads] = await Promise.all([
        profileThread(kind, seconds),
        this.#pool.askThreads('profile', { kind, seconds }, { timeoutMs: seconds * 1000 + GRACE_MS }),
      ])
      const named = threads.map(({ thread, answer }) => ({ name: `gateway-${thread}.${kind}profile`, text: answer }))
      return [{ name: `main.${kind}profile`, text: main }, ...named]
    } finally {
      this.#running = false
    }
  }
}

export function profileRoutes(profiles: Profiles): readonly AdminRoute[] {
  const route = (path: string, kind: ProfileKind): AdminRoute => ({
    path,
    method: 'GET',
    access: 'admin',
    answer: (request) => answerProfile(profiles, kind, request),
  })
  return [route('/debug/profile', 'cpu'), route('/debug/heap', 'heap')]
}

async function answerProfile(profiles: Profiles, kind: ProfileKind, { query }: PlainRequest): Promise<PlainResponse> {
  const contentType = 'text/plain; charset=utf-8'
  const seconds = readSeconds(query.get('seconds'))
  if (seconds === undefined) {
    return { code: 400, contentType, body: `seconds is not a whole number from 1 to ${LONGEST_SECONDS}\n` }
  }
  const files = await profiles.take(kind, seconds)
  if (files === undefined) {
    const headers = { 'retry-after': String(seconds) }
    return { code: 429, contentType, body: 'a profile is being taken already\n', headers }
  }
  const headers = { 'content-disposition': `attachment; filename="portcullis-${kind}.tar"` }
  return { code: 200, contentType: 'application/x-tar', body: tarOf(files, Date.now() / 1000), headers }
}

/** undefined = not an allowed value. */
function readSeconds(text: string | null): number | undefined {
  if (text === null) return DEFAULT_SECONDS
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : 0
  return seconds >= 1 && seconds <= LONGEST_SECONDS ? seconds : undefined
}
