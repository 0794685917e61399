// Answers of the embedded API server that their clients do not read: they have a bound together, and one user's keep no other user from reading.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { MAX_ALL_ANSWER_BYTES } from '../../src/apiserver/server.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { connectFrames } from '../harness/frames/frame-connection.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { waitFor } from '../harness/wait.ts'

/** Some 250 KB. */
const LARGE = '/openapi/v2'
/** As many as one connection may ask at a time. */
const REQUESTS = 250

let control: TestControl
before(async () => {
  control = await startControl()
})
after(() => control.stop())

test('a client that reads no answers gets 429 when they fill what may wait, and others are answered', async (t) => {
  const viewer = await connectFrames({
    port: control.port,
    serverName: 'localhost',
    cert: control.viewer,
    settings: [
      [h2.INITIAL_WINDOW_SIZE, 0],
      [h2.HEADER_TABLE_SIZE, 0],
    ],
  })
  t.after(() => viewer.destroy())
  const head = [':method', 'GET', ':path', LARGE, ':scheme', 'https', ':authority', 'localhost']
  for (let i = 0; i < REQUESTS; i++) viewer.send(h2.headersFrames(1 + 2 * i, h2.headerBlock(head)))
  const heads = (): h2.Frame[] => viewer.frames.filter(({ type }) => type === h2.HEADERS)
  await waitFor('an answer to each', () => heads().length === REQUESTS)
  const codes = heads().map(({ payload }) => h2.statusOf(payload))
  const answered = codes.filter((code) => code === 200).length
  const refused = codes.filter((code) => code === 429).length
  assert.equal(answered + refused, REQUESTS)
  assert.ok(answered > 0 && refused > 0, `${answered} ${refused}`)

  const alice = h2Connect({ port: control.port, certificate: control.admin })
  t.after(() => alice.destroy())
  const { status, body } = await h2Request(alice, [':method', 'GET', ':path', LARGE])
  assert.equal(status, 200)
  assert.ok(answered * body.length < 1.2 * MAX_ALL_ANSWER_BYTES, `${answered} of ${body.length}`)

  viewer.destroy()
  const bob = h2Connect({ port: control.port, certificate: control.viewer })
  t.after(() => bob.destroy())
  await waitFor(
    'room for the viewer',
    async () => (await h2Request(bob, [':method', 'GET', ':path', LARGE])).status === 200,
  )
})
