// A cluster in one glance.

import type { VNode } from 'preact'
import type { ClusterTile } from '../../api/insight/overview.ts'
import { count, latency, share } from '../data/format.ts'
import { clusterLink } from '../data/route.ts'
import { Spark } from './spark.tsx'
import { Troubles, toneOf } from './state.tsx'
import { SwitchLine } from './switch.tsx'

export function Tile({ tile }: { readonly tile: ClusterTile }): VNode {
  const { name, troubles, endpoints, degrade } = tile
  const is = (trouble: (typeof troubles)[number]): string => (troubles.includes(trouble) ? 'hurts' : '')
  return (
    <li class={`tile ${toneOf(troubles)}`}>
      <div class="head">
        <h3>
          <a href={clusterLink(name)}>{name}</a>
        </h3>
        <div class="troubles">
          <Troubles troubles={troubles} />
        </div>
      </div>
      <dl>
        <Figure name="req/s" value={count(tile.requestsPerSecond)} />
        <Figure name="errors" value={share(tile.errorRatio)} class={is('errors')} />
        <Figure name="refused" value={share(tile.refusedRatio)} class={is('refused')} />
        <Figure name="p99" value={latency(tile.p99)} class={is('slow')} />
        <Figure
          name="endpoints"
          value={`${endpoints.up}/${endpoints.all}`}
          class={endpoints.up < endpoints.all ? 'hurts' : ''}
        />
      </dl>
      {degrade !== null && <SwitchLine degrade={degrade} />}
      <Spark values={tile.spark} />
    </li>
  )
}

function Figure(props: { readonly name: string; readonly value: string; readonly class?: string }): VNode {
  return (
    <div class={props.class ?? ''}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  )
}
