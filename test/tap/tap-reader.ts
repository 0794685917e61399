// A reader of /api/v1/tap, for tests.

import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import type { TapEvent } from '../../src/insight/core/tap/tap-event.ts'
import type { TapLine } from '../../src/insight/core/tap/tap-lines.ts'
import { waitFor } from '../harness/wait.ts'

export interface TapReader {
  readonly lines: readonly TapLine[]
  /** The bytes of the stream as text. */
  text(): string
  requests(): TapEvent[]
  /** The sum of the lines `dropped`. */
  dropped(): number
  /** Resolves with the first event that satisfies `matches`. */
  shown(what: string, matches: (event: TapEvent) => boolean): Promise<TapEvent>
  readonly response: IncomingMessage
  readonly ended: Promise<void>
  close(): void
}

/** Resolves when the tap has begun in the main thread and, as far as a request can tell, in all threads. */
export async function openTap(adminPort: number, query = ''): Promise<TapReader> {
  const url = `http://127.0.0.1:${adminPort}/api/v1/tap${query === '' ? '' : `?${query}`}`
  const [request, response] = await new Promise<[ClientRequest, IncomingMessage]>((resolve, reject) => {
    const sent = get(url, (answer) => resolve([sent, answer]))
    sent.on('error', reject)
  })
  if (response.statusCode !== 200) {
    let text = ''
    for await (const chunk of response) text += String(chunk)
    throw new Error(`${response.statusCode}: ${text}`)
  }
  let text = ''
  let rest = ''
  const lines: TapLine[] = []
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    const parts = `${rest}${chunk}`.split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts.map((line) => JSON.parse(line) as TapLine))
  })
  response.on('error', () => undefined)
  request.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => response.on('close', () => resolve()))
  const requests = (): TapEvent[] => lines.filter((line) => line.type === 'request')
  await waitFor('the first line of the tap', () => lines.length > 0)
  return {
    lines,
    text: () => text,
    requests,
    dropped: () => lines.reduce((sum, line) => sum + (line.type === 'dropped' ? line.count : 0), 0),
    shown: (what, matches) => waitFor(`${what} in the tap`, () => requests().find(matches)),
    response,
    ended,
    close: () => request.destroy(),
  }
}
