// `portcullis play` in this process.

import { playCommand } from '../../../src/sessions/cli/play.ts'

export interface PlayOptions {
  readonly keyFile: string
  /** Default false. */
  readonly text?: boolean
  /** Default false. */
  readonly cast?: boolean
  readonly connection?: string
  readonly sent?: boolean
  /** It prints to a terminal of 80 columns. Default false. */
  readonly isTerminal?: boolean
}

export interface Played {
  readonly code: number
  readonly out: string
  readonly err: string
  /** What it printed as bytes. */
  readonly bytes: Buffer
}

export async function playRecording(file: string, { isTerminal = false, ...how }: PlayOptions): Promise<Played> {
  const print = { out: '', err: '' }
  const bytes: Uint8Array[] = []
  const code = await playCommand({
    ...{ file, speed: '1000', idleLimit: '0s', text: false, cast: false, ...how },
    out: (text) => {
      print.out += text
    },
    outBytes: (piece) => void bytes.push(piece),
    err: (text) => {
      print.err += text
    },
    terminal: { columns: () => (isTerminal ? 80 : undefined), interrupted: () => new AbortController().signal },
  })
  return { code, ...print, bytes: Buffer.concat(bytes) }
}
