import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { Election } from '../../../../test/harness/election.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { Leadership, leadAlone, type Term } from './leadership.ts'

function logOf(lines: string[]): Logger {
  const add = (message: string, fields?: Readonly<Record<string, unknown>>): void => {
    lines.push(`${message}: ${String(fields?.['tenant'])}`)
  }
  return { debug: add, info: add, warn: add, error: add }
}

/** A promise and its resolver. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

test('tenants start when the lease is won, in their order, and stop in the reverse order when it is lost', async () => {
  const election = new Election(false)
  const events: string[] = []
  const { leadership } = election
  const run = (name: string): void => {
    leadership.run(name, () => {
      events.push(`${name} starts`)
      return { stop: () => void events.push(`${name} stops`) }
    })
  }
  run('a')
  run('b')
  election.leads = true
  run('c')
  await yieldToEventLoop()
  election.leads = false
  election.leads = true
  const [began, lost, again] = [
    ['a starts', 'b starts', 'c starts'],
    ['c stops', 'b stops', 'a stops'],
    ['a starts', 'b starts', 'c starts'],
  ]
  assert.deepEqual(events, [...began, ...lost, ...again])
  events.length = 0
  await leadership.stop()
  assert.deepEqual(events, lost)
})

test('a tenant that throws is logged, and the others run; it starts again with the next term', async () => {
  const lines: string[] = []
  let [leads, settle] = [true, (): void => undefined]
  const elect = (onChange: () => void) => {
    settle = onChange
    return { isLeader: () => leads, stop: async () => undefined }
  }
  const leadership = new Leadership(elect, logOf(lines))
  let starts = 0
  leadership.run('thrower', () => {
    if (++starts === 1) throw new Error('no')
    return { stop: () => Promise.reject(new Error('neither')) }
  })
  let others = 0
  leadership.run('other', () => {
    others++
    return { stop: () => void others-- }
  })
  await yieldToEventLoop()
  assert.deepEqual([starts, others], [1, 1])
  leads = false
  settle()
  leads = true
  settle()
  assert.deepEqual([starts, others], [2, 1])
  await leadership.stop()
  assert.deepEqual(lines, [
    'a tenant of the lease could not start: thrower',
    'a tenant of the lease could not be stopped: thrower',
  ])
})

test('the lease is released after all that ran has stopped, of earlier terms, too, and of those that have left', async () => {
  const events: string[] = []
  const election = new Election(true, () => void events.push('released'))
  const { leadership } = election
  const gates = [gate(), gate(), gate()]
  let at = 0
  const start = () => {
    const { opened } = gates[at++] ?? assert.fail()
    return { stop: () => opened }
  }
  leadership.run('a', start)
  await yieldToEventLoop()
  election.leads = false
  election.leads = true
  const leaving = leadership.run('b', start)
  await yieldToEventLoop()
  void leaving.leave().then(() => events.push('left'))
  const stopped = leadership.stop()
  for (const { open } of gates) {
    await yieldToEventLoop()
    assert.equal(events.includes('released'), false)
    open()
  }
  await stopped
  await yieldToEventLoop()
  assert.deepEqual(new Set(events), new Set(['left', 'released']))
  election.leads = true
  assert.equal(leadership.isLeader(), false)
})

test('a term whose end is noticed by the clock is over for all tenants at once, also where the lease is held again', async () => {
  const election = new Election()
  const terms: Term[] = []
  let stops = 0
  election.leadership.run('a', (term) => {
    terms.push(term)
    return { stop: () => void stops++ }
  })
  await yieldToEventLoop()
  election.lapse()
  assert.equal(terms[0]?.holds(), false)
  assert.equal(stops, 0, 'not inside of the question')
  // The renewal in flight succeeds.
  election.leads = true
  await yieldToEventLoop()
  assert.deepEqual([stops, terms.map((term) => term.holds())], [1, [false, true]])
  election.lapse()
  assert.equal(election.leadership.isLeader(), false)
  await yieldToEventLoop()
  assert.equal(stops, 2)
})

test('a process that is alone leads, until it stops', async () => {
  const leadership = leadAlone(logOf([]))
  let term: Term | undefined
  leadership.run('a', (begun) => {
    term = begun
    return undefined
  })
  await yieldToEventLoop()
  assert.equal(term?.holds(), true)
  await leadership.stop()
  assert.deepEqual([term.holds(), leadership.isLeader()], [false, false])
})
