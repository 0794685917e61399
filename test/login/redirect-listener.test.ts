// The listener that takes the code of a login from the browser: browsers that leave early, and the port of the scheme.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import { request } from 'undici'
import { UserError } from '../../src/kit/api/validation/field-errors.ts'
import { listenForRedirect, type RedirectListener } from '../../src/login/io/redirect-listener.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function listening(port = 0): Promise<RedirectListener> {
  const listener = await listenForRedirect({ host: '127.0.0.1', port, path: '/callback' })
  closers.push(() => listener.close())
  return listener
}

describe('a browser that leaves before it is answered', () => {
  test('the login goes on', async () => {
    const listener = await listening()
    const { host, port } = new URL(listener.redirectUri)
    const arrival = listener.response('S', AbortSignal.timeout(60_000))
    const socket = connect(Number(port), '127.0.0.1')
    closers.push(() => socket.destroy())
    socket.write(`GET /callback?state=S&code=C HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    const { url, show } = await arrival
    assert.equal(url.searchParams.get('code'), 'C')
    socket.destroy()
    await once(socket, 'close')
    // A second connection is accepted after the end of the first was seen.
    await request(`http://${host}/`, { reset: true }).then(({ body }) => body.dump())
    await show(true, 'done')
  })
})

describe('port 80', () => {
  test('browsers leave it out of Host, and of the URL', async (t) => {
    for (const host of ['127.0.0.1', '127.0.0.1:80']) {
      let listener: RedirectListener
      try {
        listener = await listening(80)
      } catch (error) {
        assert.ok(error instanceof UserError)
        t.skip(`port 80 is not for this user, or in use: ${error.message}`)
        return
      }
      const arrival = listener.response(host, AbortSignal.timeout(60_000))
      const answered = request(`http://127.0.0.1:80/callback?state=${host}`, { headers: { host }, reset: true })
      const { url, show } = await arrival
      assert.equal(url.searchParams.get('state'), host)
      await show(true, 'done')
      const { statusCode, body } = await answered
      assert.equal(statusCode, 200)
      await body.dump()
      listener.close()
    }
  })
})
