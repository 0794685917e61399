// `portcullis probe`: whether a gateway is ready, for an image without a shell and a unit without curl. It prints what the gateway says.

import { errorMessage } from '../kit/api/validation/error-message.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { formatDuration, parseDuration } from '../kit/core/text/duration.ts'
import { readPositiveDuration } from './client/control-plane.ts'
import type { Output } from './command/output.ts'
import { type HealthAnswer, type HealthRequestOptions, requestHealth } from './io/health-request.ts'

export interface ProbeOptions extends Output {
  readonly url: string
  /** How long to ask again until it is ready. Default: asked once. */
  readonly wait?: string
  /** For one answer. Default 5s. */
  readonly timeout?: string
  /** PEM of the authority of its certificate; default: those of Node. */
  readonly caFile?: string
  readonly insecureSkipTlsVerify: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Between two attempts. Default 200 ms. */
  readonly pollMs?: number
}

/** @returns the exit code: 0 when the answer is 2xx, 1 when it is another or there is none in time */
export async function probe(options: ProbeOptions): Promise<number> {
  const { url, out, err, now, pollMs = 200 } = options
  const target = readUrl(url)
  const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '5s', parseDuration)
  const waitMs = options.wait === undefined ? 0 : readPositiveDuration('--wait', options.wait, parseDuration)
  const deadlineMs = now() + waitMs
  for (;;) {
    // The last attempt may end a second after the wait, so that it can say what is missing.
    const leftMs = Math.max(1000, deadlineMs - now())
    const answer = await ask(target, options, waitMs === 0 ? timeoutMs : Math.min(timeoutMs, leftMs))
    if (typeof answer !== 'string' && answer.code >= 200 && answer.code < 300) {
      out(answer.body.endsWith('\n') ? answer.body : `${answer.body}\n`)
      return 0
    }
    if (now() + pollMs < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, pollMs))
      continue
    }
    const waited = waitMs === 0 ? '' : ` after ${formatDuration(waitMs)}`
    err(`error: ${url}${waited}: ${typeof answer === 'string' ? answer : said(answer)}\n`)
    return 1
  }
}

function ask(url: URL, { caFile, insecureSkipTlsVerify }: ProbeOptions, timeoutMs: number) {
  const options: HealthRequestOptions = {
    timeoutMs,
    skipVerify: insecureSkipTlsVerify,
    ...(caFile !== undefined && { caFile }),
  }
  try {
    return requestHealth(url, options)
  } catch (error) {
    throw new UserError(`cannot read ${caFile}: ${errorMessage(error)}`, 'check --ca-file')
  }
}

function said({ code, body }: HealthAnswer): string {
  return body === '' ? String(code) : `${code}\n${body.trimEnd()}`
}

function readUrl(text: string): URL {
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol)) return url
  throw new UserError(`${JSON.stringify(text)} is not an http or https URL`, 'write http://127.0.0.1:9090/readyz')
}
