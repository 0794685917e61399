// A degrade switch: mode, reason, who set it, and when it expires.

import type { VNode } from 'preact'
import type { DegradeInForce } from '../../api/overview.ts'
import { instant, roundedDuration } from '../data/format.ts'
import { useNow } from '../data/poll.ts'

export function SwitchLine({ degrade }: { readonly degrade: DegradeInForce }): VNode {
  const now = useNow()
  const { mode, reason, by, since, expiresAt, shadow, replicas } = degrade
  return (
    <p class="switch">
      <b class="mode">{mode}</b>
      {shadow && <span class="tag">shadow</span>}
      <span class="reason">{reason === '' ? 'no reason given' : reason}</span>
      <span class="meta">
        {by !== '' && <>by {by} · </>}
        {replicas !== undefined && <>only at {replicas.join(', ')} · </>}
        {since > 0 && <span title={instant(since)}>for {roundedDuration(now - since)} · </span>}
        {expiresAt > 0 ? (
          <span title={instant(expiresAt)}>ends in {roundedDuration(expiresAt - now)}</span>
        ) : (
          'until it is switched off'
        )}
      </span>
    </p>
  )
}
