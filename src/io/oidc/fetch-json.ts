// One GET of a JSON document over https: no redirects, no connection kept, a bounded answer within a bounded time.

import { readFileSync } from 'node:fs'
import { get } from 'node:https'
import { getCACertificates } from 'node:tls'
import { errorMessage } from '../../api/validation/error-message.ts'
import { DOCUMENT } from '../../core/answers/answer-limits.ts'
import { AnswerReader } from '../../core/answers/answer-reader.ts'
import { serverCharge } from '../../core/shares/charge.ts'
import { limitInterimHeads } from '../answers/interim-heads.ts'
import { AnswerBytes, COUNT_SEED } from '../answers/thread-answers.ts'

const TIMEOUT_MS = 10_000
const LATE = 'no answer within 10 s'

/**
 * @param caFile PEM; read each time, so that it may be replaced. '' = what Node and the machine trust
 * @throws (rejects) with one line of what went wrong
 */
export async function fetchJson(url: string, caFile: string): Promise<unknown> {
  const text = await fetchText(url, caFile === '' ? trustedCAs() : readFileSync(caFile))
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${url} does not answer with JSON`)
  }
}

/** It may be parsed. */
function fetchText(url: string, ca: Buffer | string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const fail = (reason: string): void => reject(new Error(`${url}: ${reason}`))
    const request = get(url, {
      ca,
      agent: false,
      headers: { accept: 'application/json' },
      signal,
    })
    limitInterimHeads(request)
    request.once('error', (error: NodeJS.ErrnoException) => {
      // Several addresses that all refuse are an AggregateError without a text.
      fail(signal.aborted ? LATE : error.message || error.code || error.name)
    })
    request.once('response', (response) => {
      const memory = new AnswerBytes(serverCharge(new URL(url).origin))
      const reader = new AnswerReader(DOCUMENT.bytes, memory)
      response.on('data', (chunk: Buffer) => {
        const fault = reader.add(chunk)
        if (fault === 'too-large') request.destroy(new Error('the answer is longer than 1 MiB'))
        else if (fault === 'no-room') request.destroy(memory.full())
      })
      response.once('error', (error) => fail(signal.aborted ? LATE : error.message))
      response.once('end', () => {
        if (response.statusCode !== 200) {
          fail(`answers with ${response.statusCode}`)
          return
        }
        try {
          resolve(reader.counted(DOCUMENT, COUNT_SEED))
        } catch (error) {
          fail(errorMessage(error))
        }
      })
      // Nothing of it is held afterwards, however it ended.
      response.once('close', () => reader.drop())
    })
  })
}

function trustedCAs(): string[] {
  return [...getCACertificates('default'), ...getCACertificates('system')]
}
