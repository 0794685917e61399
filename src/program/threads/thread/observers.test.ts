import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RequestObserver } from '../../../gateway/api/request-observer.ts'
import { createRecord } from '../../../gateway/api/request-record.ts'
import { composeObservers } from './observers.ts'

test('however many there are: each hears what it listens to, once, in order, with its own this', () => {
  const record = createRecord()
  for (let count = 0; count <= 11; count++) {
    const heard: string[] = []
    class Numbered implements RequestObserver {
      readonly #name: string
      constructor(name: string) {
        this.#name = name
      }
      requestEnded(given: unknown): void {
        assert.equal(given, record)
        heard.push(this.#name)
      }
    }
    const names = Array.from({ length: count }, (_, i) => `observer ${i}`)
    const composed = composeObservers(names.map((name) => new Numbered(name)))
    composed.requestStarted(record)
    composed.responseStarted(record)
    assert.deepEqual(heard, [])
    composed.requestEnded(record)
    assert.deepEqual(heard, names)
  }
})

test('events are apart', () => {
  const heard: string[] = []
  const composed = composeObservers([
    { requestStarted: () => void heard.push('one started') },
    { requestEnded: () => void heard.push('two ended') },
    {
      requestStarted: () => void heard.push('three started'),
      responseStarted: () => void heard.push('three answered'),
    },
  ])
  composed.requestStarted(createRecord())
  composed.responseStarted(createRecord())
  composed.requestEnded(createRecord())
  assert.deepEqual(heard, ['one started', 'three started', 'three answered', 'two ended'])
})
