// One GET of a JSON document over https, within a bounded time.

import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'
import { DOCUMENT } from '../../core/answers/answer-limits.ts'
import { serverCharge } from '../../core/shares/charge.ts'
import { faultText, fetchBounded } from '../answers/fetch-bounded.ts'

const TIMEOUT_MS = 10_000

/**
 * @param caFile PEM; read each time, so that it may be replaced. '' = what Node and the machine trust
 * @throws (rejects) with one line of what went wrong
 */
export async function fetchJson(url: string, caFile: string): Promise<unknown> {
  const ca = caFile === '' ? trustedCAs() : readFileSync(caFile)
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const text = await fetchText(url, ca, signal).catch((error: unknown) => {
    throw new Error(`${url}: ${signal.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : faultText(error)}`)
  })
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${url} does not answer with JSON`)
  }
}

/** It may be parsed. */
async function fetchText(url: string, ca: Buffer | string[], signal: AbortSignal): Promise<string> {
  const reply = await fetchBounded(url, { headers: { accept: 'application/json' }, tls: { ca }, signal })
  if (reply.code === 200) return reply.countedText(DOCUMENT, serverCharge(new URL(url).origin))
  reply.discard()
  throw new Error(`answers with ${reply.code}`)
}

function trustedCAs(): string[] {
  return [...getCACertificates('default'), ...getCACertificates('system')]
}
