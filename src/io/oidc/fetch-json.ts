// One GET of a JSON document over https: no redirects, no connection kept, a bounded answer within a bounded time.

import { readFileSync } from 'node:fs'
import { get } from 'node:https'
import { getCACertificates } from 'node:tls'

const MAX_BYTES = 1024 * 1024
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
    request.once('error', (error: NodeJS.ErrnoException) => {
      // Several addresses that all refuse are an AggregateError without a text.
      fail(signal.aborted ? LATE : error.message || error.code || error.name)
    })
    request.once('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MAX_BYTES) request.destroy(new Error('the answer is longer than 1 MiB'))
        else chunks.push(chunk)
      })
      response.once('error', (error) => fail(signal.aborted ? LATE : error.message))
      response.once('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(chunks).toString())
        else fail(`answers with ${response.statusCode}`)
      })
    })
  })
}

function trustedCAs(): string[] {
  return [...getCACertificates('default'), ...getCACertificates('system')]
}
