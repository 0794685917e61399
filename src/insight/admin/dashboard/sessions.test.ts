import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AdminAccess, type AdminRoute, type BrowserLogins, NO_USER } from '../../../admin/io/server/route.ts'
import type { PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import { loginSessions } from './sessions.ts'

interface Made extends BrowserLogins {
  /** Failed attempts. */
  readonly failed: string[]
  login(token: string): Promise<PlainResponse>
  code(cookie: string): Promise<number>
}

const TEXT = 'text/plain'

/** A token `NAME/anything` belongs to the user NAME, except bad and away. */
const access: AdminAccess = ({ authorization }) => {
  const name = /^Bearer ([a-z]+)\//.exec(authorization)?.[1] ?? 'bad'
  const code = name === 'bad' ? 401 : name === 'away' ? 503 : name === 'busy' ? 429 : 0
  return Promise.resolve(
    code === 0 ? { user: { ...NO_USER, name } } : { refused: { code, contentType: TEXT, body: 'no\n' } },
  )
}

function request(path: string, { cookie = '', body = '' } = {}): PlainRequest {
  return {
    method: 'GET',
    path,
    query: new URLSearchParams(),
    authorization: '',
    remoteAddress: '127.0.0.1',
    header: (name) => (name === 'cookie' ? cookie : ''),
    certificate: undefined,
    signal: new AbortController().signal,
    readBody: () => Promise.resolve(body),
  }
}

function made(secure = true): Made {
  let made = 0
  const failed: string[] = []
  const sessions = loginSessions({
    access,
    files: () => Promise.resolve(new Map()),
    secure,
    clock: { monotonic: () => 0 },
    randomId: () => String(made++).padStart(43, '0'),
    attempts: {
      begin: () => Promise.resolve(0),
      ended: async (address, hasFailed) => {
        if (hasFailed) failed.push(address)
      },
    },
  })
  const route = (path: string): AdminRoute => {
    const found = sessions.routes.find((one) => one.path === path)
    assert.ok(found)
    return found
  }
  return {
    ...sessions,
    failed,
    async login(token) {
      const asked = request('/login', { body: new URLSearchParams({ token }).toString() })
      const answer = await route('/login').answer(asked, NO_USER)
      assert.ok('body' in answer)
      return answer
    },
    async code(cookie) {
      const admitted = await sessions.access(request('/api/v1/session', { cookie }), route('/api/v1/session'))
      return 'refused' in admitted ? admitted.refused.code : 200
    },
  }
}

const cookieOf = ({ headers }: PlainResponse): string => headers?.['set-cookie']?.split(';')[0] ?? ''

test('a user that logs in ten thousand times ends only its own sessions', async () => {
  const sessions = made()
  const ann = cookieOf(await sessions.login('ann/token'))
  let bob = ''
  for (let i = 0; i < 10_000; i++) bob = cookieOf(await sessions.login(`bob/${i}`))
  assert.deepEqual([await sessions.code(ann), await sessions.code(bob)], [200, 200])
  assert.equal(await sessions.code(bob.replace(/\d{43}/, String(5000).padStart(43, '0'))), 401)
})

test('with TLS only the cookie counts that no other host and no page in the clear can set', async () => {
  const sessions = made()
  const cookie = cookieOf(await sessions.login('ann/token'))
  assert.match(cookie, /^__Host-portcullis-session=/)
  assert.equal(await sessions.code(cookie), 200)
  assert.equal(await sessions.code(cookie.replace('__Host-', '')), 401)
  const plain = made(false)
  assert.equal(await plain.code(cookieOf(await plain.login('ann/token'))), 200)
})

test('an API server that is away or busy does not count as a failed attempt', async () => {
  const sessions = made()
  const codes: number[] = []
  for (const name of ['away', 'busy', 'bad']) codes.push((await sessions.login(`${name}/token`)).code)
  assert.deepEqual([codes, sessions.failed.length], [[503, 429, 401], 1])
})
