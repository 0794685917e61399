// The process that attacks: one attack after the other, as it is told on standard input, behind all other processes that want its core.

import { setPriority } from 'node:os'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { Answers } from './answers.ts'
import type { Attack } from './attack.ts'
import { BUSY_CORE } from './busy-core.ts'
import { loadCorpus } from './corpus.ts'
import type { Command, Report, TargetMessage } from './worker-messages.ts'

const LOWEST_PRIORITY = 19
/** Whatever happens to the process that tells it to stop. */
const LONGEST_MS = 120_000

const corpus = new Map([...(await loadCorpus()), ['busy', BUSY_CORE]])
let running: AbortController | undefined
setPriority(LOWEST_PRIORITY)
say({ ready: true })
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as Command
  if ('stop' in command) running?.abort()
  else {
    const attack = corpus.get(command.attack)
    if (attack === undefined) throw new Error(`no attack ${command.attack}`)
    running = new AbortController()
    void run(attack, command.target, running)
  }
}
running?.abort()

async function run(attack: Attack, target: TargetMessage, controller: AbortController): Promise<void> {
  const answers = new Answers()
  const end = setTimeout(() => controller.abort(), LONGEST_MS)
  const { must } = attack
  let begun = false
  const looking = setInterval(() => {
    const answered = Object.keys(answers.counts)
    if (!begun && answers.accepted === 0 && answered.length === 0) return
    if (!begun) say({ begun: true })
    begun = true
    if (must !== undefined && !must.some((answer) => answered.includes(answer))) return
    clearInterval(looking)
    say({ defined: true })
  }, 1)
  let error = ''
  try {
    await attack.run({ ...target, answers }, controller.signal)
    if (!controller.signal.aborted) error = 'the attack ended by itself'
  } catch (thrown) {
    error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
  }
  clearTimeout(end)
  clearInterval(looking)
  const { counts, connections, accepted, sentBytes, receivedBytes } = answers
  say({ outcome: { counts, connections, accepted, sentBytes, receivedBytes, error } })
}

function say(report: Report): void {
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
