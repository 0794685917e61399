// Says that what is shown is old, and how old.

import type { VNode } from 'preact'
import { duration } from '../data/format.ts'
import { type Polled, useNow } from '../data/poll.ts'

export function Banner({ polled }: { readonly polled: Polled<unknown> }): VNode | null {
  const now = useNow()
  const { fault, freshAt } = polled
  if (fault === '') return null
  return (
    <div class="banner" role="status">
      <span aria-hidden="true">▲ </span>
      {fault}. {freshAt > 0 ? `What is shown is ${duration(now - freshAt)} old.` : 'There is nothing to show yet.'}
    </div>
  )
}
