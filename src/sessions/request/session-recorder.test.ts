import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionEnd } from '../../gateway/api/session-record.ts'
import { userCharge } from '../../kit/core/shares/charge.ts'
import type { OpenRecording } from '../io/recordings.ts'
import { SessionRecorder } from './session-recorder.ts'

const HEAD = [':status', '101', 'upgrade', 'websocket', 'sec-websocket-protocol', 'v5.channel.k8s.io']
const SESSION = { onReady: () => undefined, onBroken: () => undefined }
const ABOUT = {
  cluster: 'prod',
  user: 'alice',
  groups: [],
  impersonator: '',
  namespace: 'shop',
  pod: 'web-1',
  container: '',
  kind: 'exec',
  command: ['sh'],
  auditId: '',
  remoteAddress: '',
  input: false,
}

function recorderOf(recording: OpenRecording, isStopping = false, isRequired = true): SessionRecorder {
  return new SessionRecorder({
    recordings: { open: () => recording },
    inflater: () => () => Buffer.alloc(0),
    clock: { now: () => 0, monotonic: () => 0 },
    name: 'one',
    charge: userCharge('prod', 'alice', 1),
    about: ABOUT,
    isRequired,
    isStopping: () => isStopping,
    counted: () => undefined,
  })
}

/** It keeps nothing. @param onEnd with whether the thread waited for the disk */
function recordingOf(onEnd: (atOnce: boolean) => void = () => undefined): OpenRecording {
  const recording: Pick<OpenRecording, 'add' | 'end' | 'isFull' | 'isOverfull'> = {
    add: () => '',
    end: (_, atOnce) => onEnd(atOnce),
    isFull: false,
    isOverfull: false,
  }
  return recording as OpenRecording
}

test('a thread waits for the disk when the gateway stops, and not when it ends a session of a revoked user or a grant', () => {
  const endedBy = (side: SessionEnd, isStopping: boolean): readonly boolean[] => {
    const ended: boolean[] = []
    const recorder = recorderOf(
      recordingOf((atOnce) => ended.push(atOnce)),
      isStopping,
    )
    assert.equal(recorder.begin(HEAD, SESSION), undefined)
    recorder.end(side)
    return ended
  }
  assert.deepEqual(endedBy('gateway', false), [false])
  assert.deepEqual(endedBy('client', false), [false])
  assert.deepEqual(endedBy('gateway', true), [true])
})

test('what upstream has switched to is read, or refused where it must be recorded', () => {
  const spdy = [':status', '101', 'upgrade', 'SPDY/3.1', 'x-stream-protocol-version', 'v4.channel.k8s.io']
  for (const [head, isRead] of [
    [HEAD, true],
    [spdy, true],
    [[...HEAD, 'sec-websocket-extensions', 'permessage-deflate'], false],
    [[...HEAD.slice(0, 4), 'sec-websocket-protocol', 'v9.channel.k8s.io'], false],
    [[':status', '101', 'upgrade', 'spdy/3'], false],
    [[':status', '101'], false],
  ] as const) {
    const refusal = recorderOf(recordingOf()).begin([...head], SESSION)
    assert.equal(refusal?.refused, isRead ? undefined : 'session-not-recorded', head.join(' '))
  }
})

/** A message of a server, or of a client with a mask of zeros. */
function message(channel: number, text: string, isClient = false): Buffer {
  const payload = Buffer.concat([Buffer.from([channel]), Buffer.from(text)])
  const masked = isClient ? 0x80 : 0
  const head = Buffer.from([0x82, 126 | masked, payload.length >> 8, payload.length & 255])
  return Buffer.concat([head, Buffer.alloc(isClient ? 4 : 0), payload])
}

/** The state of a disk. */
interface Disk {
  isFull: boolean
  isOverfull: boolean
}

function begun(disk: Disk, isRequired: boolean): { readonly recorder: SessionRecorder; readonly lines: string[] } {
  const lines: string[] = []
  const add = (line: string): string => {
    lines.push(line)
    return ''
  }
  const recording: Pick<OpenRecording, 'add' | 'end'> = { add, end: (line) => void lines.push(line) }
  const recorder = recorderOf(Object.assign(disk, recording) as unknown as OpenRecording, false, isRequired)
  recorder.begin(HEAD, SESSION)
  return { recorder, lines }
}

const quick = (): Disk => ({ isFull: false, isOverfull: false })

test('a session waits for a slow disk if it must be recorded; otherwise its recording ends', () => {
  const disk = quick()
  const required = begun(disk, true).recorder
  assert.equal(required.isFull, false)
  disk.isFull = true
  disk.isOverfull = true
  assert.equal(required.isFull, true)
  assert.equal(required.toClient(message(1, 'a')), true)
  assert.equal(required.end('client').incomplete, '')
  const other = begun(disk, false).recorder
  assert.equal(other.isFull, false)
  assert.equal(other.toClient(message(1, 'a')), true)
  assert.equal(other.end('client').incomplete, 'the disk is too slow')
})

test('nothing passes behind what cannot be read, if the session must be recorded', () => {
  for (const isRequired of [true, false]) {
    const { recorder } = begun(quick(), isRequired)
    assert.equal(recorder.toClient(Buffer.from([0xff, 0xff])), !isRequired)
    assert.equal(recorder.toClient(message(1, 'a')), !isRequired)
    assert.equal(recorder.fromClient(message(0, 'a', true)), !isRequired)
    assert.match(recorder.end('client').incomplete, /cannot be read/)
  }
})

test('no more is kept of the end and of sizes of a terminal than either has', () => {
  const { recorder, lines } = begun(quick(), true)
  recorder.fromClient(message(4, '{"Width":80,"Height":24}', true))
  recorder.fromClient(message(4, `{"Width":90,${' '.repeat(300)}"Height":30}`, true))
  recorder.toClient(message(3, ' '.repeat(5000)))
  recorder.toClient(message(3, '{"status":"Success"}'))
  assert.equal(recorder.end('upstream').outcome, '')
  const sizes = lines.filter((line) => line.includes('"r"'))
  assert.deepEqual(sizes, ['[0.000000,"r","80x24"]\n'])
})
