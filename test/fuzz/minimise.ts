// The least of an input that still fails, and how to read it.

import { checkInput, type Input } from './check-input.ts'

const TYPES = [
  ...['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'SETTINGS', 'PUSH_PROMISE', 'PING', 'GOAWAY', 'WINDOW_UPDATE'],
  'CONTINUATION',
]
const FRAME_HEADER_BYTES = 9
const SHOWN_BYTES = 80

/** Drops frames, and bytes at their ends, as long as the same kind of failure remains. */
export function minimise(input: Input): Input {
  const wanted = kindOf(checkInput(input))
  const fails = (frames: readonly Buffer[]): boolean => kindOf(checkInput({ ...input, frames })) === wanted
  let frames = [...input.frames]
  for (let i = frames.length - 1; i >= 0; i--) {
    const without = frames.filter((_, at) => at !== i)
    if (fails(without)) frames = without
  }
  for (let i = 0; i < frames.length; i++) {
    const frame = frames[i]
    if (frame === undefined) continue
    for (let cut = frame.length >> 1; cut > 0; cut >>= 1) {
      const shorter = frames.with(i, (frames[i] ?? frame).subarray(0, Math.max(0, (frames[i] ?? frame).length - cut)))
      if (fails(shorter)) frames = shorter
    }
  }
  return { ...input, frames }
}

/** The first line, without numbers: those change as an input shrinks. */
function kindOf(problem: string): string {
  return problem.split('\n', 1)[0]?.replace(/\d+/g, 'N') ?? ''
}

export function describeInput({ side, profile, frames, cut }: Input): string {
  const lines = frames.map((frame) => {
    const isFrame = frame.length >= FRAME_HEADER_BYTES && frame.subarray(0, 3).toString() !== 'PRI'
    if (!isFrame) return `  ${frame.toString('hex')}`
    const [type = 0, flags = 0] = [frame[3], frame[4]]
    const payload = frame.subarray(FRAME_HEADER_BYTES)
    const shown = payload.subarray(0, SHOWN_BYTES).toString('hex') + (payload.length > SHOWN_BYTES ? '...' : '')
    const declared = frame.readUIntBE(0, 3) === payload.length ? '' : ` (says ${frame.readUIntBE(0, 3)} bytes)`
    const stream = frame.readUInt32BE(5)
    return `  ${TYPES[type] ?? `type ${type}`} flags=${flags.toString(16)} stream=${stream}${declared} ${shown}`
  })
  const bytes = Buffer.concat(frames)
  const whole = bytes.length <= 2_000 ? bytes.toString('base64') : `${bytes.length} bytes`
  return `the ${side}'s side, profile ${profile}, cut ${cut}, was sent:\n${lines.join('\n')}\nbytes: ${whole}`
}
