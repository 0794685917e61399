// Asks a member for a page of its own list, as the caller, whose right there is known by then. What cannot be asked or read proves nothing: the answer does without.

import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import { callAsGateway } from '../../gateway/request/calls/call-as-gateway.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { authenticated } from '../../gateway/request/exchange/identity.ts'
import { isRefusal } from '../../kit/core/refusal/refusal.ts'
import { PAGE } from '../../kube/core/answers/answer-limits.ts'
import { AnswerTooLargeError, CallLimitError, KubeCallError } from '../../kube/core/answers/call-errors.ts'
import { type ListedPage, listTarget, METADATA_ONLY, type PageQuestion, readListedPage } from '../core/listed-page.ts'
import type { AskedMember } from './asked-members.ts'
import { admittedUser } from './member-rights.ts'

/** What kubectl and client-go ask for. A page of more is not asked for. */
export const MOST_LISTED = 500

/** So much of MEMBER_MS: the rest is enough for the proof that is asked for then. */
export const LISTED_MS = 400

const OK = 200

/** Pages do not become shorter than that because a page of more is too large for the gateway to read. */
const LEAST_LISTED = 50
/** When more are asked for again. */
const TOO_LARGE_MS = 60_000

/** So many are within the limits of a page, until then: monotonic. */
const FITS = new WeakMap<CachedCollection, { readonly limit: number; readonly untilMs: number }>()

/** @param ms how long it may take @returns undefined: nothing is proved. It may have fewer objects than were asked for */
export async function listedPage(
  decision: Decision,
  member: AskedMember,
  question: PageQuestion,
  ms: number,
): Promise<ListedPage | undefined> {
  const { clock } = decision.exchange.gw
  const endsMs = clock.monotonic() + ms
  const fits = FITS.get(member.kept)
  const most = fits === undefined || clock.monotonic() >= fits.untilMs ? MOST_LISTED : fits.limit
  for (let limit = Math.min(question.limit, most); ; limit >>= 1) {
    const leftMs = endsMs - clock.monotonic()
    const page = leftMs > 0 ? await askedPage(decision, member, { ...question, limit }, leftMs) : undefined
    if (page !== 'too-large') return page
    // Annotations and managed fields may be long.
    if (limit < 2 * LEAST_LISTED) return undefined
    FITS.set(member.kept, { limit: limit >> 1, untilMs: clock.monotonic() + TOO_LARGE_MS })
  }
}

async function askedPage(
  decision: Decision,
  { read, scope }: AskedMember,
  question: PageQuestion,
  ms: number,
): Promise<ListedPage | 'too-large' | undefined> {
  const { exchange, caller } = decision
  const path = listTarget(read.info, scope, read.labelSelector, question)
  const user = admittedUser(read, decision)
  const asked = user && authenticated(user, caller.kind)
  if (path === undefined || asked === undefined || isRefusal(asked)) return undefined
  try {
    const { status, body } = await callAsGateway(exchange.gw, read.live, {
      kind: 'page-read',
      charge: exchange.charge,
      method: 'GET',
      path,
      accept: METADATA_ONLY,
      timeoutMs: ms,
      limits: PAGE,
      credentials: asked.credentials(read.live.compiled.client),
    })
    threadScheduler.chargeAnswer(exchange.charge, body.length)
    return status === OK ? readListedPage(body, question) : undefined
  } catch (error) {
    if (error instanceof AnswerTooLargeError) return 'too-large'
    if (error instanceof KubeCallError || error instanceof CallLimitError) return undefined
    throw error
  }
}
