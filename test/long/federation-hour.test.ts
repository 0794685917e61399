// Work with several clusters as one while a member goes and comes: client-go's reflectors with the state by a watch or by a list, the former with their
// inconsistency detector, a controller of controller-runtime, a dashboard that keeps versions as text, and Headlamp. Each change of each member is seen once,
// and whenever it is quiet all of them have what the clusters have. FEDERATION_MINUTES=60 makes it an hour.

import assert from 'node:assert/strict'
import process from 'node:process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BusyFederation } from '../harness/federation/busy-federation.ts'

const MINUTES = Number(process.env['FEDERATION_MINUTES'] ?? '6')
/** All members are there. */
const TOGETHER_MS = 40_000
const AWAY_MS = 40_000
/** In the second round, and now and then after that. */
const RESTART_EVERY = 8
const RESTART_FIRST = 2
/** At least: each member is away once, and the gateway starts again. */
const FEWEST_ROUNDS = 3

test(`${MINUTES} minutes: no change is lost or doubled, and all who read have what the clusters have`, {
  timeout: (MINUTES + 25) * 60_000,
}, async (t) => {
  const all = await BusyFederation.start(['east', 'west', 'north'])
  t.after(() => all.stop())
  const end = performance.now() + MINUTES * 60_000
  let restarts = 0
  for (let round = 1; round <= FEWEST_ROUNDS || performance.now() < end; round++) {
    all.beginWriting()
    await sleep(TOGETHER_MS)
    const member = all.members[round % all.members.length]
    assert.ok(member)
    const how = round % 2 === 0 ? 'SIGSTOP' : 'SIGKILL'
    const bringBack = await all.takeAway(member, how)
    await sleep(AWAY_MS)
    await bringBack()
    if (round % RESTART_EVERY === RESTART_FIRST) await all.restartGateway(restarts++ % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
    await all.compareQuietly()
    t.diagnostic(`round ${round}: ${member.name} was away by ${how}; ${restarts} restarts of the gateway so far`)
  }
  for (const line of await all.summary()) t.diagnostic(line)
  assert.deepEqual(await all.wrong(), [])
})
