// Each attack of the corpus in short form against one gateway: another user's requests are all answered meanwhile, its watch stays, the
// attacker gets the answers that are defined, and afterwards the gateway has given everything back.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { waitFor } from '../harness/wait.ts'
import { ALWAYS_ALLOWED, type Attack, type Who } from './attack.ts'
import { Attacker } from './attacker.ts'
import { loadCorpus } from './corpus.ts'
import { HOST, type Scene, startScene } from './scene.ts'
import { SMALL_PATH } from './wire/http2.ts'
import type { Outcome } from './worker-messages.ts'

/** Requests of the other user beside each attack: it lasts as long as they take. */
const BESIDE = 20
const THREADS = Number(process.env['PORTCULLIS_TEST_THREADS'] ?? 2)

const corpus = await loadCorpus()
let scene: Scene
let attacker: Attacker
let victims: ClientHttp2Session[]
let watchEnded = false

before(async () => {
  scene = await startScene({ threads: THREADS })
  attacker = await Attacker.start()
  const { port } = scene.embedded.gateway
  victims = Array.from({ length: 4 }, () => h2Connect({ port, serverName: HOST, certificate: scene.victim }))
  const watch = h2Open(victim(0), [':path', '/api/v1/pods?watch=true'])
  watch.on('close', () => {
    watchEnded = true
  })
  await new Promise((resolve) => watch.once('data', resolve))
})
after(async () => {
  attacker.end()
  for (const session of victims) session.destroy()
  await scene.stop()
})

function victim(n: number): ClientHttp2Session {
  const session = victims[n % victims.length]
  assert.ok(session)
  return session
}

/** One request after the other, each on another connection. */
async function besides(): Promise<void> {
  for (let n = 0; n < BESIDE; n++) {
    const { status, resetCode } = await h2Request(victim(n), [':path', SMALL_PATH])
    assert.deepEqual({ status, resetCode }, { status: 200, resetCode: 0 }, 'a request of the other user')
  }
}

async function attackOnce(name: string, attack: Attack, who: Who): Promise<Outcome> {
  await attacker.begin(name, scene.target(who))
  let outcome: Outcome | undefined
  try {
    await besides()
  } finally {
    outcome = await attacker.stop()
  }
  assert.equal(outcome.error, '')
  const answers = Object.keys(outcome.counts)
  const allowed = new Set([...ALWAYS_ALLOWED, ...attack.answers])
  assert.deepEqual(
    answers.filter((answer) => !allowed.has(answer)),
    [],
    `answers that are not defined: ${JSON.stringify(outcome.counts)}`,
  )
  return outcome
}

for (const who of ['known', 'unknown'] as const) {
  describe(`beside an attacker who is ${who}`, () => {
    for (const [name, attack] of corpus) {
      if (!attack.who.includes(who)) continue
      test(`${name} (${attack.reference})`, async (t) => {
        const outcome = await attackOnce(name, attack, who)
        t.diagnostic(JSON.stringify(outcome))
        assert.equal(watchEnded, false, "the other user's watch")
        assert.equal(scene.embedded.gateway.running, true)
      })
    }
  })
}

test('behind all of them nothing of the attacker is left', async () => {
  await waitFor('the connections of the attacker to be gone', async () => {
    const text = await scene.embedded.gateway.metrics()
    const open = [...text.matchAll(/^portcullis_client_connections\{[^}]*\} (\d+)/gm)]
    return open.reduce((sum, match) => sum + Number(match[1]), 0) <= victims.length
  })
  assert.equal(watchEnded, false)
})
