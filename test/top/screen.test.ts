// The table of `portcullis top` in place: what a terminal gets, and that it is left as it was.

import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import type { TopReport } from '../../src/insight/core/top/report.ts'
import { topLines } from '../../src/insight/core/top/top-lines.ts'
import { fitWidth, textWidth } from '../../src/kit/core/text/printable.ts'
import { openScreen, type Screen } from '../../src/kit/io/world/terminal.ts'

class FakeInput extends EventEmitter {
  isTTY = true
  raw = false
  flowing = false
  setRawMode(raw: boolean): this {
    this.raw = raw
    return this
  }
  resume(): this {
    this.flowing = true
    return this
  }
  pause(): this {
    this.flowing = false
    return this
  }
}

class FakeOutput extends EventEmitter {
  isTTY = true
  columns = 60
  rows = 5
  text = ''
  write(text: string): boolean {
    this.text += text
    return true
  }
}

function open(): { input: FakeInput; output: FakeOutput; screen: Screen } {
  const input = new FakeInput()
  const output = new FakeOutput()
  const terminal = { input, output } as unknown as NonNullable<Parameters<typeof openScreen>[0]>
  const screen = openScreen(terminal)
  assert.ok(screen)
  return { input, output, screen }
}

const NUMBERS = { requests: 12, refused: 0, bytes: 2048, listedBytes: 0, upstreamSeconds: 0.5 }
const NONE = { requests: 0, refused: 0, bytes: 0, listedBytes: 0, upstreamSeconds: 0 }

function report(names: readonly string[], error = NONE): TopReport {
  const counts = { ...NUMBERS, latencySeconds: 0.0125, timedRequests: 12 }
  const rows = names.map((name) => ({ name, ...counts, error }))
  return { by: 'user', sort: 'requests', minutes: 1, cluster: '', seconds: 60, total: counts, rows, others: NONE }
}

for (const key of ['q', '\x03']) {
  test(`${JSON.stringify(key)} ends it, and the terminal is as it was`, async () => {
    const { input, output, screen } = open()
    assert.ok(input.raw && input.flowing)
    const waited = screen.wait(1_000_000)
    input.emit('data', Buffer.from(key))
    assert.equal(await waited, false)
    assert.equal(await screen.wait(1_000_000), false, 'also when it is pressed between two')
    screen.close()
    assert.ok(!input.raw && !input.flowing)
    assert.ok(output.text.startsWith('\x1b[?1049h') && output.text.endsWith('\x1b[?1049l'))
    assert.equal(input.listenerCount('data') + output.listenerCount('resize'), 0)
  })
}

test('other keys do nothing, another size shows at once', async () => {
  const { input, output, screen } = open()
  const waited = screen.wait(1_000_000)
  input.emit('data', Buffer.from('x'))
  output.emit('resize')
  assert.equal(await waited, true)
  screen.close()
})

test('no more lines are shown than the terminal has', () => {
  const { output, screen } = open()
  screen.show(['1', '2', '3', '4', '5', '6'])
  assert.equal(output.text.split('\r\n').length, 5)
  assert.ok(!output.text.includes('6'))
  screen.close()
})

test('without a terminal there is no screen', () => {
  for (const part of ['input', 'output'] as const) {
    const terminal = { input: new FakeInput(), output: new FakeOutput() }
    terminal[part].isTTY = false
    assert.equal(openScreen(terminal as unknown as NonNullable<Parameters<typeof openScreen>[0]>), undefined)
  }
})

test('lines are as wide as the terminal at most, and names with wide characters or escapes keep to that', () => {
  const lines = topLines(report(['漢字'.repeat(100), 'a\u001b[2J', '', 'x'.repeat(300)]), 80)
  for (const line of lines) assert.ok(textWidth(line) <= 80, line)
  assert.ok(lines.some((line) => line.endsWith('a\\x1b[2J')))
  assert.ok(lines.some((line) => line.endsWith('<none>')))
  for (const columns of [1, 10, 79])
    assert.ok(topLines(report(['alice']), columns).every((line) => textWidth(line) <= columns))
  assert.equal(fitWidth('alice', 3), 'al…')
})

test('each number that may be too low says by how much', () => {
  const text = topLines(report(['alice'], { ...NONE, requests: 3, bytes: 1024 })).join('\n')
  assert.match(text, / 12 \(\+3\) .*2\.0KiB \(\+1\.0KiB\) /)
  assert.match(text, /\(\+N\): /)
  assert.ok(
    !topLines(report(['alice']))
      .join('\n')
      .includes('(+'),
  )
})

test('a cluster without requests may be one that does not exist', () => {
  assert.deepEqual(topLines(report([])).slice(2), ['no requests'])
  assert.match(topLines({ ...report([]), cluster: 'pord' })[2] ?? '', /^no requests; is the name right\?/)
})
