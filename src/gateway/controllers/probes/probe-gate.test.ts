import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Queued } from '../../../kit/core/queues/round-robin-queue.ts'
import { createProbeGate } from './probe-gate.ts'

class Probe extends Queued {
  readonly name: string
  constructor(name: string) {
    super()
    this.name = name
  }
}

const many = (name: string, count: number): Probe[] => Array.from({ length: count }, (_, i) => new Probe(`${name}${i}`))

test('awaited probes and others start in turns, each in their order', (context) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
  const started: string[] = []
  const gate = createProbeGate<Probe>(({ name }) => started.push(name))
  const [running, waiting, awaited] = [many('r', 64), many('w', 200), many('a', 100)]
  for (const probe of [...running, ...waiting, ...awaited]) gate.enter(probe)
  mock.timers.tick(0)
  assert.equal(started.length, 64)
  assert.equal(gate.isCrowded, true)

  for (const probe of awaited) gate.prefer(probe)
  gate.prefer(running[0] as Probe)
  gate.prefer(new Probe('none'))
  gate.enter(awaited[0] as Probe)
  // One place at a time, as probes end.
  for (const probe of running.slice(0, 6)) {
    gate.leave(probe)
    mock.timers.tick(0)
  }
  assert.deepEqual(started.slice(64), ['w0', 'a0', 'w1', 'a1', 'w2', 'a2'])

  for (const probe of [...waiting, ...awaited]) gate.leave(probe)
  assert.equal(gate.isCrowded, false)
  mock.timers.tick(1_000)
  assert.equal(started.length, 70)
})
