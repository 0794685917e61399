import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { StatusQueue } from './queue.ts'

test('a turn that breaks off is told, tried again, and holds up no other', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    let monotonic = 0
    const errors: string[] = []
    const turns: string[] = []
    const queue = new StatusQueue({
      turn: async (cluster) => {
        turns.push(cluster)
        if (cluster === 'odd' && errors.length === 0) throw new Error('odd')
        return 'nothing'
      },
      onError: (cluster) => void errors.push(cluster),
      clock: { now: () => 0, monotonic: () => monotonic },
      random: () => 0,
      limit: 1,
      spacingMs: 0,
    })
    const pass = async (ms: number): Promise<void> => {
      monotonic += ms
      mock.timers.tick(ms)
      for (let i = 0; i < 10; i++) await Promise.resolve()
    }
    queue.add('odd')
    queue.add('even')
    await pass(1)
    assert.deepEqual([turns, errors], [['odd', 'even'], ['odd']])
    await pass(2_000)
    assert.deepEqual(turns, ['odd', 'even', 'odd'])
    await queue.stop()
  } finally {
    mock.timers.reset()
  }
})
