// The server of one cluster attacks: every kind of call that the gateway makes there gets each kind of hostile answer. A user of another
// cluster on the same gateway notices nothing, no turn of an event loop takes long, and no more memory is taken than the gateway says.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'
import { Bystander } from './bystander.ts'
import { ANSWERS } from './endpoints/answers.ts'
import { callsIn } from './endpoints/calls.ts'
import { type EndpointScene, startEndpointScene } from './endpoints/endpoint-scene.ts'

/** Reads of the other user between two looks. */
const READS = 5
/** Before every kind of call has been answered so, and after. */
const ROUNDS_BEFORE = 4
const ROUNDS_AFTER = 12
const TRIES = 3
/** Turns of 50 ms and more beside one kind of answer, given to all kinds of calls at once. */
const STALLS = 2
/** Below the test's own timeout, so that the error says what is missing. */
const ANSWERED = { timeoutMs: 2 * 60_000 }

for (const [limit, long] of [
  ['512Mi', ''],
  ['1Gi', ' (long)'],
] as const) {
  describe(`an endpoint as the attacker, with --memory-limit=${limit}${long}`, () => {
    let scene: EndpointScene
    let bystander: Bystander

    before(async () => {
      scene = await startEndpointScene(limit)
      bystander = await Bystander.start(scene.scene)
      for (let n = 0; n < ROUNDS_BEFORE; n++) await bystander.ask(READS)
    }, PATIENT)
    after(async () => {
      bystander?.end()
      await scene?.stop()
    })

    for (const { name, pending } of ANSWERS) {
      test(name, { ...PATIENT, ...(pending !== undefined && { skip: pending }) }, async (t) => {
        let stalls = Number.POSITIVE_INFINITY
        for (let n = 0; n < TRIES && stalls > STALLS; n++) {
          const before = await scene.facts()
          const answered = await scene.during(name, async (answeredSoFar) => {
            for (let round = 0; round < ROUNDS_BEFORE; round++) await bystander.ask(READS)
            await waitFor('hostile answers to every kind of call', () => everyKind(name, answeredSoFar), ANSWERED)
            for (let round = 0; round < ROUNDS_AFTER; round++) await bystander.ask(READS)
          })
          const facts = await scene.facts()
          stalls = facts.stalls - before.stalls
          t.diagnostic(JSON.stringify({ answered, ...facts, stalls }))
          assert.deepEqual([facts.running, facts.restarts], [true, 0])
          assert.ok(facts.residentBytes < facts.ceilingBytes, JSON.stringify(facts))
        }
        assert.ok(stalls <= STALLS, `${stalls} turns took 50 ms and more`)
      })
    }
  })
}

/** Throws while some are missing. */
async function everyKind(
  answer: string,
  answeredSoFar: () => Promise<Readonly<Record<string, number>>>,
): Promise<true> {
  const answered = await answeredSoFar()
  const missing = callsIn(answer)
    .filter(({ name }) => answered[name] === undefined)
    .map(({ name }) => name)
  assert.deepEqual(missing, [], 'not answered yet')
  return true
}
