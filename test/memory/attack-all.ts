// A process that runs several attacks of the corpus at the same time, until its standard input ends. First line of it: what to attack.

import process from 'node:process'
import { createInterface } from 'node:readline'
import { Answers } from '../attacks/answers.ts'
import { loadCorpus } from '../attacks/corpus.ts'
import type { TargetMessage } from '../attacks/worker-messages.ts'

export interface AttackAll {
  /** Names of attacks, and the target of each. */
  readonly attacks: readonly { readonly name: string; readonly target: TargetMessage }[]
}

const LONGEST_MS = 180_000

const corpus = await loadCorpus()
const controller = new AbortController()
const stop = setTimeout(() => process.exit(1), LONGEST_MS)
let running: Promise<unknown> = Promise.resolve()
// An attack that goes wrong is not what is tested here.
process.on('uncaughtException', () => undefined)
for await (const line of createInterface({ input: process.stdin })) {
  const { attacks } = JSON.parse(line) as AttackAll
  running = Promise.allSettled(
    attacks.map(({ name, target }) => corpus.get(name)?.run({ ...target, answers: new Answers() }, controller.signal)),
  )
}
controller.abort()
clearTimeout(stop)
await Promise.race([running, new Promise((resolve) => setTimeout(resolve, 2000))])
process.exit(0)
