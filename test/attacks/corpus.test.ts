// Each attack of the corpus in short form against one gateway: another user is served meanwhile, also on a new connection and with a new
// token, its watch goes on, the attacker gets the answers that are defined, no turn of an event loop takes long because of it, and
// afterwards the gateway has given everything back.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { waitFor } from '../harness/wait.ts'
import { ALWAYS_ALLOWED, type Attack, type Who } from './attack.ts'
import { Attacker } from './attacker.ts'
import { Bystander } from './bystander.ts'
import { loadCorpus } from './corpus.ts'
import { type Scene, startScene } from './scene.ts'
import { stallsOf } from './stalls.ts'
import type { Outcome } from './worker-messages.ts'

/** Reads of the other user beside each attack: it lasts as long as they take. */
const READS = 5
const THREADS = Number(process.env['PORTCULLIS_TEST_THREADS'] ?? 2)
/**
 * Turns of 50 ms and more, beside those of an idle run: for each attack on average, and of one attack. In each the thread itself computed for
 * so long (stalls.ts), so that a busy machine adds none; a slow one may have some.
 */
const STALLS_AN_ATTACK = 0.1
const STALLS_OF_ONE = 5

const corpus = await loadCorpus()
let scene: Scene
let attacker: Attacker
let bystander: Bystander
let attacks = 0
/** By attack. */
const stalled = new Map<string, number>()

before(async () => {
  scene = await startScene({ threads: THREADS })
  attacker = await Attacker.start()
  bystander = await Bystander.start(scene)
  // What is compiled, connected and asked for once.
  for (let n = 0; n < 10; n++) await bystander.ask(READS)
})
after(async () => {
  attacker.end()
  bystander.end()
  await scene.stop()
})

async function attackOnce(name: string, attack: Attack, who: Who): Promise<Outcome> {
  await attacker.begin(name, scene.target(who))
  let outcome: Outcome | undefined
  try {
    await bystander.ask(READS)
    await attacker.defined()
  } finally {
    outcome = await attacker.stop()
  }
  assert.equal(outcome.error, '')
  const allowed = new Set([...ALWAYS_ALLOWED, ...attack.answers])
  const others = Object.keys(outcome.counts).filter((answer) => !allowed.has(answer))
  assert.deepEqual(others, [], `answers that are not defined: ${JSON.stringify(outcome.counts)}`)
  return outcome
}

const stalls = (): Promise<number> => stallsOf(scene.embedded.gateway)

for (const [name, attack] of corpus) {
  attack.who.forEach((who, n) => {
    // Most are refused before it matters who it is.
    const title = `${name}, ${who} (${attack.reference})${n === 0 ? '' : ' (long)'}`
    test(title, async (t) => {
      const before = await stalls()
      const outcome = await attackOnce(name, attack, who)
      t.diagnostic(JSON.stringify(outcome))
      assert.equal(scene.embedded.gateway.running, true)
      attacks++
      const found = (await stalls()) - before
      if (found > 0) stalled.set(title, found)
    })
  })
}

test('no turn of an event loop takes long because of an attack', async (t) => {
  const before = await stalls()
  for (let n = 0; n < attacks; n++) await bystander.ask(READS)
  const idle = (await stalls()) - before
  const beside = [...stalled.values()].reduce((sum, found) => sum + found, 0)
  const told = `${beside} beside ${attacks} attacks (${JSON.stringify([...stalled])}), ${idle} without`
  t.diagnostic(told)
  assert.ok(beside <= idle + Math.max(STALLS_OF_ONE, STALLS_AN_ATTACK * attacks), told)
  assert.ok(Math.max(0, ...stalled.values()) <= idle + STALLS_OF_ONE, told)
})

test('nothing of the attacks is left', async () => {
  await waitFor('connections and requests of the attacker to be gone', async () => {
    const text = await scene.embedded.gateway.metrics()
    const sum = (name: string): number =>
      [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)`, 'gm'))].reduce((all, m) => all + Number(m[1]), 0)
    return (
      sum('portcullis_client_connections') <= bystander.connections &&
      sum('apiserver_current_inflight_requests') === 0 &&
      sum('apiserver_longrunning_requests') <= 1
    )
  })
})
