// Says that what is shown is old, and how old; or that the numbers of a replica are not in it.

import type { VNode } from 'preact'
import { duration } from '../data/format.ts'
import { type Polled, useNow } from '../data/poll.ts'

interface BannerProps {
  readonly polled: Polled<unknown>
  /** Replicas that have not answered the one that is asked. */
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
        : `${fault}. ${freshAt > 0 ? `What is shown is ${duration(now - freshAt)} old.` : 'There is nothing to show yet.'}`}
    </div>
  )
}
