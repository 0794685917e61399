// Warns that the data is stale, and how old it is, or that a replica's numbers are missing.

import type { VNode } from 'preact'
import { roundedDuration } from '../data/format.ts'
import { type Polled, useNow } from '../data/poll.ts'

interface BannerProps {
  readonly polled: Polled<unknown>
  /** Replicas that did not respond to the queried one. */
  readonly missing: readonly string[]
}

export function Banner({ polled, missing }: BannerProps): VNode | null {
  const now = useNow()
  const { fault, freshAt } = polled
  if (fault === '' && missing.length === 0) return null
  return (
    <div class="banner" role="status">
      <span aria-hidden="true">▲ </span>
      {fault === ''
        ? `No answer from ${missing.join(', ')}: its numbers are missing below.`
        : `${fault}. ${freshAt > 0 ? `The numbers below are ${roundedDuration(now - freshAt)} old.` : 'There is nothing to show yet.'}`}
    </div>
  )
}
