import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_REMEMBERED, ownPortFailures } from './own-ports.ts'

function create(
  blockedMs = 0,
  random = 0,
): { own: ReturnType<typeof ownPortFailures>; counted: string[]; told(): number } {
  const counted: string[] = []
  let told = 0
  const own = ownPortFailures({
    failures: {
      failed: (source) => Promise.resolve(void counted.push(source)),
      blockedMs: (source) => (source === 'a' ? blockedMs : 0),
    },
    random: () => random,
    onRefused: () => told++,
  })
  return { own, counted, told: () => told }
}

test('a wrong credential counts once for each address, as long as it is remembered', () => {
  const { own, counted } = create()
  for (let i = 0; i < 10; i++) own.failed('a', 'stale')
  own.failed('b', 'stale')
  own.failed('a', 'other')
  assert.deepEqual(counted, ['a', 'b', 'a'])
  for (let i = 0; i < MAX_REMEMBERED; i++) own.failed('c', `guess ${i}`)
  counted.length = 0
  own.failed('a', 'stale')
  own.failed('c', `guess ${MAX_REMEMBERED - 1}`)
  assert.deepEqual(counted, ['a'], 'the oldest is forgotten, the newest is not')
})

test('whole seconds, spread by a quarter; only who waits is counted as refused', () => {
  const { own, told } = create(1500, 0.5)
  assert.equal(own.waitSeconds('b'), 0)
  assert.equal(told(), 0)
  assert.equal(own.waitSeconds('a'), 2)
  assert.equal(create(8000, 0.99).own.waitSeconds('a'), 10)
  assert.equal(told(), 1)
})
