// Login with a bearer token, once per browser: the server keeps the token, and the browser gets a random number for it, in a cookie that scripts
// cannot read and other sites cannot send. Each request has the token reviewed again, as if it carried it.

import {
  type AdminAccess,
  type AdminRoute,
  type AdminUser,
  type BrowserLogins,
  jsonResponse,
  PLAIN_TEXT,
} from '../../../admin/io/server/route.ts'
import type { PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import type { DashboardFiles } from './assets.ts'

interface SessionDeps {
  /** Access without a session. */
  readonly access: AdminAccess
  readonly files: DashboardFiles
  /** Whether the listener has TLS: the cookie is then sent over TLS only. */
  readonly secure: boolean
  readonly clock: { monotonic(): number }
  /** 256 unguessable bits, as text without special characters. */
  randomId(): string
  /** Whether this address may try once more; counts failed attempts. */
  readonly attempts: LoginAttempts
}

export interface LoginAttempts {
  /** Seconds to wait; 0 = go ahead, then report the result to `ended`. A pending attempt counts as failed. */
  begin(address: string): Promise<number>
  ended(address: string, failed: boolean): Promise<void>
}

interface Session {
  readonly token: string
  /** User name at login. */
  readonly user: string
  /** Monotonic milliseconds. */
  readonly endsMs: number
}

const HOURS = 8
const LIFE_MS = HOURS * 60 * 60 * 1000
/** More than there are people; the oldest is evicted. */
const MAX_SESSIONS = 1000
/** Keeps one user from evicting the sessions of others; many people may share a token from a file. */
const MAX_SESSIONS_PER_USER = 50
/** A token may have 16 KiB, and a form may encode each byte as three. */
const MAX_FORM_BYTES = 64 * 1024
const HTML = 'text/html; charset=utf-8'
const COOKIE = 'portcullis-session'
const SESSION_ID = /^[A-Za-z0-9_-]{43}$/

/**
 * Its access replaces a session's cookie by its token. A request for the page with neither gets the login form. Its routes are /login and /logout,
 * and the current user.
 */
export function loginSessions(deps: SessionDeps): BrowserLogins {
  const sessions = new SessionTable(deps)
  const access: AdminAccess = async (request, route) => {
    const token = request.authorization === '' ? sessions.tokenOf(request) : undefined
    const asked = token === undefined ? request : { ...request, authorization: `Bearer ${token}` }
    // SameSite keeps other sites from sending the cookie, but not a page on another port of this host.
    if (token !== undefined && isForeign(request)) {
      return { refused: { code: 403, contentType: PLAIN_TEXT, body: 'the request comes from another origin\n' } }
    }
    const admitted = await deps.access(asked, route)
    if ('refused' in admitted && admitted.refused.code === 401 && token !== undefined) sessions.end(request)
    if ('refused' in admitted && route.path === '/') return { refused: await loginPage(deps.files, admitted.refused) }
    return admitted
  }
  const login = async (request: PlainRequest): Promise<PlainResponse> => {
    if (isForeign(request))
      return { code: 403, contentType: PLAIN_TEXT, body: 'the request comes from another origin\n' }
    const wait = await deps.attempts.begin(request.remoteAddress)
    if (wait > 0) return await tooMany(deps.files, wait)
    let failed = false
    try {
      const { answer, code } = await tryToken(request)
      // An API server that does not respond says nothing about the token.
      failed = code === 401 || code === 403
      return answer
    } finally {
      await deps.attempts.ended(request.remoteAddress, failed)
    }
  }
  const tryToken = async (request: PlainRequest): Promise<{ answer: PlainResponse; code: number }> => {
    const token = tokenIn(await request.readBody(MAX_FORM_BYTES))
    const view: AdminRoute = {
      path: '/',
      method: 'GET',
      access: 'view',
      answer: () => ({ code: 204, contentType: PLAIN_TEXT, body: '' }),
    }
    const asked = { ...request, method: 'GET', path: '/', authorization: `Bearer ${token}` }
    const admitted = token === '' ? undefined : await deps.access(asked, view)
    if (admitted === undefined || 'refused' in admitted) {
      const refused = admitted?.refused ?? { code: 401, contentType: PLAIN_TEXT, body: '' }
      return { answer: await loginPage(deps.files, refused, true), code: refused.code }
    }
    const cookie = sessions.begin(token, admitted.user.name)
    const headers = { location: '/', 'set-cookie': cookie }
    return { answer: { code: 303, contentType: PLAIN_TEXT, body: '', headers }, code: 303 }
  }
  const logout = (request: PlainRequest): PlainResponse => {
    if (isForeign(request))
      return { code: 403, contentType: PLAIN_TEXT, body: 'the request comes from another origin\n' }
    sessions.end(request)
    return {
      code: 303,
      contentType: PLAIN_TEXT,
      body: '',
      headers: { location: '/', 'set-cookie': sessions.cookie('', 0) },
    }
  }
  const whoIs = (request: PlainRequest, { name }: AdminUser): PlainResponse => {
    return jsonResponse({ user: name, canLogOut: sessions.tokenOf(request) !== undefined })
  }
  return {
    access,
    routes: [
      { path: '/login', method: 'POST', access: 'health', answer: login },
      { path: '/api/v1/session', method: 'GET', access: 'view', answer: whoIs },
      { path: '/logout', method: 'POST', access: 'health', answer: logout },
    ],
  }
}

class SessionTable {
  readonly #deps: SessionDeps
  readonly #sessions = new Map<string, Session>()

  constructor(deps: SessionDeps) {
    this.#deps = deps
  }

  /** @returns the cookie */
  begin(token: string, user: string): string {
    const now = this.#deps.clock.monotonic()
    for (const [id, { endsMs }] of this.#sessions) if (endsMs <= now) this.#sessions.delete(id)
    const [oldest] = this.#sessions.keys()
    const own = [...this.#sessions].filter(([, session]) => session.user === user).map(([id]) => id)
    const extra = own.length >= MAX_SESSIONS_PER_USER ? own[0] : oldest
    const full = own.length >= MAX_SESSIONS_PER_USER || this.#sessions.size >= MAX_SESSIONS
    if (full && extra !== undefined) this.#sessions.delete(extra)
    const id = this.#deps.randomId()
    this.#sessions.set(id, { token, user, endsMs: now + LIFE_MS })
    return this.cookie(id, LIFE_MS / 1000)
  }

  tokenOf(request: PlainRequest): string | undefined {
    const session = this.#sessions.get(this.#idOf(request))
    if (session === undefined) return undefined
    return session.endsMs > this.#deps.clock.monotonic() ? session.token : undefined
  }

  end(request: PlainRequest): void {
    this.#sessions.delete(this.#idOf(request))
  }

  cookie(id: string, seconds: number): string {
    const secure = this.#deps.secure ? '; Secure' : ''
    return `${this.#cookieName}=${id}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
  }

  /**
   * Browsers accept names that begin with __Host- only over TLS, from this host alone, for all paths. With TLS no other name is accepted: a page of
   * another host of the domain, or of this host without TLS, could set it and log a person in as another user.
   */
  get #cookieName(): string {
    return this.#deps.secure ? `__Host-${COOKIE}` : COOKIE
  }

  #idOf({ header }: PlainRequest): string {
    return sessionIn(header('cookie'), this.#cookieName)
  }
}

/** Session id in the cookie of this name; '' = none. */
export function sessionIn(cookies: string, wanted: string): string {
  for (const pair of cookies.split(';')) {
    const [name, value = ''] = pair.trim().split('=', 2)
    if (name === wanted && SESSION_ID.test(value)) return value
  }
  return ''
}

/** Browsers state where a request comes from; a client that does not is not a browser. */
function isForeign({ header }: PlainRequest): boolean {
  const site = header('sec-fetch-site')
  return site !== '' && site !== 'same-origin' && site !== 'none'
}

/** Token from the login form; '' = none. */
export function tokenIn(form: string): string {
  return (new URLSearchParams(form).get('token') ?? '').trim()
}

/** Reveals nothing more: neither whether the token was wrong, nor whether its user lacks permission. */
async function loginPage(files: DashboardFiles, refused: PlainResponse, tried = false): Promise<PlainResponse> {
  // Refusals that do not depend on the user.
  if (refused.code !== 401 && refused.code !== 403) return refused
  const problem = tried ? '<p class="problem" role="alert">This token may not see the dashboard.</p>' : ''
  return await page(files, refused.code, problem, refused.headers)
}

async function tooMany(files: DashboardFiles, seconds: number): Promise<PlainResponse> {
  const problem = `<p class="problem" role="alert">Too many failed logins from your address. Try again in ${seconds} s.</p>`
  return await page(files, 429, problem, { 'retry-after': String(seconds) })
}

async function page(
  files: DashboardFiles,
  code: number,
  message: string,
  headers: PlainResponse['headers'] = {},
): Promise<PlainResponse> {
  const text = Buffer.from((await files()).get('login.html') ?? []).toString('utf8')
  return { code, contentType: HTML, body: text.replace('<!-- message -->', () => message), headers }
}
