import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { waitFor } from '../../../../../test/harness/wait.ts'
import type { Peer, StreamEvents } from '../../../../kit/api/stream.ts'
import { UpgradeAnswer } from './upgrade-answer.ts'

const PEER = { charge: { source: 'alice', weight: 1, known: true } } as unknown as Peer
const EVENTS: StreamEvents = {
  onHeaders: () => undefined,
  onBody: () => undefined,
  onTrailers: () => undefined,
  onDrained: () => undefined,
  onReset: () => undefined,
}

/** A client that takes nothing before it is told to. */
function slowClient(): { readonly socket: Duplex; readonly taken: Buffer[]; take(): void } {
  const taken: Buffer[] = []
  const waiting: (() => void)[] = []
  let isTaking = false
  const socket = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _, done) {
      const take = (): void => {
        taken.push(Buffer.from(chunk))
        done()
      }
      if (isTaking) take()
      else waiting.push(take)
    },
  })
  return {
    socket,
    taken,
    take: () => {
      isTaking = true
      for (const one of waiting.splice(0)) one()
    },
  }
}

test('what is said to wait is followed by word that it does no longer', async () => {
  const { socket, take } = slowClient()
  const answer = new UpgradeAnswer(socket, Buffer.alloc(0), PEER)
  let drained = 0
  answer.events = { ...EVENTS, onDrained: () => void drained++ }
  answer.headers([':status', '200'], false)
  let written = 0
  while (answer.queued === 0) {
    answer.body(Buffer.alloc(1024), false)
    assert.ok(++written < 1000)
  }
  take()
  await waitFor('that', () => drained === 1)
  assert.equal(answer.queued, 0)
})

test('a piece is valid while it is passed, and no longer', async () => {
  const { socket, taken, take } = slowClient()
  const answer = new UpgradeAnswer(socket, Buffer.alloc(0), PEER)
  answer.headers([':status', '200', 'content-length', '5'], false)
  const piece = Buffer.from('piece')
  answer.body(piece, true)
  piece.fill('x')
  take()
  await waitFor('all of it', () => Buffer.concat(taken).toString().endsWith('\r\n\r\npiece'))
})
