// An HTTP/1.1 connection to an endpoint that cannot be opened fails the request, and nothing else.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildConnector } from 'undici'
import { withHeadLimits } from './http1-head.ts'

test('a connection that fails to open is reported, and nothing throws', async () => {
  const connect = withHeadLimits(buildConnector({}), () => assert.fail('there is no head'))
  const thrown: unknown[] = []
  const onThrown = (error: unknown): void => void thrown.push(error)
  process.setUncaughtExceptionCaptureCallback(onThrown)
  try {
    const error = await new Promise<Error | null>((resolve) => {
      connect({ hostname: '127.0.0.1', host: '127.0.0.1:1', protocol: 'http:', port: '1' }, (...[failure]) =>
        resolve(failure),
      )
    })
    assert.equal(error?.message, 'connect ECONNREFUSED 127.0.0.1:1')
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.setUncaughtExceptionCaptureCallback(null)
  }
  assert.deepEqual(thrown, [])
})
