import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ToThread } from '../messages.ts'
import { StandingMessages } from './standing-messages.ts'
import { WorkerSlot } from './worker-slot.ts'

const handlers = { ask: () => assert.fail('no call') }
const NO_OWNER = { handlers, onUnclaimed: () => undefined, onMessage: () => undefined, onExit: () => undefined }
const MEMORY = new Int32Array(new SharedArrayBuffer(4))

/** A slot whose thread records what it is sent. */
class ListeningSlot extends WorkerSlot {
  readonly heard: ToThread[] = []

  constructor(index: number, state: WorkerSlot['state']) {
    super(index, () => assert.fail('no thread is to start'), Object({ connectionPlaces: MEMORY }), NO_OWNER)
    this.state = state
  }

  override post(message: ToThread): void {
    this.heard.push(message)
  }
}

const fault = (cluster: string, text: string): ToThread => ({ type: 'credential-fault', cluster, fault: text })

it('a thread that comes online later is told the latest of each kind, and nothing that was withdrawn', () => {
  const running = new ListeningSlot(0, 'listening')
  const later = new ListeningSlot(1, 'starting')
  const standing = new StandingMessages([running, later])
  standing.send({ type: 'own-listeners', addresses: [] })
  standing.send(fault('a', 'first'), 'a')
  standing.send(fault('b', 'other'), 'b')
  standing.send(fault('a', 'second'), 'a')
  standing.withdraw(fault('b', ''), 'b')
  standing.sendOnce({ type: 'abort' })
  assert.deepEqual(later.heard, [])
  assert.deepEqual(
    running.heard.map((message) => ('fault' in message ? message.fault : message.type)),
    ['own-listeners', 'first', 'other', 'second', '', 'abort'],
  )
  standing.welcome(later)
  assert.deepEqual(later.heard, [{ type: 'own-listeners', addresses: [] }, fault('a', 'second')])
})

it('what one thread has said itself is not told to it', () => {
  const [from, other] = [new ListeningSlot(0, 'online'), new ListeningSlot(1, 'online')]
  new StandingMessages([from, other]).sendOnce({ type: 'list-sizes', cluster: 'a', sizes: [] }, from)
  assert.deepEqual([from.heard.length, other.heard.length], [0, 1])
})
