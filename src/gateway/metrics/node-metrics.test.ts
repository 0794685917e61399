import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '../../../test/harness/wait.ts'
import { expositionText } from './exposition.ts'
import { NODE_METRICS, nodeMetrics } from './node-metrics.ts'

function sampleOf(text: string, series: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? Number.NaN : Number(line.slice(series.length + 1))
}

test('every metric of the process is there, with numbers that can be true', async () => {
  const expose = nodeMetrics()
  let text = ''
  await waitFor('the delay of the event loop, and garbage', async () => {
    const garbage = Array.from({ length: 100_000 }, (_, index) => ({ index }))
    assert.equal(garbage.length, 100_000)
    text = await expositionText(expose)
    return (
      sampleOf(text, 'portcullis_nodejs_eventloop_lag_max_seconds') > 0 && text.includes('gc_duration_seconds_count')
    )
  })
  for (const { name, type, help } of NODE_METRICS)
    assert.ok(text.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), name)
  const value = (name: string): number => sampleOf(text, `portcullis_${name}`)
  const { heapTotal } = process.memoryUsage()
  assert.ok(value('process_resident_memory_bytes') > heapTotal / 2)
  assert.ok(value('process_resident_memory_bytes') < value('process_virtual_memory_bytes'))
  assert.ok(value('process_open_fds') > 2 && value('process_open_fds') < value('process_max_fds'))
  const cpu = value('process_cpu_user_seconds_total') + value('process_cpu_system_seconds_total')
  assert.ok(Math.abs(value('process_cpu_seconds_total') - cpu) < 1e-6)
  const startMs = value('process_start_time_seconds') * 1000
  assert.ok(Math.abs(startMs - (Date.now() - process.uptime() * 1000)) < 2_000)
  assert.ok(value('nodejs_eventloop_lag_seconds') >= 0)
  assert.ok(value('nodejs_heap_size_used_bytes') <= value('nodejs_heap_size_total_bytes'))
  assert.ok(value('nodejs_heap_space_size_used_bytes{space="old"}') > 0)
  const [major = '', minor = '', patch = ''] = process.version.slice(1).split('.')
  const info = `version="${process.version}",major="${major}",minor="${minor}",patch="${patch}"`
  assert.equal(value(`nodejs_version_info{${info}}`), 1)
})
