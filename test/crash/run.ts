// `node test/crash/run.ts [--rounds N] [--seed S] [--verbose]`: the store is killed N times in the middle of its writes.

import { parseArgs } from 'node:util'
import { crashCampaign } from './campaign.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    verbose: { type: 'boolean', default: false },
  },
})
const rounds = Number(values.rounds)
const seed = Number(values.seed)
console.log(`killing a store ${rounds} times, seed ${seed}`)
const startedMs = performance.now()
const { revisions, torn, unacknowledged } = await crashCampaign({
  rounds,
  seed,
  ...(values.verbose && { onRound: (description: string) => console.log(description) }),
})
const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0)
console.log(`${rounds} rounds in ${seconds} s: ${revisions} revisions acknowledged, none lost`)
console.log(
  `the log was torn ${torn} times, ${unacknowledged} times with a whole transaction that was not acknowledged`,
)
