// Recent changes, newest first.

import type { VNode } from 'preact'
import type { Change } from '../../api/overview.ts'
import { clock, instant, roundedDuration } from '../data/format.ts'
import { useNow } from '../data/poll.ts'
import { clusterLink } from '../data/route.ts'
import { Nothing } from './pane.tsx'
import { State } from './state.tsx'

export function Changes({
  changes,
  withCluster,
}: {
  readonly changes: readonly Change[]
  readonly withCluster: boolean
}): VNode {
  const now = useNow()
  if (changes.length === 0) return <Nothing>Nothing has changed in the last 30 minutes.</Nothing>
  return (
    <ol class="changes">
      {changes.map((change, i) => (
        <li key={`${change.at} ${change.cluster} ${change.text} ${i}`}>
          <time dateTime={instant(change.at)} title={`${clock(change.at)}, ${roundedDuration(now - change.at)} ago`}>
            {roundedDuration(now - change.at)}
          </time>
          <span class="what">
            {withCluster && change.cluster !== '' && (
              <>
                <a href={clusterLink(change.cluster)}>{change.cluster}</a>{' '}
              </>
            )}
            <State tone={change.severity}>{change.text}</State>
            {change.by !== '' && <span class="meta"> by {change.by}</span>}
            {change.replicas !== undefined && <span class="meta"> at {change.replicas.join(', ')}</span>}
          </span>
        </li>
      ))}
    </ol>
  )
}
