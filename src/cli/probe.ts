// `portcullis probe`: whether a gateway is ready, for images without a shell and units without curl. Prints the gateway's answer.

import { errorMessage } from '../kit/api/validation/error-message.ts'
import { UserError } from '../kit/api/validation/field-errors.ts'
import { formatDuration, parseDuration } from '../kit/core/text/duration.ts'
import { readPositiveDuration } from './client/control-plane.ts'
import type { CommandOutput } from './command/output.ts'
import { type HealthAnswer, type HealthRequestOptions, requestHealth } from './io/health-request.ts'

export interface ProbeOptions extends CommandOutput {
  readonly url: string
  /** How long to retry until it is ready. Default: a single attempt. */
  readonly wait?: string
  /** Per attempt. Default 5s. */
  readonly timeout?: string
  /** PEM of the CA of its certificate; default: Node's CAs. */
  readonly caFile?: string
  readonly insecureSkipTlsVerify: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Between two attempts. Default 200 ms. */
  readonly pollMs?: number
}

/** @returns the exit code: 0 if the answer is 2xx, 1 for any other answer or a timeout */
export async function probe(options: ProbeOptions): Promise<number> {
  const { url, out, err, now, pollMs = 200 } = options
  const target = readUrl(url)
  const timeoutMs = readPositiveDuration('--timeout', options.timeout ?? '5s', parseDuration)
  const waitMs = options.wait === undefined ? 0 : readPositiveDuration('--wait', options.wait, parseDuration)
  const deadlineMs = now() + waitMs
  for (;;) {
    // The last attempt may end a second after the wait, so that it can report what is missing.
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
