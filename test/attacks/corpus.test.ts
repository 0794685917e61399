// Each attack of the corpus in short form against one gateway: another user is served meanwhile, also on a new connection and with a new
// token, its watch goes on, the attacker gets the answers that are defined, no turn of an event loop takes long because of it, and
// afterwards the gateway has given everything back.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'
import { ALWAYS_ALLOWED, type Attack, type Who } from './attack.ts'
import { Attacker } from './attacker.ts'
import { Bystander } from './bystander.ts'
import { loadCorpus } from './corpus.ts'
import { bundledCommand, type Scene, startScene } from './scene.ts'
import { stallsOf } from './stalls.ts'
import type { Outcome } from './worker-messages.ts'

/** Reads of the other user beside each attack: it lasts as long as they take. */
const READS = 5
const THREADS = Number(process.env['PORTCULLIS_TEST_THREADS'] ?? 2)
/**
 * Turns in which a thread computed for 50 ms and more (stalls.ts), beside those of an idle run: for each attack on average, and of one attack.
 * Time off the processor does not count, but on a busy machine the same work takes more time on it, and what has waited meanwhile comes in one turn.
 * So an attack that seems to be too much is tried again, and the best of its runs counts: what is due to the attack comes back.
 */
const STALLS_AN_ATTACK = 0.1
const STALLS_OF_ONE = 5
const TRIES = 3

const corpus = await loadCorpus()
let scene: Scene
let attacker: Attacker
let bystander: Bystander
let attacks = 0
interface Stalled {
  readonly name: string
  readonly attack: Attack
  readonly who: Who
  readonly found: number
}
/** By title. */
const stalled = new Map<string, Stalled>()

before(async () => {
  scene = await startScene({ threads: THREADS, program: await bundledCommand() })
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
    test(title, PATIENT, async (t) => {
      const before = await stalls()
      const outcome = await attackOnce(name, attack, who)
      t.diagnostic(JSON.stringify(outcome))
      assert.equal(scene.embedded.gateway.running, true)
      attacks++
      const found = (await stalls()) - before
      if (found > 0) stalled.set(title, { name, attack, who, found })
    })
  })
}

test('no turn of an event loop takes long because of an attack', { timeout: 2 * PATIENT.timeout }, async (t) => {
  const before = await stalls()
  for (let n = 0; n < attacks; n++) await bystander.ask(READS)
  const idle = (await stalls()) - before
  const sum = (): number => [...stalled.values()].reduce((all, { found }) => all + found, 0)
  const most = (): number => Math.max(0, ...[...stalled.values()].map(({ found }) => found))
  const isGood = (): boolean =>
    sum() <= idle + Math.max(STALLS_OF_ONE, STALLS_AN_ATTACK * attacks) && most() <= idle + STALLS_OF_ONE
  const tell = (): string =>
    `${sum()} beside ${attacks} attacks (${JSON.stringify([...stalled].map(([title, { found }]) => [title, found]))}), ${idle} without`
  for (let n = 1; n < TRIES && !isGood(); n++) {
    t.diagnostic(tell())
    for (const [title, one] of [...stalled].sort(([, a], [, b]) => b.found - a.found)) {
      if (isGood()) break
      const start = await stalls()
      await attackOnce(one.name, one.attack, one.who)
      stalled.set(title, { ...one, found: Math.min(one.found, (await stalls()) - start) })
    }
  }
  t.diagnostic(tell())
  assert.ok(isGood(), tell())
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
